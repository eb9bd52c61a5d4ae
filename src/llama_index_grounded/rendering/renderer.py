"""What every renderer promises, and the records that it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from llama_index_grounded.evidence import FieldName, field, identity, included_text, stamp_of
from llama_index_grounded.rendering.escaping import clean
from llama_index_grounded.schema import SourceRef

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

    from llama_index_grounded.tokens import TokenCounter

__all__ = [
    "Removed",
    "Rendered",
    "Renderer",
    "is_renderer",
    "key_at",
    "removed_from",
    "shown_text",
    "size_of",
    "source_of",
]

_SAME_LENGTH_KEYS = 999
_INFINITE = float("inf")
_TEXTS = ("key", "node_id", "document_id", "chunk_id", "revision", "version", "section", "title", "page", "url")
_METHODS = ("block", "render", "recover", "escape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Invisible characters that were taken out of the text of a source."""

    key: str
    node_id: str
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Sources as the model sees them."""

    text: str
    sources: tuple[SourceRef, ...]
    """One record per block, in the order of the text; sizes and citations are filled in later."""
    removed: tuple[Removed, ...] = ()


class Renderer(Protocol):
    """Turns nodes into numbered blocks and back.

    Whatever the nodes hold, ``recover(render(nodes).text)`` finds exactly one block per node, with the cleaned text. A
    renderer whose included text is not that of the node has a method ``included(node)`` too, as `shown_text` says.
    """

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source.

        The text of a prompt is the row of its blocks, and its size is the sum of theirs. With tiktoken that is exact
        where a block begins with ``<``, ``[`` or ``{``, ends with ``>``, ``]`` or ``}`` and a line end, and holds its
        key apart from other digits: there the pre-tokenizer always splits.
        """
        ...

    def render(self, nodes: Sequence[NodeWithScore]) -> Rendered:
        """Render nodes in the order given, keyed S1, S2, …."""
        ...

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order."""
        ...

    def escape(self, text: str) -> str:
        """Make a user's text safe to stand beside the blocks."""
        ...


def key_at(place: int) -> str:
    """Name the source at a place of the prompt, from 0."""
    return f"S{place + 1}"


def source_of(scored: NodeWithScore, key: str) -> SourceRef:
    """Describe a node as a source, for people; the URL is the one in its metadata, not yet checked."""
    node = scored.node
    who, mark = identity(node), stamp_of(node)
    score = None if scored.score is None else float(scored.score)
    return _recorded(
        {
            "key": key,
            "node_id": node.node_id,
            "document_id": who.document_id,
            "chunk_id": who.chunk_id,
            "revision": who.revision,
            "version": who.version,
            "section": _visible(node, "section"),
            "title": _visible(node, "title"),
            "page": _visible(node, "page"),
            "url": field(node, "url"),
            "score": score if score is not None and abs(score) < _INFINITE else None,
            "also_in": mark.get("also_in", ()) if mark else (),
        }
    )


def _recorded(values: dict[str, Any]) -> SourceRef:
    """Make the record; where all texts are plain ASCII there is nothing to validate, which would take most of the time.

    Halves of surrogate pairs, which a record must replace, are not ASCII.
    """
    texts = [values[name] or "" for name in _TEXTS]
    if values["also_in"] or set(map(type, texts)) != {str} or not "".join(texts).isascii():
        return SourceRef(**values)
    return SourceRef.model_construct(_fields_set=set(values), **values)


def _visible(node: BaseNode, name: FieldName) -> str | None:
    """Read a field without the characters that could turn the text around it on a page."""
    text = field(node, name)
    return None if text is None else clean(text) or None


def is_renderer(value: object) -> TypeGuard[Renderer]:
    """Tell what has the methods of a renderer; a class is none, only an instance."""
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in _METHODS)


def shown_text(renderer: Renderer, node: BaseNode) -> str:
    """Return the included text of a node: what `recover` finds for it.

    That is the cleaned text of the node, unless the renderer has a method ``included`` which says otherwise, as those
    have that show metadata as evidence.
    """
    included = getattr(renderer, "included", None)
    return str(included(node)) if callable(included) else clean(included_text(node))


def removed_from(scored: NodeWithScore, key: str, texts: Iterable[str] | None = None) -> Removed | None:
    """Count the invisible characters of a node's text, or of the ``texts`` that are shown for it."""
    found = (included_text(scored.node),) if texts is None else texts
    characters = sum(len(text) - len(after) for text in found if (after := clean(text)) is not text)
    return Removed(key=key, node_id=scored.node.node_id, characters=characters) if characters else None


def size_of(
    scored: NodeWithScore, place: int, renderer: Renderer, counter: TokenCounter, sizes: dict[tuple[str, str], int]
) -> int:
    """Count the plain tokens of one rendered block, looking in ``sizes`` first and noting there what was counted.

    Where the tokenizer splits numbers off in threes, every key up to S999 has the same number of tokens; so the count
    does not depend on the place and holds after a reorder.
    """
    settled = counter.counts_in_threes and place < _SAME_LENGTH_KEYS
    block = renderer.block(scored.node, "S1" if settled else key_at(place), scored.score)
    name = (counter.name, block)
    size = sizes.get(name)
    if size is None:
        size = sizes[name] = counter.tokens(block)
    return size
