"""What is told of sources that disagree takes room in the window, and never that of all the sources."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore

from llama_index_grounded import AttentionReorder, CitingSynthesizer
from llama_index_grounded.selection import ConflictFlagger
from llama_index_grounded.synthesis.plan import Plan
from llama_index_grounded.testing import ScriptedLLM, make_nodes

QUESTION = "Within how many days can printed books be returned?"
CLAIM = "Printed books can be returned within {} days of delivery to us."
OTHERS = [f"Page {word} is about many other things entirely." for word in ("apples", "pears", "plums")]
REPLY = 100


def flagged(texts: list[str], **options: Any) -> list[NodeWithScore]:
    """Let the filter name the pairs that disagree."""
    nodes = make_nodes(texts, metadata=[{"document_id": f"d{at}"} for at in range(len(texts))])
    return ConflictFlagger(confirm=False, **options).postprocess_nodes(nodes, query_str=QUESTION)


def planned(nodes: list[NodeWithScore], window: int) -> Plan:
    """See what would be sent to a model with that window."""
    llm = ScriptedLLM(["never asked"], context_window=window)
    return CitingSynthesizer(llm, num_output=REPLY).preview(QUESTION, nodes)


def needed(nodes: list[NodeWithScore]) -> int:
    """Count the window that these nodes need with all that is told of them."""
    return planned(nodes, 100_000).tokens + REPLY


def test_a_note_costs_the_lowest_source_at_most() -> None:
    """Two sources that fit alone, and not with the note on them: the better one stays, and nothing is left to tell."""
    alone = needed(make_nodes([CLAIM.format(21), CLAIM.format(14)]))
    nodes = flagged([CLAIM.format(21), CLAIM.format(14)])
    whole = needed(nodes)
    assert alone < whole
    assert [len(planned(nodes, window).nodes) for window in (whole, whole - 1, alone)] == [2, 1, 1]
    plan = planned(nodes, whole - 1)
    assert (plan.refusal, plan.conflicts) == (None, ())
    assert [(one.node_id, one.reason, one.value) for one in plan.decisions if one.action == "dropped"] == [
        ("n1", "over_window", None)
    ]


def test_sources_without_a_conflict_stay() -> None:
    """Of six the last two disagree: without the last there is no note, so that the first five fit."""
    nodes = flagged([*OTHERS, CLAIM.format(21), CLAIM.format(14)])
    plan = planned(nodes, needed(nodes) - 1)
    assert [scored.node.node_id for scored in plan.nodes] == ["n0", "n1", "n2", "n3"]


def test_a_refusal_names_sizes_of_sources_alone() -> None:
    """Where not even one fits, its detail compares the smallest source with what is left for it."""
    nodes = flagged([CLAIM.format(21), CLAIM.format(14)])
    frame = planned(nodes, 100_000).tokens - sum(source.tokens or 0 for source in planned(nodes, 100_000).sources)
    smallest = min(source.tokens or 0 for source in planned(nodes, 100_000).sources)
    notes = planned(nodes, 100_000).shares["notes"]
    plan = planned(nodes, frame - notes + smallest - 1 + REPLY)
    assert plan.refusal is not None
    assert plan.refusal.detail == (
        f"not one source fits: the smallest takes {smallest} tokens, and there are {smallest - 1}"
    )


@given(
    texts=st.lists(st.sampled_from([*OTHERS, *(CLAIM.format(days) for days in (7, 14, 21))]), min_size=1, max_size=6),
    share=st.floats(0, 1),
    moved=st.booleans(),
)
def test_as_many_as_fit_with_what_is_told_of_them(texts: list[str], share: float, *, moved: bool) -> None:
    """The best ones stay, in whatever order they stand: with one more and what is told of it there is no room."""
    nodes = flagged(texts)
    least, most = needed(nodes[:1]), needed(nodes)
    window = least + int(share * (most - least))
    shown = AttentionReorder().postprocess_nodes(nodes, query_str=QUESTION) if moved else nodes
    plan = planned(shown, window)
    kept = len(plan.nodes)
    assert plan.refusal is None
    assert {scored.node.node_id for scored in plan.nodes} == {f"n{at}" for at in range(kept)}
    assert plan.tokens + REPLY <= window
    if kept < len(texts):
        assert needed(flagged(texts[: kept + 1])) > window


@pytest.mark.parametrize("pairs", [1, 3])
def test_what_is_told_is_of_sources_that_are_shown(pairs: int) -> None:
    """The keys of a conflict are keys of the prompt, however many went."""
    nodes = flagged([*(CLAIM.format(days) for days in (7, 14, 21))], max_pairs=pairs)
    for window in range(needed(nodes[:1]), needed(nodes) + 1, 7):
        plan = planned(nodes, window)
        keys = {source.key for source in plan.sources}
        assert all(set(conflict.keys) <= keys for conflict in plan.conflicts)
