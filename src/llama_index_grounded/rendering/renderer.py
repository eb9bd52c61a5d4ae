"""What every renderer promises, and the records that it returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from llama_index_grounded._copied import made_of
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import FieldName, fields, identity, included_text, once, stamp_of
from llama_index_grounded.metadata import known
from llama_index_grounded.rendering.escaping import clean
from llama_index_grounded.schema import Citation, SourceRef

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

    from llama_index_grounded.tokens import TokenCounter

__all__ = [
    "BlockCounter",
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

_SAME_LENGTH_KEYS = 999
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
    who, mark, shown = identity(node), stamp_of(node), fields(node, _SHOWN).get
    values: dict[str, Any] = {
        "key": key,
        "node_id": node.node_id,
        "document_id": who.document_id,
        "chunk_id": who.chunk_id,
        "revision": who.revision,
        "version": who.version,
        "section": shown("section"),
        "title": shown("title"),
        "page": shown("page"),
        "url": shown("url"),
    }
    # Printable ASCII needs neither a look at its characters nor validation, which would take most of the time.
    texts = "".join(filter(None, values.values()))
    values["score"] = known(scored.score)
    values |= _UNKNOWN
    if mark and "also_in" in mark:
        values["also_in"] = mark["also_in"]
    elif texts.isascii() and texts.isprintable():
        return made_of(SourceRef, values)
    for name in ("section", "title", "page"):
        values[name] = _visible(values[name])
    return SourceRef(**values)


_SHOWN: tuple[FieldName, ...] = ("section", "title", "page", "url")
_UNKNOWN = {name: field.default for name, field in SourceRef.model_fields.items() if name not in Citation.model_fields}
"""What only a query can tell of a source."""


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


class BlockCounter:
    """Counts the plain tokens of rendered blocks, and no text twice in a query.

    Where the tokenizer splits numbers off in threes, every key up to S999 has the same number of tokens; so the count
    does not depend on the place and holds after a reorder. There too, what stands around a text is counted once for
    all texts that have the same around them.

    Args:
        renderer: What makes the blocks.
        counter: What counts.
        sizes: Token counts by counter and text, to look in first and to note new ones in.
    """

    def __init__(self, renderer: Renderer, counter: TokenCounter, sizes: dict[tuple[str, str], int]) -> None:
        self._renderer = renderer
        self._block = renderer.block
        self._frame: Callable[..., tuple[str, str, str]] | None = getattr(renderer, "frame", None)
        self._counter = counter
        self._name = counter.name
        self._same_keys = _SAME_LENGTH_KEYS if counter.counts_in_threes else 0
        self._sizes = sizes
        self._blank: dict[int, bool] = {}
        self._ready: dict[int, int] = {}

    def count(self, nodes: Sequence[NodeWithScore]) -> None:
        """Count blocks in advance, as far as their size does not depend on their place.

        All are rendered before the first is counted: what makes blocks and what counts them are both slower when they
        take turns, since each has to fetch into the processor's cache again what the other has pushed out.

        Args:
            nodes: None of which will stand behind its place in this order.
        """
        ahead = nodes[: self._same_keys]
        self._blank = {id(scored): self.is_blank(scored) for scored in ahead}
        rows = [[(self._name, part) for part in self._parts(scored, 0)] for scored in ahead]
        new = [name for name in dict.fromkeys(itertools.chain.from_iterable(rows)) if name not in self._sizes]
        self._sizes.update(zip(new, self._counter.tokens_of([part for _, part in new]), strict=True))
        self._ready = {
            id(scored): sum([self._sizes[name] for name in row]) for scored, row in zip(ahead, rows, strict=True)
        }

    def is_blank(self, scored: NodeWithScore) -> bool:
        """Tell whether a node would be shown without any text."""
        known = self._blank.get(id(scored))
        return not shown_text(self._renderer, scored.node).strip() if known is None else known

    def tokens(self, scored: NodeWithScore, place: int) -> int:
        """Count one block at its place in the prompt, from 0."""
        ready = self._ready.get(id(scored))
        return sum([self._counted(part) for part in self._parts(scored, place)]) if ready is None else ready

    def _parts(self, scored: NodeWithScore, place: int) -> tuple[str, ...]:
        """Render what is counted apart."""
        if place >= self._same_keys:
            return (self._block(scored.node, key_at(place), scored.score),)
        if self._frame is None:
            return (self._block(scored.node, "S1", scored.score),)
        return _apart(*self._frame(scored.node, "S1", scored.score))

    def _counted(self, text: str) -> int:
        name = self._name, text
        size = self._sizes.get(name)
        if size is None:
            size = self._sizes[name] = self._counter.tokens(text)
        return size


def _apart(head: str, text: str, tail: str) -> tuple[str, ...]:
    """Cut a block where the pre-tokenizers of tiktoken split anyway: between a line end and what does not belong to it.

    Line ends, blanks and slashes may belong to what stands before them.
    """
    if not head.endswith("\n") or not text or text[0].isspace() or text[0] == "/":
        return (head + text + tail,)
    below = tail[1:]
    if tail[:1] != "\n" or not below or below[0].isspace() or below[0] == "/":
        return head, text + tail
    return head, text + "\n", below
