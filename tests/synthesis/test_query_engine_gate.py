"""A gate of one's own in the engine's usual chain: it judges in place of the gate that a threshold makes."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, ScoreGate, TokenBudget, default_postprocessors
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection import CombinedGate, EvidenceGate, SourceOrder, Stage, VectorSimilarity
from llama_index_grounded.testing import ScriptedLLM
from tests.synthesis.test_query_engine import OK, QUESTION, WordEmbedding, make_index

CAFE = "Is there a café?"


def make_engine(llm: ScriptedLLM | None = None, **options: Any) -> GroundedQueryEngine:
    """Build an engine that finds all four texts."""
    return GroundedQueryEngine.from_args(make_index(), llm or ScriptedLLM([OK]), similarity_top_k=4, **options)


@pytest.mark.parametrize("question", [QUESTION, CAFE])
@pytest.mark.parametrize("bar", [0.05, 0.5, 0.99, 9.0])
def test_the_gate_of_a_threshold_can_be_given_ready_made(bar: float, question: str) -> None:
    """`ScoreGate(min_score=x)` as ``gate`` does the same as ``min_score=x``."""
    by_score = make_engine(min_score=bar).query(question).grounded.audit()
    by_gate = make_engine(gate=ScoreGate(min_score=bar)).query(question).grounded.audit()
    assert {**by_gate, "elapsed_ms": 0} == {**by_score, "elapsed_ms": 0}


@pytest.mark.parametrize(
    "gate",
    [
        ScoreGate(min_score=0.5, signal=VectorSimilarity(embed_model=WordEmbedding())),
        EvidenceGate(predicate=lambda nodes: nodes[0].score > 0.5, reason="no_policy"),
        CombinedGate(gates=[ScoreGate(min_score=0.5), ScoreGate(min_score=0.6)]),
    ],
    ids=lambda gate: type(gate).__name__,
)
def test_any_gate_judges_before_the_model_is_asked(gate: Stage) -> None:
    """A question that the gate lets pass is answered; another is refused by it, and asks no model."""
    llm = ScriptedLLM([OK])
    engine = make_engine(llm, gate=gate)
    assert engine.query(QUESTION).answerable
    refused = engine.query(CAFE)
    assert (refused.answerable, len(llm.prompts)) == (False, 1)
    assert {decision.action for decision in refused.grounded.decisions} == {"refused"}


def test_the_rest_of_the_chain_stays() -> None:
    """Behind the gate the chain packs for the prompt and the window of the engine's own synthesizer."""
    gate = ScoreGate(min_score=0.1)
    result = make_engine(ScriptedLLM([OK], context_window=1810), gate=gate).query(QUESTION).grounded
    packed_out = {decision.stage for decision in result.decisions if decision.action == "dropped"}
    assert (result.answerable, packed_out) == (True, {TokenBudget.class_name()})


@pytest.mark.parametrize(
    "options, fault",
    [
        ({"min_score": 0.5, "gate": ScoreGate(min_score=0.5)}, "pass one of both"),
        ({"min_score": 0.0, "gate": ScoreGate(min_score=0.5)}, "pass one of both"),
        ({"gate": ScoreGate(min_score=0.5), "node_postprocessors": []}, "^gate: for the usual chain"),
        ({"gate": 0.5}, "gate must be a stage"),
        ({"gate": ScoreGate}, "gate must be a stage"),
    ],
)
def test_a_gate_that_can_not_work_is_refused(options: dict[str, Any], fault: str) -> None:
    """Given twice, beside a ready list of stages, or no stage at all, it fails at construction and says why."""
    with pytest.raises(ConfigurationError, match=fault):
        make_engine(**options)


def test_the_chain_takes_gates_alone() -> None:
    """`default_postprocessors` refuses what is no stage too, and a placement that another order would ignore."""
    with pytest.raises(ConfigurationError, match="gate must be a stage"):
        default_postprocessors(gate=0.4)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="pass one of both"):
        default_postprocessors(placement="end", order=SourceOrder())
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]))
    gate = ScoreGate(min_score=0.4)
    assert default_postprocessors(gate=gate, synthesizer=synthesizer)[0] is gate
