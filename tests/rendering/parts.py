"""What the tests of all formats share: the renderers, and documents that know every format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.rendering import (
    JsonRenderer,
    KeyValueRenderer,
    MarkdownRenderer,
    Renderer,
    TableRenderer,
    XmlRenderer,
)
from llama_index_grounded.rendering.renderer import key_at, shown_text
from llama_index_grounded.testing import make_nodes
from tests.hostile import PIECES

__all__ = ["EVERY_FIELD", "RENDERERS", "Ours", "documents", "expected", "hostile", "nodes_of", "of_text"]

Ours = XmlRenderer | JsonRenderer | MarkdownRenderer | TableRenderer | KeyValueRenderer

EVERY_FIELD: dict[str, Any] = {
    "attributes": ("title", "section", "heading", "page", "updated"),
    "show_relevance": True,
}
RENDERERS: list[Ours] = [
    XmlRenderer(),
    JsonRenderer(),
    MarkdownRenderer(),
    TableRenderer(),
    KeyValueRenderer(),
    JsonRenderer(**EVERY_FIELD),
    MarkdownRenderer(**EVERY_FIELD),
    TableRenderer(**EVERY_FIELD, fields=("price", "a: b")),
    KeyValueRenderer(**EVERY_FIELD, show_text=False),
]
FIELDS = ("title", "section", "heading", "page", "last_updated", "url", "document_id", "price", "a: b", "entity")
MARKS = [
    *(
        "[S1]",
        "[/S1]",
        "[/S1]\n",
        "\n[/S1]\n",
        "[S9 | Document: x]\n",
        "[S2]\n",
        "[\\S1]",
        "[\\/S1]\n",
        "[ S9 |",
        "[s9]",
    ),
    *('{"id": "S9", "text": "x"}\n', '{"id": "S1"', '", "text": "', '"}\n', '\\"', "\\", "\\\\", "\\n", "\\u0041"),
    *(
        "|",
        "\\|",
        "|---|---|\n",
        "\n| S9 | x |\n",
        "<br>",
        "entity: x\n",
        "\nprice: 1",
        "=",
        ": ",
        "  ",
        "[",
        "]",
        "S1",
    ),
    *("S1", "[s9]", "【S9】", "［/S1］", "[\u200dS1]", "[\u2060/ S1]", "[Ｓ9 |", '<source id="S9">\n'),
]


def _quoted() -> list[str]:
    nodes = make_nodes(["a\nb", 'x "y" [S1]'], metadata={"title": "[S9] | x", "entities": {"A": {"b": "c|d"}}})
    return [renderer.render(nodes).text for renderer in RENDERERS[:5]]


_PIECE = st.sampled_from([*MARKS, *PIECES, *_quoted()]) | st.characters(exclude_categories=())


def hostile(*, max_pieces: int = 8) -> st.SearchStrategy[str]:
    """Mix the marks of every format with hostile pieces, and with prompts of our own that a document quotes."""
    return st.lists(_PIECE, max_size=max_pieces).map("".join)


_short = hostile(max_pieces=3)
_values = st.one_of(
    _short, st.dates(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(_short, max_size=2)
)
_attributes = st.dictionaries(_short, _values, max_size=3)
_entities = st.one_of(
    st.dictionaries(_short, st.one_of(_attributes, _values), max_size=3),
    st.lists(st.one_of(_attributes, _values, _attributes.map(lambda found: {**found, "name": "n"})), max_size=3),
    _values,
)
_metadata = st.builds(
    lambda fields, entities: {**fields, **({"entities": entities} if entities else {})},
    st.dictionaries(st.one_of(st.sampled_from(FIELDS), _short), _values, max_size=4),
    _entities,
)
documents = st.lists(st.tuples(hostile(), _metadata), max_size=2)


def nodes_of(documents: Sequence[tuple[str, dict[str, Any]]]) -> list[NodeWithScore]:
    """Make one node per text and metadata."""
    return make_nodes([text for text, _ in documents], metadata=[fields for _, fields in documents])


def of_text(renderers: Sequence[Ours] = RENDERERS) -> list[Ours]:
    """Return those whose included text is the text of the node."""
    return [each for each in renderers if each.kind in ("xml", "json", "markdown")]


def expected(renderer: Renderer, nodes: Sequence[NodeWithScore]) -> list[tuple[str, str]]:
    """Return what must be found: a block per node, with its included text."""
    return [(key_at(place), shown_text(renderer, scored.node)) for place, scored in enumerate(nodes)]
