"""Repeated text is paid for once, and nothing that an answer may need is lost."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import ImageNode, NodeWithScore
from pydantic import ValidationError

from llama_index_grounded.evidence import MetadataKeys, identity, included_text
from llama_index_grounded.selection import AttentionReorder, ScopedDedup
from llama_index_grounded.selection.paragraphs import fold, split_blocks
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.parts import LONG, bodies, ids, node_lists, seen

A, B, C, LEAD = LONG
HOME = {"document_id": "returns", "section": "window"}
STAGES = st.builds(
    ScopedDedup,
    scope=st.sampled_from(["section", "document", "global"]),
    level=st.sampled_from(["paragraph", "chunk"]),
)

DEADLINE = "Remaining items are drained only while the shutdown deadline allows it."
CANCELLATION = "When it expires, active I/O is cancelled and unfinished work stays on the durable retry path."
TOKEN = "The deadline token is passed to each asynchronous operation by the worker pool."
RUNBOOK = {
    "first": f"## Shutdown\n\n{DEADLINE}\n\n{CANCELLATION}",
    "second": f"## Shutdown\n\n{DEADLINE}\n\n{CANCELLATION}\n\n{TOKEN}",
}


def dedup(
    texts: Sequence[str], metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] = HOME, **options: Any
) -> list[str]:
    """Return the texts that are left."""
    return bodies(ScopedDedup(**options).postprocess_nodes(make_nodes(texts, metadata=metadata)))


def homes(nodes: Sequence[NodeWithScore], scope: str) -> list[tuple[object, NodeWithScore]]:
    """Return the nodes with the scope that each stands in."""
    found: list[tuple[object, NodeWithScore]] = []
    for scored in nodes:
        who, section = identity(scored.node), scored.node.metadata.get("section")
        home = {"section": (*who[:3], section), "document": who[:3], "global": ()}[scope]
        found.append((home, scored))
    return found


# Laws


@given(nodes=node_lists(), stage=STAGES)
def test_all_evidence_still_stands_in_its_scope(nodes: list[NodeWithScore], stage: ScopedDedup) -> None:
    """Whatever is removed from one node stands word for word in another node of the same scope."""
    left = [(home, fold(included_text(scored.node))) for home, scored in homes(stage.select(nodes).nodes, stage.scope)]
    for home, scored in homes(nodes, stage.scope):
        text = included_text(scored.node)
        for block in split_blocks(text):
            if block.kind != "heading":
                piece = fold(text[block.start : block.end])
                assert any(piece in other for place, other in left if place == home)


def is_made_of(text: str, blocks: Sequence[str]) -> bool:
    """Tell whether a text is some of the blocks, in their order; without what stood between them, two lists are one."""
    text = text.strip()
    if not text or not blocks:
        return not text
    first, *rest = blocks
    return (text.startswith(first) and is_made_of(text[len(first) :], rest)) or is_made_of(text, rest)


@given(nodes=node_lists(), stage=STAGES)
def test_what_is_left_is_a_part_of_the_same_node(nodes: list[NodeWithScore], stage: ScopedDedup) -> None:
    """A kept node has blocks of its own text only, in their order, and every node is kept or reported."""
    given_texts = dict(zip(ids(nodes), bodies(nodes), strict=True))
    selection = stage.select(nodes)
    for scored in selection.nodes:
        given = given_texts[scored.node.node_id]
        blocks = [given[block.start : block.end] for block in split_blocks(given)]
        assert is_made_of(included_text(scored.node), blocks)
    dropped = [decision.node_id for decision in selection.decisions if decision.action == "dropped"]
    assert sorted(ids(selection.nodes) + dropped) == sorted(ids(nodes))


@given(nodes=node_lists(), stage=STAGES)
def test_a_second_pass_changes_nothing(nodes: list[NodeWithScore], stage: ScopedDedup) -> None:
    """Deduplication is idempotent."""
    once = stage.select(nodes).nodes
    assert seen(stage.select(list(once)).nodes) == seen(once)


@given(nodes=node_lists())
def test_the_best_ranked_node_is_whole(nodes: list[NodeWithScore]) -> None:
    """Nothing is removed from the first node, nor within one chunk."""
    kept = ScopedDedup(scope="global").select(nodes).nodes
    assert seen(kept)[:1] == seen(nodes)[:1]


@given(nodes=node_lists())
def test_chunk_level_never_touches_paragraphs(nodes: list[NodeWithScore]) -> None:
    """With ``level="chunk"`` every node that is left is left as it was."""
    kept = ScopedDedup(level="chunk", scope="global").select(nodes).nodes
    assert set(seen(kept)) <= set(seen(nodes))


@pytest.mark.parametrize("options", [{}, {"scope": "global"}, {"level": "chunk"}, {"match": "position"}], ids=str)
def test_the_laws_of_a_rewrite(options: dict[str, Any]) -> None:
    """The stage keeps the laws of its kind in every mode."""
    check_postprocessor(lambda: ScopedDedup(**options))


# Paragraphs


@pytest.mark.parametrize("order", [["first", "second"], ["second", "first"]], ids=" ".join)
def test_overlapping_runbook_chunks_give_each_paragraph_once(order: list[str]) -> None:
    """Of two overlapping chunks, the deadline stands once and the cancellation is there, in either rank order."""
    left = "\n\n".join(dedup([RUNBOOK[name] for name in order]))
    for paragraph in (DEADLINE, CANCELLATION, TOKEN):
        assert left.count(paragraph) == 1


def test_a_sliding_window_keeps_its_own_tail() -> None:
    """An overlap is removed from the lower-ranked chunk, its own paragraph stays."""
    assert dedup([f"{A}\n\n{B}", f"{B}\n\n{C}"]) == [f"{A}\n\n{B}", C]


def test_white_space_and_composition_make_no_difference_but_case_does() -> None:
    """Twins are equal after NFC and white-space folding; another case is another text."""
    composed = "Çağrı merkezi hafta içi her gün dokuzdan beşe kadar açıktır."
    folded = unicodedata.normalize("NFD", composed).replace(" ", " \n")
    assert dedup([composed, folded]) == [composed]
    assert len(dedup([composed, composed.upper()])) == 2


def test_short_paragraphs_stay_unless_the_whole_chunk_repeats() -> None:
    """A paragraph under eight words is kept next to a new one, and goes with a chunk that says nothing else."""
    assert dedup(["Keep the receipt.", f"Keep the receipt.\n\n{B}"]) == [
        "Keep the receipt.",
        f"Keep the receipt.\n\n{B}",
    ]
    assert dedup(["Keep the receipt.", "Keep  the receipt."]) == ["Keep the receipt."]
    seven, eight = "one two three four five six seven", "one two three four five six seven eight"
    assert dedup([seven, f"{seven}\n\nNew."]) == [seven, f"{seven}\n\nNew."]
    assert dedup([eight, f"{eight}\n\nNew."]) == [eight, "New."]


def test_a_repeated_footer_stands_once() -> None:
    """A long footer of five chunks stays in the best-ranked one."""
    footer = "Bookstore of the four winds, all prices include the value added tax."
    left = dedup([f"{text}\n\n{footer}" for text in (A, B, C, "x " * 9, "y " * 9)])
    assert len(left) == 5
    assert "".join(left).count(footer) == 1


@pytest.mark.parametrize(
    "block", ["```\nreturn window = 21\n\nreturn fee = 0\n```", "| a | b |\n|---|---|\n| 1 | 2 |", "- a\n- b"]
)
def test_code_tables_and_lists_go_only_with_the_whole_chunk(block: str) -> None:
    """A repeated atomic block stays whole beside new text."""
    assert dedup([block, f"{B}\n\n{block}"]) == [block, f"{B}\n\n{block}"]
    assert dedup([block, block]) == [block]


def test_a_copy_of_a_shortened_chunk_is_still_a_copy() -> None:
    """Two equal chunks of which a third takes the prose leave one table, not two."""
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert dedup([A, f"{A}\n\n## Prices\n\n{table}", f"{A}\n\n## Prices\n\n{table}"]) == [A, f"## Prices\n\n{table}"]


# Scopes and identities


@pytest.mark.parametrize(
    "other, scope, twins",
    [
        ({}, "section", True),
        ({"section": "damage"}, "section", False),
        ({"section": "damage"}, "document", True),
        ({"document_id": "damage"}, "document", False),
        ({"document_id": "damage"}, "global", True),
        ({"revision": 2}, "document", False),
        ({"chunking_version": "v2"}, "document", False),
        ({"revision": 2}, "global", True),
    ],
)
def test_the_scope_says_where_a_twin_may_stand(other: dict[str, Any], scope: Any, twins: bool) -> None:
    """Text counts as repeated within the scope only: other sections, documents and versions keep theirs."""
    left = dedup([A, A], [HOME, {**HOME, **other}], scope=scope)
    assert len(left) == (1 if twins else 2)


def test_nodes_without_metadata_are_documents_of_their_own() -> None:
    """Unknown documents are never taken for one and the same."""
    assert dedup([A, A, A], {}) == [A, A, A]


def test_field_names_are_configurable() -> None:
    """The identity is read from the fields that ``keys`` names."""
    keys = MetadataKeys(document_id="doc", section="part")
    assert dedup([A, A], {"doc": "d", "part": "p"}, keys=keys) == [A]


@pytest.mark.parametrize("scores", [[0.8, None], [None, 0.8], [float("nan"), 0.8], [0.2, 0.8]], ids=str)
def test_of_two_copies_the_best_score_stays_at_the_best_rank(scores: list[float | None]) -> None:
    """A chunk that came twice stands once, with its best score, where it came first."""
    nodes = make_nodes([A, B, A], scores=[scores[0], 0.5, scores[1]], ids=["a", "b", "a"], metadata=HOME)
    selection = ScopedDedup().select(nodes)
    assert [(scored.node.node_id, scored.score) for scored in selection.nodes] == [("a", 0.8), ("b", 0.5)]
    assert ids(AttentionReorder(placement="start").postprocess_nodes(selection.nodes)) == ["a", "b"]
    (decision,) = selection.decisions
    assert (decision.action, decision.reason, decision.node_id, decision.twin) == (
        "dropped",
        "repeated_chunk",
        "a",
        "a",
    )
    assert decision.value is None or decision.value == decision.value


def test_one_chunk_id_may_stand_for_two_texts() -> None:
    """A chunk id alone is never assumed unique: another text under the same id stays."""
    nodes = make_nodes([A, B], metadata={**HOME, "chunk_id": "c1"})
    assert bodies(ScopedDedup().postprocess_nodes(nodes)) == [A, B]


def test_nodes_without_text_are_left_alone() -> None:
    """Images and blank nodes are neither twins of each other nor lost here."""
    nodes = [NodeWithScore(node=ImageNode(id_=name, text="", metadata=dict(HOME))) for name in "ab"]
    assert ids(ScopedDedup(scope="global").postprocess_nodes(nodes)) == ["a", "b"]


# Reports and options


def test_decisions_hold_ids_and_numbers_only() -> None:
    """A shortened node is reported with the removed characters and the node that keeps them, without any text."""
    selection = ScopedDedup().select(make_nodes([f"{A}\n\n{B}", C, f"{A}\n\n{C}\n\nNew."], metadata=HOME))
    assert [(d.action, d.reason, d.node_id, d.twin, d.value) for d in selection.decisions] == [
        ("shortened", "duplicate", "n2", "n0", len(A)),
        ("shortened", "duplicate", "n2", "n1", len(C)),
    ]
    assert "books" not in repr(selection.decisions)


def test_the_original_nodes_are_untouched() -> None:
    """Neither text nor nested metadata of the given nodes changes, and the original text stays reachable."""
    nodes = make_nodes([A, f"{A}\n\n{B}"], metadata={**HOME, "nested": {"list": [1]}})
    kept = ScopedDedup().postprocess_nodes(nodes)
    assert bodies(nodes) == [A, f"{A}\n\n{B}"]
    assert all(scored.node.metadata == {**HOME, "nested": {"list": [1]}} for scored in nodes)
    assert kept[1].node.metadata["llama_index_grounded"]["original"] == f"{A}\n\n{B}"


@pytest.mark.parametrize(
    "options",
    [
        {"scop": "global"},
        {"scope": "chapter"},
        {"level": "word"},
        {"match": "regex"},
        {"match": "position", "scope": "global"},
    ],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A misspelt option or value is an error at construction."""
    with pytest.raises(ValidationError):
        ScopedDedup(**options)
