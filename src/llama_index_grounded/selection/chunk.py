"""One chunk as blocks, each with what frames it, and what is left when some of them are taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import field, included_text, with_text
from llama_index_grounded.selection.paragraphs import fold, split_blocks
from llama_index_grounded.selection.remover import Cut

__all__ = ["Chunk", "Frame"]

_COLONS = (":", "：")
_LEAD_IN_LEVEL = 8
_LEVELS = 9
_LEAD_INS = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """What gives a block its meaning: the headings above it and the lines that lead it in."""

    headings: tuple[str, ...]
    """The nearest first. Those above the chunk's beginning are unknown."""
    lead_ins: tuple[str, ...]
    """The line that leads the block in ("E-books:") and the ones right before that, the nearest first."""

    def fits(self, other: Frame) -> bool:
        """Tell whether two blocks of the same text say the same, as far as both frames are known."""
        return self.lead_ins == other.lead_ins and all(
            one == two for one, two in zip(self.headings, other.headings, strict=False)
        )


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
        lead_ins: tuple[str, ...] = ()
        for at, block in enumerate(self.blocks):
            if block.kind == "heading":
                while open_ and open_[-1][0] >= block.level:
                    open_.pop()
                open_.append((block.level, fold(block.title)))
                headings = tuple(title for _, title in reversed(open_))
            yield Frame(headings, lead_ins)
            lead_ins = (self.folded[at], *lead_ins)[:_LEAD_INS] if self._leads_in(at) else ()

    def _leads_in(self, at: int) -> bool:
        return self.blocks[at].kind == "prose" and self.folded[at].endswith(_COLONS)

    def without(self, twins: Mapping[int, str]) -> Cut:
        """Take out blocks that stand elsewhere.

        A line that leads in what stays ("The following are excluded:") stays too. Headings and lead-in lines that
        have lost everything under them go as well: the twin has them.

        Args:
            twins: Places of the blocks, and the id of the node that holds each.
        """
        out = self._taken_out(twins)
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

    def _taken_out(self, twins: Mapping[int, str]) -> set[int]:
        """Go up from the end, and know at each heading or lead-in line whether there was and is anything under it."""
        out: set[int] = set()
        had, has = [False] * _LEVELS, [False] * _LEVELS
        for at in reversed(range(len(self.blocks))):
            level, evidence = self._level(at), self.blocks[at].kind != "heading"
            if not has[level] and (at in twins or (level and had[level])):
                out.add(at)
            # A lead-in line right after another one stands under it; else a frame ends what stands under its equals.
            ends = level if level and not (level == _LEAD_IN_LEVEL and at and self._leads_in(at - 1)) else _LEVELS
            for upper in range(1, _LEVELS):
                if upper >= ends:
                    had[upper] = has[upper] = False
                elif evidence:
                    had[upper] = True
                    has[upper] = has[upper] or at not in out
        return out

    def _level(self, at: int) -> int:
        return _LEAD_IN_LEVEL if self._leads_in(at) else self.blocks[at].level
