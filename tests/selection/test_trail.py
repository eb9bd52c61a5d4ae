"""Decisions find their way from stage to synthesizer, past anything in between, and into no other query."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.evidence import STAMP
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection import AttentionReorder, ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.selection.trail import FOREIGN, collect
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import (
    LONG,
    Foreign,
    ForeignAsync,
    backwards,
    bodies,
    chain_around,
    drop_all,
    ids,
    in_span,
    look_and_pass,
    node_lists,
    rebuild,
    redact_in_place,
    repeating,
    rewrap,
    run,
    run_async,
)

A, B, C, LEAD = LONG
HOME = {"document_id": "d"}


def reasons(decisions: tuple[Decision, ...]) -> list[tuple[str, str, str]]:
    """Return who decided what about which node, moves left out."""
    return [(d.stage, d.reason, d.node_id) for d in decisions if d.action != "moved"]


KEPT = ("ScoreGate", "best_score", "n0")
CUT = ("ScopedDedup", "duplicate", "n1")


FOREIGNERS: list[tuple[Any, list[str], list[tuple[str, str, str]]]] = [
    (Foreign(act=rewrap), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (Foreign(act=look_and_pass), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (Foreign(act=redact_in_place), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (ForeignAsync(act=rewrap), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (
        Foreign(act=backwards),
        ["n2", "n1"],
        [("TokenBudget", "duplicate", "n0"), ("TokenBudget", "twin_rejected", "n1")],
    ),
    (
        SimilarityPostprocessor(similarity_cutoff=0.85),
        ["n0"],
        [(FOREIGN, "not_returned", "n1"), (FOREIGN, "not_returned", "n2")],
    ),
    (Foreign(act=drop_all), [], [(FOREIGN, "not_returned", name) for name in ("n0", "n1", "n2")]),
    (ForeignAsync(act=drop_all), [], [(FOREIGN, "not_returned", name) for name in ("n0", "n1", "n2")]),
]


@pytest.mark.parametrize(
    "between, kept, later", FOREIGNERS, ids=lambda value: value.class_name() if isinstance(value, Foreign) else None
)
@pytest.mark.parametrize("in_async", [False, True])
def test_every_decision_arrives_past_a_foreign_postprocessor(
    between: Any, kept: list[str], later: Any, in_async: bool
) -> None:
    """What our stages decided is complete and in order, sync and async, also when no node survives."""
    bundle = QueryBundle("q")
    evidence = (
        asyncio.run(run_async(chain_around(between), repeating(), bundle))
        if in_async
        else run(chain_around(between), repeating(), bundle)
    )
    assert ids(evidence) == kept
    assert reasons(evidence.trail.decisions) == [KEPT, CUT, *later]


def test_decisions_survive_new_nodes_of_the_same_texts() -> None:
    """A compressor inside of an engine that rebuilds every node loses the nodes, not the decisions."""
    evidence = asyncio.run(in_span(run_async(chain_around(Foreign(act=rebuild)), repeating())))
    assert bodies(evidence) == [A, B]
    assert reasons(evidence.trail.decisions)[:2] == [KEPT, CUT]


def test_the_last_word_may_be_a_foreign_one() -> None:
    """A postprocessor after our last stage does not keep the decisions from the synthesizer."""
    stages = [ScoreGate(min_score=0.1), Foreign(act=drop_all)]
    assert reasons(run(stages, repeating(), QueryBundle("q")).trail.decisions)[0] == KEPT


def test_a_refusal_passes_through_the_rest_of_the_chain() -> None:
    """Once a gate has refused, later stages and a second use of the same gate keep its decisions."""
    gate = ScoreGate(min_score=0.95)
    evidence = run([gate, ScopedDedup(), gate, TokenBudget(top_n=1)], repeating(), QueryBundle("q"))
    assert evidence == []
    assert [reason for _, reason, _ in reasons(evidence.trail.decisions)] == ["low_score"] * 3


def test_a_node_of_another_query_is_a_new_one() -> None:
    """Nodes that come from elsewhere with a stamp of their own are not taken for those of this query."""
    bundle = QueryBundle("q")
    ours = ScopedDedup().postprocess_nodes(make_nodes([A, B]), bundle)
    theirs = ScopedDedup().postprocess_nodes(make_nodes([C], ids=["theirs"]), QueryBundle("other"))
    evidence = run([AttentionReorder(placement="start")], [*theirs, ours[1]], bundle)
    assert ids(evidence) == ["theirs", "n1"]
    assert reasons(evidence.trail.decisions) == [(FOREIGN, "not_returned", "n0")]


@given(nodes=node_lists(), cutoff=st.sampled_from([0.0, 0.3, 0.6]))
def test_over_the_whole_chain_no_node_disappears_silently(nodes: list[NodeWithScore], cutoff: float) -> None:
    """Kept, dropped and refused nodes together are the nodes that came, restored ones counted once."""
    stages = [
        ScoreGate(min_score=0.1, on_missing_score="pass"),
        ScopedDedup(scope="global"),
        SimilarityPostprocessor(similarity_cutoff=cutoff),
        TokenBudget(max_tokens=60),
        AttentionReorder(),
    ]
    evidence = run(stages, nodes, QueryBundle("q"))
    gone = {d.node_id for d in evidence.trail.decisions if d.action in ("dropped", "refused")}
    assert gone | set(ids(evidence)) == set(ids(nodes))


# Ranks


def test_fewer_nodes_keep_their_ranks_and_another_order_is_a_new_ranking() -> None:
    """A filter in between changes no rank; a reranker does."""
    nodes = make_nodes(["a", "b", "c"])
    fewer = [ScopedDedup(), Foreign(act=lambda nodes: [nodes[0], nodes[2]]), AttentionReorder(placement="end")]
    assert ids(run(fewer, nodes, QueryBundle("q"))) == ["n2", "n0"]
    assert ids(
        run([ScopedDedup(), Foreign(act=backwards), AttentionReorder(placement="start")], nodes, QueryBundle("q"))
    ) == ["n2", "n1", "n0"]


def test_an_order_by_another_postprocessor_is_respected() -> None:
    """LongContextReorder between our stages loses and doubles nothing."""
    stages = [ScoreGate(min_score=0.1), LongContextReorder(), ScopedDedup(), TokenBudget(max_tokens=500)]
    evidence = run(stages, make_nodes([A, B, C]), QueryBundle("q"))
    assert ids(evidence) == ids(LongContextReorder().postprocess_nodes(make_nodes([A, B, C])))


def test_the_synthesizer_keeps_the_ranks_of_known_nodes() -> None:
    """A foreign order after our last stage is the prompt's order; new nodes rank after all known ones."""
    bundle = QueryBundle("q")
    nodes = ScopedDedup().postprocess_nodes(make_nodes(["a", "b"]), bundle)
    evidence = collect([*make_nodes(["new"], ids=["new"]), *backwards(nodes)], bundle)
    assert [(scored.node.node_id, scored.node.metadata[STAMP]["rank"]) for scored in evidence] == [
        ("new", 2),
        ("n1", 1),
        ("n0", 0),
    ]
