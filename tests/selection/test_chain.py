"""The stages together: laws of the whole chain, and the usual one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from pydantic import ValidationError

from llama_index_grounded import AccessGuard, CitingSynthesizer
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.selection import (
    AttentionReorder,
    ConflictFlagger,
    NearDuplicateFilter,
    PassageMerger,
    ScopedDedup,
    ScoreGate,
    SourceOrder,
    Stage,
    SufficiencyGate,
    TokenBudget,
    default_postprocessors,
)
from llama_index_grounded.selection.paragraphs import fold, split_blocks
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.selection.parts import LONG, bodies, decided, ids, node_lists, run, run_async, seen

A, B, C, LEAD = LONG
HOME = {"document_id": "d", "section": "s", "tenant": "ours"}
SMALL, BIG = f"{A}\n\nKeep the receipt.", f"{A}\n\n{B}\n\n" + "word " * 200
MANY = [BIG, SMALL, f"{B}\n\n{C}", C, A]


# Laws


@given(
    nodes=node_lists(same_section=True),
    limit=st.integers(15, 150),
    top_n=st.none() | st.integers(1, 4),
    level=st.sampled_from(["paragraph", "chunk"]),
)
def test_what_the_budget_rejects_was_never_seen(nodes: list[NodeWithScore], limit: int, top_n: Any, level: Any) -> None:
    """The result equals that of the same chain without the rejected nodes: same order, same texts, same scores."""
    stages = [ScopedDedup(level=level), TokenBudget(max_tokens=limit, top_n=top_n), AttentionReorder()]
    result = run(stages, nodes)
    rejected = {node for _, reason, node in decided(result) if reason in ("over_budget", "top_n")}
    assert seen(run(stages, [scored for scored in nodes if scored.node.node_id not in rejected])) == seen(result)


@given(nodes=node_lists(), limit=st.integers(15, 150), scope=st.sampled_from(["section", "document", "global"]))
def test_no_source_has_a_hole(nodes: list[NodeWithScore], limit: int, scope: Any) -> None:
    """Whatever is missing from a packed node stands in another packed node."""
    given_texts = dict(zip(ids(nodes), bodies(nodes), strict=True))
    packed = run([ScopedDedup(scope=scope), TokenBudget(max_tokens=limit)], nodes)
    prompt = [fold(text) for text in bodies(packed)]
    for scored in packed:
        text = given_texts[scored.node.node_id]
        for block in split_blocks(text):
            if block.kind != "heading":
                assert any(fold(text[block.start : block.end]) in other for other in prompt)


@given(nodes=node_lists(), limit=st.integers(15, 150))
def test_sync_and_async_chains_agree(nodes: list[NodeWithScore], limit: int) -> None:
    """The same nodes and decisions come out of an async chain."""
    stages = [ScoreGate(min_score=0.1, on_missing_score="pass"), ScopedDedup(), TokenBudget(max_tokens=limit)]

    result, other = run(stages, nodes), asyncio.run(run_async(stages, nodes))
    assert seen(other) == seen(result)
    assert decided(other) == decided(result)


@pytest.mark.timeout(120)
def test_the_result_does_not_depend_on_the_hash_seed() -> None:
    """A process with another hash seed chooses and decides the same."""
    code = (
        "from llama_index_grounded.selection import default_postprocessors\n"
        "from llama_index_grounded.selection.trail import collect\n"
        "from llama_index_grounded.testing import make_nodes\n"
        f"nodes = make_nodes({MANY!r}, metadata={HOME!r})\n"
        "for stage in default_postprocessors(min_score=0.1, max_tokens=120, scope='global'):\n"
        "    nodes = stage.postprocess_nodes(nodes)\n"
        "print([scored.node.text for scored in nodes], collect(nodes, None).trail.decisions)"
    )
    seed = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", code], env=seed, check=True, capture_output=True, text=True)
    result = run(default_postprocessors(min_score=0.1, max_tokens=120, scope="global"), make_nodes(MANY, metadata=HOME))
    assert "over_budget" in other.stdout
    assert other.stdout.strip() == f"{bodies(result)} {result.trail.decisions}"


# The usual chain


def test_ranks_of_four_packed_nodes() -> None:
    """Ranks 0 to 3 are packed as 0, 2, 3, 1."""
    nodes = make_nodes([A, B, C, LEAD])
    assert ids(run(default_postprocessors(min_score=0.1, max_tokens=500), nodes)) == ["n0", "n2", "n3", "n1"]


def test_the_usual_chain_has_what_was_asked_for() -> None:
    """A gate needs a bar and a budget a limit; field names reach every stage."""
    keys = MetadataKeys(document_id="doc")
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=["text"]))
    assert [type(stage) for stage in default_postprocessors()] == [ScopedDedup, AttentionReorder]
    full = default_postprocessors(min_score=0.0, top_n=3, scope="document", placement="end", keys=keys)
    assert [type(stage) for stage in full] == [ScoreGate, ScopedDedup, TokenBudget, AttentionReorder]
    assert all(isinstance(stage, Stage) and stage.keys == keys for stage in full)
    assert [stage.to_dict().get("scope") for stage in full][1] == "document"
    assert [stage.to_dict().get("placement") for stage in full][3] == "end"
    budget = default_postprocessors(synthesizer=synthesizer, max_tokens=900, top_n=3)[1]
    assert isinstance(budget, TokenBudget)
    assert (budget.for_prompt, budget.max_tokens, budget.top_n) == (True, 900, 3)


@pytest.mark.parametrize(
    "options", [{"min_score": float("nan")}, {"max_tokens": 0}, {"top_n": -1}, {"scope": "page"}], ids=str
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """What a stage refuses, the usual chain refuses when it is built."""
    with pytest.raises(ValidationError):
        default_postprocessors(**options)


@pytest.mark.parametrize(
    "message, options",
    [
        ("order must be a stage, such as SourceOrder(), not the class SourceOrder", {"order": SourceOrder}),
        ("gate must be a stage, such as ScoreGate(min_score=...), not float", {"gate": 0.3}),
        ("gate must be a stage, such as ScoreGate(min_score=...), not the class ScoreGate", {"gate": ScoreGate}),
        ("guard must be an AccessGuard, not ScoreGate", {"guard": ScoreGate(min_score=0.1)}),
        ("passages must be a PassageMerger, not bool", {"passages": True}),
        ("near_duplicates must be a NearDuplicateFilter, not bool", {"near_duplicates": True}),
        ("sufficiency must be a SufficiencyGate, not ScriptedLLM", {"sufficiency": ScriptedLLM(["{}"])}),
        ("conflicts must be a ConflictFlagger, not bool", {"conflicts": True}),
        ("conflicts must be a ConflictFlagger, not SufficiencyGate", {"conflicts": SufficiencyGate()}),
        ("synthesizer must be a CitingSynthesizer, not str", {"synthesizer": "compact"}),
        (
            "synthesizer must be a CitingSynthesizer, not the class CitingSynthesizer",
            {"synthesizer": CitingSynthesizer},
        ),
    ],
)
def test_a_part_of_another_kind_is_refused_by_its_name(message: str, options: dict[str, Any]) -> None:
    """What can not do the work of its place is refused when the chain is built, and not put into it."""
    with pytest.raises(ConfigurationError) as caught:
        default_postprocessors(**options)
    assert str(caught.value) == message


def test_awkward_nodes_get_through_the_whole_chain() -> None:
    """No metadata, no text, no score, not-a-number, the same node twice: nothing is lost without a decision."""
    awkward = make_nodes([A, "", B, A], scores=[0.9, 0.8, None, float("nan")], ids=["a", "blank", "b", "a"])
    result = run(default_postprocessors(min_score=0.5, max_tokens=500), awkward)
    assert seen(result) == [("a", A, "0.9"), ("b", B, "None")]
    assert decided(result) == [
        ("kept", "best_score", "a"),
        ("dropped", "repeated_chunk", "a"),
        ("dropped", "empty_text", "blank"),
    ]


def test_every_stage_has_its_place() -> None:
    """Guard, gate, passages, dedup, near-duplicates, budget with room for notes, sufficiency, conflicts, order."""
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=["text"]))
    conflicts = ConflictFlagger(confirm=False)
    chain = default_postprocessors(
        order=SourceOrder(),
        conflicts=conflicts,
        sufficiency=SufficiencyGate(),
        near_duplicates=NearDuplicateFilter(),
        passages=PassageMerger(),
        gate=ScoreGate(min_score=0.3),
        guard=AccessGuard(require=["tenant"]),
        synthesizer=synthesizer,
    )
    assert [type(stage).__name__ for stage in chain] == [
        *("AccessGuard", "ScoreGate", "PassageMerger", "ScopedDedup", "NearDuplicateFilter", "TokenBudget"),
        *("SufficiencyGate", "ConflictFlagger", "SourceOrder"),
    ]
    budget = chain[5]
    assert isinstance(budget, TokenBudget)
    assert budget.note_tokens == conflicts.note_tokens
    with pytest.raises(ConfigurationError):
        default_postprocessors(min_score=0.3, gate=ScoreGate(min_score=0.3))
