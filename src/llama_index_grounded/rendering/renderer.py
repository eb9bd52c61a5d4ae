"""What every renderer promises, and the records that it returns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import FieldName, copied, fields, identity, included_text, once, stamp_of
from llama_index_grounded.metadata import known
from llama_index_grounded.rendering.escaping import clean
from llama_index_grounded.schema import SourceRef

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore


__all__ = [
    "Removed",
    "Rendered",
    "Renderer",
    "as_renderer",
    "is_renderer",
    "key_at",
    "removed_characters",
    "shown_text",
    "source_of",
]

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
    renderer whose included text is not that of the node has a method ``included(node)`` too, as `shown_text` says. One
    whose blocks are a head line, the text and lines below may have a method ``frame`` which returns these three; then
    blocks are counted faster.
    """

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source; what is asked for is not always shown, so nothing may be remembered.

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
    who, mark, shown = identity(node), stamp_of(node), fields(node, _SHOWN).get
    values: dict[str, Any] = {
        "key": key,
        "node_id": node.node_id,
        "document_id": who.document_id,
        "chunk_id": who.chunk_id,
        "revision": who.revision,
        "version": who.version,
        "section": _visible(shown("section")),
        "title": _visible(shown("title")),
        "page": _visible(shown("page")),
        "url": shown("url"),
    }
    score = known(scored.score)
    also_in = mark.get("also_in", ()) if mark else ()
    if also_in or not _is_plain(values.values()):
        return SourceRef(**values, score=score, also_in=also_in)
    values["score"] = score
    return copied(_BLANK, values)


_SHOWN: tuple[FieldName, ...] = ("section", "title", "page", "url")
_TEXTS = {str, type(None)}
_BLANK = SourceRef(key="", node_id="", document_id="", chunk_id="")


def _is_plain(texts: Collection[str | None]) -> bool:
    """Tell texts that need no validation, which would take most of the time.

    Halves of surrogate pairs, which a record must replace, are not ASCII.
    """
    return {*map(type, texts)} <= _TEXTS and "".join(filter(None, texts)).isascii()


def _visible(text: str | None) -> str | None:
    """Leave out the characters that could turn the text around a field on a page."""
    return None if text is None else clean(text) or None


def is_renderer(value: object) -> TypeGuard[Renderer]:
    """Tell what has the methods of a renderer; a class is none, only an instance."""
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in _METHODS)


def as_renderer(value: object) -> Renderer:
    """Return a renderer as it is.

    Raises:
        ConfigurationError: For what is none, such as a class, or an object without one of the methods.
    """
    if is_renderer(value):
        return value
    needed = ", ".join(_METHODS)
    msg = f"renderer must be a renderer, such as XmlRenderer(), with the methods {needed}; it is {value!r:.80}"
    raise ConfigurationError(msg)


def shown_text(renderer: Renderer, node: BaseNode) -> str:
    """Return the included text of a node: what `recover` finds for it.

    That is the cleaned text of the node, unless the renderer has a method ``included`` which says otherwise, as those
    have that show metadata as evidence.
    """
    included = getattr(renderer, "included", None)
    return str(included(node)) if callable(included) else once(node, clean)


def removed_characters(node: BaseNode) -> int:
    """Count the invisible characters of a node's text."""
    text = included_text(node)
    return len(text) - len(once(node, clean))
