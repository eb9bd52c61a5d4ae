"""One chunk that came twice, with a score and without: what one copy tells counts for the chunk, in any order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index_grounded.selection import (
    MetadataScore,
    NearDuplicateFilter,
    RecordScore,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
)
from llama_index_grounded.selection.carrier import rank_of
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.parts import WordEmbedding, also_in, ids, run

TEXTS = {
    "a": "Printed books can be returned within twenty-one days of delivery if they are unread.",
    "b": "A refund is paid to the card that was used for the order as soon as the parcel was opened.",
}
FILTERS = {
    "dedup": ScopedDedup(),
    "by position": ScopedDedup(match="position"),
    "near": NearDuplicateFilter(),
    "by embedding": NearDuplicateFilter(method="embedding", embed_model=WordEmbedding()),
}
known_or_not = st.sampled_from([0.8, 0.3, None, float("nan"), float("-inf")])


def chunks(*came: tuple[str, float | None]) -> list[NodeWithScore]:
    """Make a list in which one id is one chunk."""
    return make_nodes([TEXTS[name] for name, _ in came], ids=[n for n, _ in came], scores=[score for _, score in came])


def scored(nodes: list[NodeWithScore]) -> list[tuple[str, float | None]]:
    """Return ids and scores."""
    return [(one.node.node_id, one.score) for one in nodes]


# Filters


@pytest.mark.parametrize("stage", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("came", [[0.8, None], [None, 0.8], [0.3, 0.8], [float("nan"), 0.3, 0.8, None]], ids=str)
def test_the_copy_with_the_best_score_stays(stage: Any, came: list[float | None]) -> None:
    """In whatever order the copies come, the known and best score is kept, and the others are reported."""
    selection = stage.select(chunks(*[("a", score) for score in came]))
    assert scored(selection.nodes) == [("a", 0.8)]
    assert [(one.action, one.node_id, one.twin) for one in selection.decisions] == [("dropped", "a", "a")] * (
        len(came) - 1
    )


@pytest.mark.parametrize("stage", FILTERS.values(), ids=FILTERS)
def test_the_copy_that_stays_has_the_best_rank_of_all(stage: Any) -> None:
    """A chunk stands where its first copy stood, so a score moves nothing."""
    found = stage.select(chunks(("a", None), ("b", 0.9), ("a", 0.8))).nodes
    assert scored(found) == [("a", 0.8), ("b", 0.9)]
    assert [rank_of(one) for one in found] == [0, 1]


@pytest.mark.parametrize("stage", FILTERS.values(), ids=FILTERS)
@given(came=st.lists(st.tuples(st.sampled_from("ab"), known_or_not), max_size=6))
def test_what_stays_of_copies_depends_on_no_order(stage: Any, came: list[tuple[str, float | None]]) -> None:
    """Forward and backward, the same chunks stay with the same scores where any is known."""
    forward, backward = (
        {name: score for name, score in scored(stage.select(chunks(*way)).nodes) if score in (0.8, 0.3)}
        for way in (came, came[::-1])
    )
    assert forward == backward


def test_near_duplicates_keep_the_laws_with_copies() -> None:
    """A filter that exchanges copies is still a filter."""
    cases = {"copies": chunks(("a", None), ("b", 0.9), ("a", 0.8), ("b", None))}
    check_postprocessor(NearDuplicateFilter, cases=cases)


def test_other_text_under_one_id_is_another_chunk() -> None:
    """Near-duplicates of one id but with other words are ranked: the first one stays, with the score that it has."""
    nodes = make_nodes([TEXTS["a"], f"{TEXTS['a'].upper()}!"], ids=["a", "a"], scores=[None, 0.8])
    assert scored(NearDuplicateFilter().postprocess_nodes(nodes)) == [("a", None)]


def test_a_copy_lists_no_document_of_its_own_and_brings_nothing_back() -> None:
    """A chunk that came twice is in one document, and a budget without room for it has none for its copy."""
    assert also_in(run([NearDuplicateFilter()], chunks(("a", None), ("a", 0.8)))) == [()]
    packed = run([NearDuplicateFilter(), TokenBudget(max_tokens=1)], chunks(("a", None), ("a", 0.8)))
    assert [one.reason for one in packed.trail.decisions] == ["near_duplicate", "over_budget"]


# Gate


@pytest.mark.parametrize("came", [[("b", 0.8), ("a", 0.3), ("a", None)], [("a", None), ("a", 0.3), ("b", 0.8)]])
def test_a_weak_chunk_does_not_pass_as_its_copy_without_a_score(came: list[tuple[str, float | None]]) -> None:
    """``drop_below`` takes the score that is known of the chunk; the copy is reported with it."""
    selection = ScoreGate(min_score=0.5, drop_below=0.5).select(chunks(*came))
    assert scored(selection.nodes) == [("b", 0.8)]
    gone = [(one.node_id, one.reason, one.value) for one in selection.decisions if one.action == "dropped"]
    assert gone == [("a", "low_score", 0.3)] * 2


def test_a_strong_chunk_keeps_its_copy_without_a_score() -> None:
    """Of three copies only the one that is weak itself goes: the best score speaks for the one without."""
    selection = ScoreGate(min_score=0.5, drop_below=0.5).select(chunks(("a", 0.8), ("a", 0.3), ("a", None)))
    assert scored(selection.nodes) == [("a", 0.8), ("a", None)]


def test_copies_of_nothing_but_a_weak_chunk_are_refused() -> None:
    """Where each copy is below ``drop_below`` all go, the one without a score too."""
    selection = ScoreGate(min_score=0.1, drop_below=0.5).select(chunks(("a", None), ("a", 0.3)))
    assert selection.nodes == []
    assert [(one.action, one.reason, one.value) for one in selection.decisions] == [("refused", "low_score", 0.3)] * 2


def test_a_score_says_nothing_of_other_text_under_the_same_id() -> None:
    """Other text is another chunk: its score is unknown, and it stays."""
    nodes = make_nodes([TEXTS["b"], TEXTS["a"], f"{TEXTS['a']} New."], ids=["b", "a", "a"], scores=[0.8, 0.3, None])
    assert scored(ScoreGate(min_score=0.5, drop_below=0.5).select(nodes).nodes) == [("b", 0.8), ("a", None)]


def test_a_signal_speaks_for_the_chunk_too() -> None:
    """A number in the metadata of one copy is known of the other one."""
    nodes = chunks(("b", None), ("a", None), ("a", None))
    nodes[0].node.metadata["dense"], nodes[1].node.metadata["dense"] = 0.8, 0.3
    nodes[2].node.metadata["document_id"] = nodes[1].node.metadata["document_id"] = "d"
    gate = ScoreGate(min_score=0.5, drop_below=0.5, signal=MetadataScore("dense"))
    assert ids(gate.postprocess_nodes(nodes)) == ["b"]


def test_what_adds_neighbours_stands_behind_the_gate() -> None:
    """LlamaIndex puts a neighbour without score and note in the place of a hit, so a gate behind it judges too little.

    In front of it, with the note or without, the gate sees what the retriever found.
    """
    nodes = [TextNode(id_=f"c{place}", text=f"Sentence {place} is of another subject.") for place in range(4)]
    for before, after in itertools.pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    neighbours = PrevNextNodePostprocessor(docstore=store, mode="both")
    note, gate = RecordScore("dense"), ScoreGate(min_score=0.75, signal=MetadataScore("dense"))
    hits = [NodeWithScore(node=nodes[1], score=0.8), NodeWithScore(node=nodes[2], score=0.7)]
    assert ids(run([note, neighbours, gate], hits)) == []
    assert ids(run([note, gate, neighbours], hits)) == ["c0", "c1", "c2", "c3"]
