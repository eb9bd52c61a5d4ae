"""What leaves the window is gone: its text, its key, and every word about whom it disagreed with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import QueryBundle

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.selection import ConflictFlagger
from llama_index_grounded.synthesis import Plan
from llama_index_grounded.testing import ScriptedLLM, make_nodes

QUESTION = "How many days do I have to return a book?"
TEXTS = [f"Books can be returned within {days} days of delivery." for days in (21, 14, 30)]
FILLER = "The store is open every day but on holidays, and gives advice on books of all kinds. "


def plan_of(texts: list[str], window: int, only: set[str] | None = None) -> Plan:
    """Look for conflicts, leave all but some nodes out by hand if wanted, and preview under a window."""
    query = QueryBundle(QUESTION)
    nodes = make_nodes(texts, metadata=[{"document_id": f"d{place}"} for place in range(len(texts))])
    flagged = ConflictFlagger(confirm=False).postprocess_nodes(nodes, query)
    left = [scored for scored in flagged if only is None or scored.node.node_id in only]
    return CitingSynthesizer(ScriptedLLM(["x"], context_window=window)).preview(query, left)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*TEXTS, FILLER, FILLER * 4]), min_size=1, max_size=6), st.integers(1400, 1900))
def test_what_leaves_the_window_was_never_there(texts: list[str], window: int) -> None:
    """Messages, conflicts and tokens are those of the nodes that stay, as if the others had not come."""
    plan = plan_of(texts, window)
    kept = {source.node_id for source in plan.sources}
    if not kept:
        assert (plan.messages, plan.conflicts, plan.tokens) == ((), (), 0)
        return
    alone = plan_of(texts, window, only=kept)
    assert (plan.messages, plan.conflicts, plan.tokens) == (alone.messages, alone.conflicts, alone.tokens)
    assert plan.shares == alone.shares
    assert plan.allowance is not None
    assert plan.tokens <= plan.allowance


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.integers(1400, 1900))
def test_conflicts_name_sources_that_are_shown(texts: list[str], window: int) -> None:
    """Each key of a conflict is that of a source in the prompt, and its text says what the conflict is about."""
    plan = plan_of(texts, window)
    shown = {source.key: scored.node.get_content() for source, scored in zip(plan.sources, plan.nodes, strict=True)}
    for conflict in plan.conflicts:
        one, other = (shown[key] for key in conflict.keys)
        assert one != other


def fitting(texts: list[str], count: int) -> int:
    """Find a window in which only so many of the nodes fit."""
    return next(window for window in range(1900, 1400, -1) if len(plan_of(texts, window).sources) == count)


@pytest.mark.parametrize("count, told", [(3, [("S1", "S3")]), (2, []), (1, [])])
def test_a_conflict_goes_with_one_of_its_sources(count: int, told: list[tuple[str, str]]) -> None:
    """Where the lower-ranked of two that disagree does not fit, the model is told of no conflict."""
    texts = [TEXTS[0], FILLER, TEXTS[1]]
    plan = plan_of(texts, fitting(texts, count))
    assert [conflict.keys for conflict in plan.conflicts] == told
    prompt = "".join(message.content or "" for message in plan.messages)
    assert ("may disagree" in prompt) is bool(told)
    assert (plan.shares["notes"] > 0) is bool(told)


def test_the_keys_of_a_conflict_move_with_its_sources() -> None:
    """In front of them a node of the lowest rank has left, so S2 and S3 are S1 and S2 in the notes too."""
    query = QueryBundle(QUESTION)
    nodes = make_nodes([TEXTS[0], TEXTS[1], FILLER * 3], metadata=[{"document_id": name} for name in "abc"])
    flagged = ConflictFlagger(confirm=False).postprocess_nodes(nodes, query)
    last_first = [flagged[2], flagged[0], flagged[1]]
    plans = [
        CitingSynthesizer(ScriptedLLM(["x"], context_window=window)).preview(query, last_first)
        for window in range(1900, 1400, -1)
    ]
    two = next(plan for plan in plans if len(plan.sources) == 2)
    assert [conflict.keys for plan in (plans[0], two) for conflict in plan.conflicts] == [("S2", "S3"), ("S1", "S2")]
    assert "Sources S1 and S2 may disagree" in (two.messages[-1].content or "")
