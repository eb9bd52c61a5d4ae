"""One chunk as blocks, each with what frames it, and what is left when some of them are taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import field, included_text, with_text
from llama_index_grounded.selection.lead_ins import leads_in
from llama_index_grounded.selection.paragraphs import fold, split_blocks
from llama_index_grounded.selection.remover import Cut

__all__ = ["Chunk", "Frame"]

_LEAD_IN_LEVEL = 8
_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Frame:
    """What gives a block its meaning: the headings above it and the lines that lead it in.

    Two blocks of the same text say the same if they have the same lead-in lines, and the same headings as far as those
    of both are known.
    """

    headings: tuple[str, ...]
    """The nearest first. Those above the chunk's beginning are unknown."""
    lead_ins: int
    """Hash of the line that leads the block in ("E-books:") and of the ones right before that; 0 without any."""


class Chunk:
    """One node's text in blocks."""

    def __init__(self, scored: NodeWithScore) -> None:
        self.scored = scored
        self.text = included_text(scored.node)
        self.blocks = split_blocks(self.text)
        self.folded = [fold(self.text[block.start : block.end]) for block in self.blocks]
        self.frames = list(self._frames())
        self.first = next((at for at, block in enumerate(self.blocks) if block.kind != "heading"), None)
        """The first block that is evidence; None for a chunk of nothing but headings."""
        self.evidence = "" if self.first is None else fold(self.text[self.blocks[self.first].start :])
        """The folded text without the headings that prefix it."""

    def _frames(self) -> Iterator[Frame]:
        stated = field(self.scored.node, "heading")
        headings: tuple[str, ...] = () if stated is None else (fold(stated),)
        open_: list[tuple[int, str]] = []
        lead_ins = 0
        for at, block in enumerate(self.blocks):
            if block.kind == "heading":
                while open_ and open_[-1][0] >= block.level:
                    open_.pop()
                open_.append((block.level, fold(block.title)))
                headings = tuple(title for _, title in reversed(open_))
            yield Frame(headings, lead_ins)
            lead_ins = hash((self.folded[at], lead_ins)) if leads_in(block, self.text) else 0

    def without(self, twins: Mapping[int, str], *, framed: bool) -> Cut:
        """Take out blocks that stand elsewhere.

        A line that leads in what stays ("The following are excluded:") stays too. Headings that have lost everything
        under them go as well, and so do lead-in lines of prose that the twins have.

        Args:
            twins: Places of the blocks, and the id of the node that holds each.
            framed: Whether each twin stands behind the same lead-in lines, so that these need not be twins themselves.
        """
        out = self._taken_out(twins, framed=framed)
        removed: dict[str, int] = defaultdict(int)
        for at, twin in twins.items():
            if at in out:
                removed[twin] += self.blocks[at].end - self.blocks[at].start
        if not removed:
            return Cut(self.scored)
        kept = [at for at in range(len(self.blocks)) if at not in out]
        if all(self.blocks[at].kind == "heading" for at in kept):
            return Cut(None, removed)
        ends = [block.start for block in self.blocks[1:]] + [len(self.text)]
        text = "".join(self.text[self.blocks[at].start : ends[at]] for at in kept)
        return Cut(with_text(self.scored, text.rstrip()), removed)

    def _taken_out(self, twins: Mapping[int, str], *, framed: bool) -> set[int]:
        """Go up from the end, and know at each heading or lead-in line whether there was and is anything under it."""
        out: set[int] = set()
        had, has = [False] * _LEVELS, [False] * _LEVELS
        for at in reversed(range(len(self.blocks))):
            level, evidence = self._level(at), self.blocks[at].kind != "heading"
            goes_along = had[level] and (framed or not evidence)
            if not has[level] and (at in twins or (level and goes_along)):
                out.add(at)
            # A lead-in line right after another one stands under it; else a frame ends what stands under its equals.
            follows = level == _LEAD_IN_LEVEL and at and self._level(at - 1) == _LEAD_IN_LEVEL
            ends = level if level and not follows else _LEVELS
            for upper in range(1, _LEVELS):
                if upper >= ends:
                    had[upper] = has[upper] = False
                elif evidence:
                    had[upper] = True
                    has[upper] = has[upper] or at not in out
        return out

    def _level(self, at: int) -> int:
        block = self.blocks[at]
        # A list, table or code that ends openly frames what follows, but is evidence itself.
        return _LEAD_IN_LEVEL if block.kind == "prose" and leads_in(block, self.text) else block.level
