"""A passage that does not fit is taken apart: joining chunks never costs the best of them its place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import included_text
from llama_index_grounded.selection import AttentionReorder, RecordScore, ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.selection.packing import OnOversize
from llama_index_grounded.selection.passages import PassageMerger
from llama_index_grounded.testing import make_nodes
from tests.selection.cuts import HOME, cut, place
from tests.selection.parts import (
    LONG,
    Foreign,
    backwards,
    bodies,
    decided,
    ids,
    in_span,
    look_and_pass,
    redact_in_place,
    rewrap,
    room_for,
    run,
    run_async,
)

A, B, C, D = LONG
DOCUMENT = "\n\n".join(LONG)
STARTS = [DOCUMENT.index(text) for text in LONG]


def chunks(*, best: int = 0, tail: str = "") -> list[NodeWithScore]:
    """Cut the document into two chunks that share paragraph B: A and B, then B, C, D and a tail."""
    ranges = [(0, STARTS[2] - 2), (STARTS[1], len(DOCUMENT + tail))]
    return cut(DOCUMENT + tail, ranges if best == 0 else ranges[::-1])


def fits(*texts: str) -> TokenBudget:
    """Make a budget that has room for just these texts."""
    return TokenBudget(max_tokens=room_for(*texts, **HOME))


@st.composite
def paragraph_chunks(draw: st.DrawFn) -> list[NodeWithScore]:
    """Draw chunks of whole paragraphs of two documents, the best first."""
    nodes: list[NodeWithScore] = []
    for _ in range(draw(st.integers(1, 6))):
        first = draw(st.integers(0, 3))
        last = draw(st.integers(first, 3))
        metadata = {**HOME, "document_id": draw(st.sampled_from(["d", "e"]))}
        range_ = (STARTS[first], STARTS[last] + len(LONG[last]))
        nodes += cut(DOCUMENT, [range_], metadata=metadata, ids=[f"n{len(nodes)}"])
    return nodes


@settings(max_examples=60)
@given(paragraph_chunks(), st.booleans(), st.sampled_from(["skip", "stop"]), st.integers(0, 60))
def test_the_best_chunk_is_packed_with_and_without(
    nodes: list[NodeWithScore], dedups: bool, on_oversize: OnOversize, more: int
) -> None:
    """Where the best chunk fits alone, its text is packed, whatever it was joined with and however tight the rest."""
    best = included_text(nodes[0].node)
    budget = TokenBudget(max_tokens=room_for(best, **HOME) + more, on_oversize=on_oversize)
    stages = [*([ScopedDedup()] if dedups else []), budget]
    without, joined = run(stages, nodes), run([PassageMerger(), *stages], nodes)
    assert bodies(without)[0].startswith(best)
    assert best in bodies(joined)[0]
    assert joined[0].node.node_id == "n0"


@settings(max_examples=60)
@given(paragraph_chunks(), st.integers(20, 200))
def test_no_chunk_disappears_over_the_whole_chain(nodes: list[NodeWithScore], limit: int) -> None:
    """Each chunk is packed, or was dropped by the merger, the dedup or the budget; nothing is packed twice."""
    result = run([PassageMerger(), ScopedDedup(), TokenBudget(max_tokens=limit), AttentionReorder()], nodes)
    packed = ids(result)
    gone = {decision.node_id for decision in result.trail.decisions if decision.action == "dropped"}
    assert set(packed) | gone == set(ids(nodes))
    assert len(packed) == len(set(packed))
    assert sum(room_for(text, **HOME) for text in bodies(result)) <= limit


def test_a_passage_that_fits_stays_one() -> None:
    """Room for the passage is all that it needs, to the token."""
    assert bodies(run([PassageMerger(), fits(DOCUMENT)], chunks())) == [DOCUMENT]


@pytest.mark.parametrize("in_async", [False, True])
def test_the_parts_of_a_rejected_passage_are_packed_alone(in_async: bool) -> None:
    """One token short of the passage, the best chunk is packed as it was; the next one did not fit beside it."""
    stages = [PassageMerger(), TokenBudget(max_tokens=room_for(DOCUMENT, **HOME) - 1)]
    nodes = chunks()
    result = asyncio.run(in_span(run_async(stages, nodes))) if in_async else run(stages, nodes)
    assert bodies(result) == [f"{A}\n\n{B}"]
    assert place(result[0]) == (0, STARTS[2] - 2)
    assert decided(result)[2:] == [("shortened", "passage_split", "n0")]


def test_a_best_part_that_does_not_fit_leaves_room_for_the_others() -> None:
    """Parts wait for their turn by rank: the best is too large, a better-ranked stranger comes first, then the rest."""
    best, small = chunks(best=1, tail="word " * 200)
    stranger = make_nodes([C], ids=["x"], metadata={**HOME, "document_id": "x"})
    result = run([PassageMerger(), fits(f"{A}\n\n{B}", C)], [best, *stranger, small])
    assert (ids(result), bodies(result)) == (["x", "n1"], [C, f"{A}\n\n{B}"])
    assert decided(result)[2:] == [("dropped", "over_budget", "n0"), ("restored", "twin_rejected", "n1")]


def test_a_text_that_a_part_repeats_is_removed_from_it() -> None:
    """Dedup is asked again about the parts: what stood once in the passage is not packed twice."""
    stages = [PassageMerger(), ScopedDedup(), fits(f"{A}\n\n{B}", f"{C}\n\n{D}")]
    spacious = cut(DOCUMENT + "\n\n" + "word " * 200, [(0, len(DOCUMENT) + 1000)], ids=["long"])
    two = chunks()
    result = run(stages, [two[0], two[1], *spacious])
    assert bodies(result) == [f"{A}\n\n{B}", f"{C}\n\n{D}"]


def test_a_paragraph_comes_back_from_the_part_that_is_not_packed() -> None:
    """Dedup took a paragraph in favour of the passage, and the chunk that held it is rejected: it comes back."""
    other = make_nodes([f"{C}\n\nKeep the receipt."], ids=["x"], metadata=HOME)
    stages = [PassageMerger(), ScopedDedup(), fits(f"{A}\n\n{B}", f"{C}\n\nKeep the receipt.")]
    result = run(stages, [*chunks(tail="word " * 200), *other])
    assert bodies(result) == [f"{A}\n\n{B}", f"{C}\n\nKeep the receipt."]


def test_a_passage_that_dedup_shortened_is_taken_apart_too() -> None:
    """A better node holds a paragraph of the passage: the parts come back without it, too."""
    before = make_nodes([A], ids=["x"], metadata=HOME)
    result = run([PassageMerger(), ScopedDedup(), fits(A, B)], [*before, *chunks()])
    assert bodies(result) == [A, B]


@pytest.mark.parametrize("between", [TokenBudget(top_n=9), RecordScore()], ids=lambda stage: type(stage).__name__)
def test_every_part_comes_back_past_a_stage_that_judges_nothing(between: BaseNodePostprocessor) -> None:
    """A first budget with room for all looks at sizes only: the second one takes the passage apart all the same."""
    stages = [PassageMerger(), between, fits(f"{A}\n\n{B}")]
    assert bodies(run(stages, chunks(best=1))) == [f"{A}\n\n{B}"]


# What must not come back


BETWEEN = [Foreign(act=look_and_pass), Foreign(act=rewrap), ScoreGate(min_score=0.1)]


@pytest.mark.parametrize("between", BETWEEN, ids=["look", "rewrap", "stage"])
def test_only_the_best_part_comes_back_past_a_judge(between: BaseNodePostprocessor) -> None:
    """Somebody has judged the passage, not its other chunks: it can only be shortened to its best one."""
    small = fits(f"{A}\n\n{B}")
    assert bodies(run([PassageMerger(), between, small], chunks())) == [f"{A}\n\n{B}"]
    assert bodies(run([PassageMerger(), between, small], chunks(best=1))) == []
    assert bodies(run([PassageMerger(), small], chunks(best=1))) == [f"{A}\n\n{B}"]


def test_a_redaction_of_a_passage_is_not_undone() -> None:
    """A passage whose text somebody has changed since is rejected as a whole."""
    document = f"{A}\n\nGift cards of M. Example, number 4711."
    nodes = cut(document, [(0, len(document)), (20, len(document))])
    nodes += cut(document + "word " * 200, [(60, len(document) + 900)], ids=["n2"])
    result = run([PassageMerger(), Foreign(act=redact_in_place), fits(document)], nodes)
    assert bodies(result) == []


def test_what_was_written_on_a_passage_stays_on_its_best_part() -> None:
    """A new score, rank, title and deleted field of the passage hold for the chunk that is left of it."""

    def annotate(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        for scored in nodes:
            scored.score = 0.01
            scored.node.metadata["title"] = "Rewritten"
            scored.node.metadata.pop("author", None)
        return backwards(nodes)

    fields: list[dict[str, Any]] = [{**HOME, "author": "M.", "window": name} for name in ("one", "two")]
    nodes = chunks()
    for scored, metadata in zip(nodes, fields, strict=True):
        scored.node.metadata = metadata
    stranger = make_nodes([C], ids=["x"], metadata={**HOME, "document_id": "x"})
    budget = TokenBudget(max_tokens=room_for(f"{A}\n\n{B}", C, title="Rewritten", **HOME))
    result = run([PassageMerger(), Foreign(act=annotate), budget], [*nodes, *stranger])
    assert (ids(result), bodies(result)) == (["x", "n0"], [C, f"{A}\n\n{B}"])
    own = {name: value for name, value in result[1].node.metadata.items() if isinstance(value, str)}
    assert own == {**HOME, "title": "Rewritten", "window": "one"}
    assert result[1].score == 0.01


def test_a_text_that_was_dropped_with_its_node_does_not_come_back_in_a_part() -> None:
    """A filter dropped the node that held a paragraph: a passage that is taken apart does not bring it back."""
    before = make_nodes([A], ids=["x"], metadata=HOME)
    stages = [PassageMerger(), ScopedDedup(), Foreign(act=lambda nodes: nodes[1:]), fits(B)]
    assert bodies(run(stages, [*before, *chunks()])) == [B]


def test_a_score_that_nobody_changed_is_the_best_parts_own() -> None:
    """The passage has the best known score of its chunks; alone, its best-ranked chunk has its own again."""
    nodes = chunks()
    nodes[0].score, nodes[1].score = 0.4, 0.9
    assert [scored.score for scored in run([PassageMerger()], nodes)] == [0.9]
    assert [scored.score for scored in run([PassageMerger(), fits(f"{A}\n\n{B}")], nodes)] == [0.4]


def test_joined_chunks_do_not_count_as_dropped_by_somebody() -> None:
    """Behind a dedup, a paragraph that was removed in favour of a joined chunk comes back when that is rejected."""
    touching = cut(DOCUMENT + "word " * 200, [(0, STARTS[1]), (STARTS[1], len(DOCUMENT) + 999)])
    last = make_nodes([f"{B}\n\nKeep the receipt."], ids=["y"], metadata=HOME)
    expected = [f"{A}\n\n", f"{B}\n\nKeep the receipt."]
    assert bodies(run([ScopedDedup(), PassageMerger(), fits(*expected)], [*touching, *last])) == expected
