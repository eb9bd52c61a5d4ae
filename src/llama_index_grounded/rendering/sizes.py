"""How many tokens a rendered block takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llama_index_grounded.rendering.renderer import key_at, shown_text

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from llama_index_grounded.rendering.renderer import Renderer
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["BlockCounter"]

_SAME_LENGTH_KEYS = 999


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
        self._frame: Callable[..., tuple[str, str, str]] | None = getattr(renderer, "frame", None)
        self._counter = counter
        self._same_keys = _SAME_LENGTH_KEYS if counter.counts_in_threes else 0
        self._sizes = sizes
        self._ready: dict[int, int] = {}
        """Tokens of the nodes that were counted in advance, by object."""

    @functools.cached_property
    def _name(self) -> str:
        return self._counter.name

    def prepare(self, nodes: Sequence[NodeWithScore]) -> None:
        """Count the blocks of nodes that will all be asked for, as far as their size does not depend on their place.

        All are rendered before the first is counted: what makes blocks and what counts them are both slower when they
        take turns, since each has to fetch into the processor's cache again what the other has pushed out.

        Args:
            nodes: Which must live on until the last of them was asked for.
        """
        ahead = [scored for scored in nodes[: self._same_keys] if not self.is_blank(scored)]
        rows = [self._parts(scored, 0) for scored in ahead]
        self._ready = {id(scored): self._sum(row) for scored, row in zip(ahead, rows, strict=True)}

    def is_blank(self, scored: NodeWithScore) -> bool:
        """Tell whether a node would be shown without any text."""
        return id(scored) not in self._ready and not shown_text(self._renderer, scored.node).strip()

    def tokens(self, scored: NodeWithScore, place: int) -> int:
        """Count one block at its place in the prompt, from 0."""
        if place < self._same_keys and id(scored) in self._ready:
            return self._ready[id(scored)]
        return self._sum(self._parts(scored, place))

    def _parts(self, scored: NodeWithScore, place: int) -> tuple[str, ...]:
        """Render what is counted apart."""
        if place >= self._same_keys:
            return (self._renderer.block(scored.node, key_at(place), scored.score),)
        if self._frame is None:
            return (self._renderer.block(scored.node, "S1", scored.score),)
        return _apart(*self._frame(scored.node, "S1", scored.score))

    def _sum(self, parts: tuple[str, ...]) -> int:
        total, counted_by = 0, self._name
        for part in parts:
            name = counted_by, part
            size = self._sizes.get(name)
            if size is None:
                size = self._sizes[name] = self._counter.tokens(part)
            total += size
        return total


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
