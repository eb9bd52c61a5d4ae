"""By position, the same stretch of a document is said once, and nothing else is touched."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import LONG, bodies, ids

A, B, C, LEAD = LONG


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


# What positions count from


@pytest.mark.parametrize("scope", ["section", "document"])
@pytest.mark.parametrize("split", [True, False], ids=["split", "bare"])
def test_by_position_pages_of_one_document_do_not_overlap(scope: Any, split: bool) -> None:
    """A warning at the same place of two pages stays, whether nodes name their sources or their pages only."""
    pages = [
        Document(text=f"{A}\n\n{own}", id_=f"m_{page}", metadata={"document_id": "manual", "page_label": page})
        for page, own in (("1", B), ("2", C))
    ]
    if split:
        nodes = [NodeWithScore(node=node, score=0.5) for node in SentenceSplitter(chunk_size=400)(pages)]
    else:
        nodes = [windowed(page.text, 0, len(page.text), page.id_) for page in pages]
        for scored, page in zip(nodes, pages, strict=True):
            scored.node.metadata = page.metadata
    assert bodies(ScopedDedup(match="position", scope=scope).postprocess_nodes(nodes)) == [page.text for page in pages]


def test_by_position_sections_are_told_apart_only_where_asked() -> None:
    """With the scope "section", a node of another section never counts; with "document" its range does."""
    document = f"{A}\n\n{B}"
    nodes = [windowed(document, 0, len(A), "n0"), windowed(document, 0, len(document), "n1")]
    for scored, section in zip(nodes, "st", strict=True):
        scored.node.metadata["section"] = section
        scored.node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="d")
    assert bodies(ScopedDedup(match="position").postprocess_nodes(nodes)) == [A, document]
    assert bodies(ScopedDedup(match="position", scope="document").postprocess_nodes(nodes)) == [A, B]


def chained(*nodes: NodeWithScore) -> list[NodeWithScore]:
    """Name each node's neighbours, as LlamaIndex's parsers do."""
    for one, two in pairwise(nodes):
        one.node.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=two.node.node_id)
        two.node.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=one.node.node_id)
    return list(nodes)


def test_by_position_neighbours_that_go_on_are_cut() -> None:
    """Where a chunk goes on with what the one before it ends with, that is said once, in any rank order."""
    document = f"{A}\n\n{B}\n\n{C}"
    first = windowed(document, 0, document.index(B) + len(B), "n0")
    second = windowed(document, document.index(B), len(document), "n1")
    assert bodies(ScopedDedup(match="position").postprocess_nodes(chained(first, second))) == [f"{A}\n\n{B}", C]
    assert bodies(ScopedDedup(match="position").postprocess_nodes([second, first])) == [f"{B}\n\n{C}", A]


@pytest.mark.parametrize("between", [0, 1], ids=["neighbours", "others"])
def test_by_position_ranges_that_count_from_sections_do_not_overlap(between: int) -> None:
    """Of chunks that name their neighbours, equal text at equal places of two sections stays in both."""
    one, two = f"{A}\n\n{B}", f"{A}\n\n{C}"
    middle = [windowed(LEAD, 0, len(LEAD), "between")] * between
    nodes = chained(windowed(one, 0, len(one), "n0"), *middle, windowed(two, 0, len(two), "n1"))
    left = bodies(ScopedDedup(match="position", scope="document").postprocess_nodes(nodes))
    assert [left[0], left[-1]] == [one, two]
