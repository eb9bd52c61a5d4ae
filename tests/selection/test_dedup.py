"""Repeated text is paid for once, and nothing that an answer may need is lost."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import ImageNode, NodeWithScore, TextNode
from pydantic import ValidationError

from llama_index_grounded.evidence import MetadataKeys, identity, included_text
from llama_index_grounded.selection import ScopedDedup
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


@given(nodes=node_lists(), stage=STAGES)
def test_what_is_left_is_a_part_of_the_same_node(nodes: list[NodeWithScore], stage: ScopedDedup) -> None:
    """A kept node has blocks of its own text only, in their order, and every node is kept or reported."""
    given_texts = dict(zip(ids(nodes), bodies(nodes), strict=True))
    selection = stage.select(nodes)
    for scored in selection.nodes:
        rest, text = given_texts[scored.node.node_id], included_text(scored.node)
        for block in split_blocks(text):
            _, found, rest = rest.partition(text[block.start : block.end])
            assert found
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


@given(
    windows=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), min_size=1, max_size=6),
    level=st.sampled_from(["paragraph", "chunk"]),
)
def test_by_position_no_character_of_the_document_is_lost(windows: list[tuple[int, int]], level: Any) -> None:
    """Chunks that are windows into one document still cover together what they covered before."""
    paragraphs = [A, A, "Short.", B, A, "- one\n- two", B, C]
    document = "\n\n".join(paragraphs)
    starts = [document.index(p, sum(len(q) + 2 for q in paragraphs[:at])) for at, p in enumerate(paragraphs)]
    spans = [(starts[at], starts[last := min(at + n, 8) - 1] + len(paragraphs[last])) for at, n in windows]
    nodes = [windowed(document, *span, f"n{at}") for at, span in enumerate(spans)]
    kept = ScopedDedup(match="position", level=level).select(nodes).nodes
    left = "\n\n".join(bodies(kept)).split("\n\n")
    covered = {at for at, n in windows for at in range(at, min(at + n, 8))}
    assert sorted(set(left)) == sorted({paragraphs[at] for at in covered})
    if level == "paragraph":
        assert sorted(left) == sorted(paragraphs[at] for at in covered)


def windowed(document: str, start: int, end: int, id_: str) -> NodeWithScore:
    """Cut a chunk out of a document, as a LlamaIndex splitter does."""
    node = TextNode(
        id_=id_, text=document[start:end], start_char_idx=start, end_char_idx=end, metadata={"document_id": "d"}
    )
    return NodeWithScore(node=node, score=0.5)


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
    assert dedup([A, f"{A}\n\n{table}", f"{A}\n\n{table}"]) == [A, table]


# Frames


@pytest.mark.parametrize(
    "one, two",
    [
        (f"## Printed books\n\n{B}", f"## E-books\n\n{B}"),
        (f"## C\n\n{B}", f"## C#\n\n{B}"),
        (f"**Printed books**\n\n{B}", f"**E-books**\n\n{B}"),
        (f"# Printed books\n\n## Note\n\n{B}", f"# E-books\n\n## Note\n\n{B}"),
        (f"Printed books:\n\n{B}", f"E-books:\n\n{B}"),
        (f"Printed books:\n\n{B}", B),
        (f"E-books:\n\n{LEAD}\n\n{B}", f"{LEAD}\n\n{B}"),
    ],
)
def test_another_heading_or_lead_in_makes_another_statement(one: str, two: str) -> None:
    """A paragraph stays when its heading, a heading above that, or its lead-in line differs from its twin's."""
    assert dedup([one, two]) == [one, two]


def test_an_unknown_heading_does_not_count_as_different() -> None:
    """A chunk that begins below its heading is compared with one that shows it; a stated heading is known."""
    shown = f"## Printed books\n\n{B}"
    assert dedup([shown, f"{B}\n\nKeep the receipt."]) == [shown, "Keep the receipt."]
    stated = [{**HOME, "heading": "Printed books"}, {**HOME, "heading": "E-books"}]
    assert dedup([B, f"{B}\n\nKeep the receipt."], stated) == [B, f"{B}\n\nKeep the receipt."]


def test_a_line_that_leads_in_what_stays_is_kept() -> None:
    """A repeated "The following are excluded:" stays while its list does."""
    second = f"{LEAD}\n\n- opened games"
    assert dedup([f"{LEAD}\n\n- sealed music", second])[1] == second
    chained = f"{LEAD}\n\nE-books:\n\n- opened games"
    assert dedup([f"{LEAD}\n\n- sealed music", chained])[1] == chained


def test_headings_and_lead_ins_do_not_stay_alone() -> None:
    """What only framed removed text goes with it, and a chunk of bare headings is dropped, naming its twin."""
    first = f"# Help\n\nE-books:\n\n{B}"
    assert dedup([f"{first}\n\n{C}", f"{first}\n\n## Damage\n\nCall us."]) == [
        f"{first}\n\n{C}",
        "# Help\n\n## Damage\n\nCall us.",
    ]
    selection = ScopedDedup().select(make_nodes([f"{first}\n\n{C}", first], metadata=HOME))
    assert ids(selection.nodes) == ["n0"]
    assert [(d.action, d.reason, d.node_id, d.twin) for d in selection.decisions] == [
        ("dropped", "duplicate", "n1", "n0")
    ]


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


# Position


def test_by_position_a_repeated_warning_stays() -> None:
    """Equal text at two places of a document is said twice on purpose; the same place is not."""
    document = f"{A}\n\n{B}\n\n{A}\n\n{C}"
    second = document.index(A, 10)
    nodes = [windowed(document, 0, second - 2, "n0"), windowed(document, second, len(document), "n1")]
    assert bodies(ScopedDedup(match="position").postprocess_nodes(nodes)) == [f"{A}\n\n{B}", f"{A}\n\n{C}"]
    assert bodies(ScopedDedup().postprocess_nodes(nodes)) == [f"{A}\n\n{B}", C]


def test_by_position_a_half_repeated_paragraph_stays_whole() -> None:
    """A paragraph of which another chunk has a part only is not cut."""
    document = f"{A} {B}\n\n{C}"
    nodes = [windowed(document, 0, len(A), "n0"), windowed(document, 0, len(document), "n1")]
    assert bodies(ScopedDedup(match="position").postprocess_nodes(nodes)) == [A, document]


def test_by_position_a_wrong_range_removes_nothing() -> None:
    """A range that is not that of the text, or that points to other text, is not trusted."""
    nodes = [windowed(A, 0, len(A), "n0"), windowed(A, 0, len(A), "n1"), windowed(B, 0, len(B), "n2")]
    nodes[1].node.set_content(f"{A} And more.")
    nodes += make_nodes([A], ids=["n3"], metadata={"document_id": "d"})
    assert ids(ScopedDedup(match="position").postprocess_nodes(nodes)) == ["n0", "n1", "n2", "n3"]


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
    "options", [{"scop": "global"}, {"scope": "chapter"}, {"level": "word"}, {"match": "regex"}], ids=str
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A misspelt option or value is an error at construction."""
    with pytest.raises(ValidationError):
        ScopedDedup(**options)
