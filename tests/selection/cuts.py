"""Documents cut into chunks, as the tests of passages need them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_grounded.evidence import included_text
from llama_index_grounded.testing import make_nodes

Range = tuple[int, int]
HOME = {"document_id": "d", "section": "s"}


def text_node(scored: NodeWithScore) -> TextNode:
    """Return the node as what it is."""
    return cast("TextNode", scored.node)


def at(scored: NodeWithScore, start: int, length: int | None = None) -> NodeWithScore:
    """Put a node, in place, at a character of its document."""
    node = text_node(scored)
    node.start_char_idx = start
    node.end_char_idx = start + (len(included_text(node)) if length is None else length)
    return scored


def cut(document: str, ranges: Sequence[Range], **options: Any) -> list[NodeWithScore]:
    """Make chunks of a document, best first, called n0, n1 and so on."""
    options.setdefault("metadata", HOME)
    nodes = make_nodes([document[start:end] for start, end in ranges], **options)
    return [at(scored, start) for scored, (start, _) in zip(nodes, ranges, strict=True)]


def tie(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Tell nodes, in place, that each is followed by the next, as parsers do."""
    for one, two in pairwise(nodes):
        one.node.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=two.node.node_id)
        two.node.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=one.node.node_id)
    return list(nodes)


def place(scored: NodeWithScore) -> tuple[int | None, int | None]:
    """Return the range of a node."""
    node = text_node(scored)
    return node.start_char_idx, node.end_char_idx


@st.composite
def cut_documents(draw: st.DrawFn, *, max_size: int = 7) -> tuple[str, list[Range]]:
    """Draw a document that repeats itself a lot, and chunks of it that are not blank, in any order."""
    document = draw(st.text(alphabet="abİı. \n", min_size=1, max_size=40))
    bounds = st.integers(0, len(document))
    ranges = draw(st.lists(st.tuples(bounds, bounds), max_size=max_size))
    return document, [(start, end) for start, end in ranges if document[start:end].strip()]
