"""By position, the same stretch of a document is said once, and nothing else is touched."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

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
