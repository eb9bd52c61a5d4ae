"""Gates out of gates, and out of a rule of the application."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from llama_index_grounded import AccessGuard, CitingSynthesizer, ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection import (
    CombinedGate,
    ConflictFlagger,
    EvidenceGate,
    MetadataScore,
    NearDuplicateFilter,
    RecordScore,
    Stage,
    SufficiencyGate,
)
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.testing import ScriptedLLM, check_postprocessor, make_nodes
from tests.selection.parts import Guard

DENSE, SPARSE = ScoreGate(min_score=0.5), ScoreGate(min_score=2.0, signal=MetadataScore("bm25"))


@given(
    dense=st.floats(0, 1),
    sparse=st.floats(0, 4),
    reject_when=st.sampled_from(["all", "any"]),
)
def test_it_rejects_when_all_or_any_reject(dense: float, sparse: float, reject_when: Literal["all", "any"]) -> None:
    """Every node passes or none, as the two gates alone would say."""
    nodes = make_nodes(["a", "b"], scores=[dense, 0.0], metadata=[{"bm25": sparse}, {"bm25": 0.0}])
    rejects = [not gate.select(nodes).nodes for gate in (DENSE, SPARSE)]
    found = CombinedGate(gates=[DENSE, SPARSE], reject_when=reject_when).select(nodes)
    assert bool(found.nodes) is not (all(rejects) if reject_when == "all" else any(rejects))
    assert len(found.nodes) in (0, 2)
    assert len([one for one in found.decisions if one.action == "refused"]) == (0 if found.nodes else 2)


def test_the_laws() -> None:
    """Combined gates are filters, copies included; a rule can not be copied by dict."""
    loose, strict = ScoreGate(min_score=-1, on_missing_score="pass"), ScoreGate(min_score=0.6, on_missing_score="pass")
    for reject_when in ("all", "any"):
        check_postprocessor(lambda when=reject_when: CombinedGate(gates=[loose, strict], reject_when=when))  # type: ignore[misc]
    check_postprocessor(lambda: EvidenceGate(predicate=lambda nodes: len(nodes) > 1), round_trip=False)


def test_gates_nest_and_are_written_down_with_their_options() -> None:
    """A combined gate in a combined gate comes back from JSON with every threshold."""
    gate = CombinedGate(gates=[DENSE, CombinedGate(gates=[SPARSE, DENSE], reject_when="any")])
    again = CombinedGate.from_json(gate.to_json())
    assert again.to_dict() == gate.to_dict()
    inner = again.gates[1]
    assert isinstance(inner, CombinedGate)
    assert inner.gates[0].signal == MetadataScore("bm25")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "written, message",
    [
        ({"min_score": 0.3}, "a gate that is written as a dict needs its class_name"),
        ({"class_name": ["ScoreGate"]}, "a gate that is written as a dict needs its class_name"),
        ({"class_name": "NoGate"}, "no stage NoGate is known: import the module of its class first"),
        ({"class_name": "Stage"}, "Stage is none"),
    ],
)
@pytest.mark.parametrize("several", [list, tuple])
def test_a_gate_that_can_not_be_read_is_refused(written: Any, message: str, several: Any) -> None:
    """A dict without its class, or of a class that was not imported, is told in plain words."""
    with pytest.raises(ValidationError, match=message):
        CombinedGate(gates=several([written, DENSE.to_dict()]))


def test_gates_may_be_written_in_a_tuple() -> None:
    """What holds the dicts does not matter."""
    gate = CombinedGate(gates=(DENSE.to_dict(), SPARSE.to_dict()))  # type: ignore[arg-type]
    assert gate.to_dict() == CombinedGate(gates=[DENSE, SPARSE]).to_dict()


def test_a_gate_of_this_package_is_read_before_anything_has_imported_it() -> None:
    """A process that reads a configuration needs no import of the classes that stand in it."""
    code = (
        "from llama_index_grounded.selection.combined import CombinedGate\n"
        "gates = [{'class_name': 'SufficiencyGate'}, {'class_name': 'ScoreGate', 'min_score': 0.3}]\n"
        "print([type(gate).__name__ for gate in CombinedGate.from_dict({'gates': gates}).gates])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['SufficiencyGate', 'ScoreGate']"


def policy(nodes: Any) -> Any:
    """Want at least one policy."""
    return any(scored.node.metadata.get("type") == "policy" for scored in nodes)


@pytest.mark.parametrize("predicate, passes", [(policy, True), (lambda _: 1, False), (lambda _: "yes", False)])
def test_a_rule_must_say_true_itself(predicate: Any, passes: bool) -> None:
    """What is only truthy, such as a count, is not True."""
    nodes = make_nodes(["a", "b"], metadata=[{"type": "note"}, {"type": "policy"}])
    assert bool(EvidenceGate(predicate=predicate).select(nodes).nodes) is passes


@pytest.mark.parametrize("reason", ["insufficient_evidence", "no policy was found"])
def test_a_rule_refuses_with_its_own_words(reason: str) -> None:
    """No model is called, and the refusal holds the reason of the rule."""
    llm = ScriptedLLM(["not to be called"])
    nodes = EvidenceGate(predicate=policy, reason=reason).postprocess_nodes(make_nodes(["a"]))
    found: Any = CitingSynthesizer(llm).synthesize("May I?", nodes)
    assert found.refusal.reason == "insufficient_evidence"
    assert reason in found.refusal.detail
    assert llm.prompts == []


def test_a_rule_with_a_fault_is_no_answer() -> None:
    """What the rule raises is raised: nothing passes by accident."""
    with pytest.raises(ZeroDivisionError):
        EvidenceGate(predicate=lambda _: 1 / 0 > 0).select(make_nodes(["a"]))


NO_GATES = [
    AccessGuard(require=["tenant"]),
    AccessGuard(require=["tenant"], on_violation="drop"),
    Guard(),
    RecordScore(),
    NearDuplicateFilter(),
    ScopedDedup(),
    TokenBudget(top_n=1),
    ConflictFlagger(llm=ScriptedLLM(["{}"])),
]


@pytest.mark.parametrize("stage", NO_GATES, ids=lambda stage: type(stage).__name__)
@pytest.mark.parametrize("reject_when", ["all", "any"])
def test_what_drops_single_nodes_is_no_gate_to_combine(stage: Stage, reject_when: Any) -> None:
    """All nodes pass a CombinedGate together, those too that a guard in it would stop: it is refused, also nested."""
    with pytest.raises(ValidationError, match=f"{type(stage).__name__} is none"):
        CombinedGate(gates=[stage, DENSE], reject_when=reject_when)
    gate = CombinedGate(gates=[DENSE, SPARSE])
    with pytest.raises(ValidationError, match=f"{type(stage).__name__} is none"):
        gate.gates = [DENSE, stage]


class LeavesOut(Guard):
    """Says that it judges all nodes together, and leaves out single ones."""

    judges_together: ClassVar[bool] = True


def test_a_gate_of_ones_own_must_do_what_it_declares() -> None:
    """A stage that declares itself a gate is one as long as it passes every node or none; else nothing passes."""
    gate = CombinedGate(gates=[DENSE, LeavesOut()], reject_when="any")
    nodes = make_nodes(["ours", "theirs"], scores=[0.9, 0.9], metadata=[{"tenant": "ours"}, {"tenant": "theirs"}])
    assert len(gate.select(nodes[:1]).nodes) == 1
    assert gate.select(nodes[1:]).nodes == []
    with pytest.raises(ConfigurationError, match="LeavesOut left out single nodes"):
        gate.select(nodes)


@pytest.mark.parametrize(
    "bars, scores, count",
    [((0.5, 0.3), [1.0, 0.4, 0.0], 1), ((0.5, 0.5), [1 / 60, 1 / 61], 1), ((0.5, 0.3), [1 / 60, 1 / 61], 2)],
)
@pytest.mark.parametrize("chain", [False, True])
def test_what_two_gates_would_warn_of_is_said_once(
    bars: tuple[float, float], scores: list[float | None], count: int, chain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The same warning about a scale stands once in the result and in the log; another threshold is another warning."""
    inner = CombinedGate(gates=[ScoreGate(min_score=bars[0]), ScoreGate(min_score=bars[1])])
    gate = CombinedGate(gates=[inner, ScoreGate(min_score=bars[0])]) if chain else inner
    for _ in range(2):
        nodes = gate.select(make_nodes(["a"] * len(scores), scores=scores)).nodes
        assert isinstance(nodes, Evidence)
        assert len(nodes.trail.notes.warnings) == count
    assert len(caplog.records) == count


def test_the_rule_comes_first() -> None:
    """An `EvidenceGate` takes its rule without the word."""
    assert EvidenceGate(policy, reason="no policy").predicate is policy


def test_a_judge_is_a_gate_like_others() -> None:
    """A SufficiencyGate passes every node or none, so it combines."""
    judge = ScriptedLLM([{"reason": "Prices only.", "sufficient": False}])
    gate = CombinedGate(gates=[DENSE, SufficiencyGate(llm=judge)], reject_when="any")
    found = gate.select(make_nodes(["a"], scores=[0.9]), "q")
    assert [decision.reason for decision in found.decisions] == ["insufficient_evidence"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: CombinedGate(gates=[DENSE]),
        lambda: CombinedGate(gates=[DENSE, TokenBudget(top_n=1)]),
        lambda: CombinedGate(gates=[DENSE, ScoreGate(min_score=0.1, drop_below=0.2)]),
        lambda: CombinedGate(gates=[DENSE, SPARSE], reject_when="most"),  # type: ignore[arg-type]
        lambda: EvidenceGate(predicate="type == policy"),
        lambda: EvidenceGate(predicate=policy, reason=""),
        EvidenceGate,
    ],
)
def test_impossible_options_are_refused(make: Any) -> None:
    """One gate alone, what is no gate, single drops, unknown words, and rules that can not be called."""
    with pytest.raises(ValidationError):
        make()
