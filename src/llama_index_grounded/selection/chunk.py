"""One chunk as blocks, each with what frames it, and what is left when some of them are taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import field, included_text, with_text
from llama_index_grounded.selection.paragraphs import Block, fold, split_blocks
from llama_index_grounded.selection.remover import Cut

__all__ = ["Chunk", "Frame"]

_COLONS = (":", "：")
_LEAD_IN_LEVEL = 8
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
        above = () if stated is None else (fold(stated),)
        open_: list[Block] = []
        lead_ins: tuple[str, ...] = ()
        for at, block in enumerate(self.blocks):
            if block.kind == "heading":
                while open_ and open_[-1].level >= block.level:
                    open_.pop()
                open_.append(block)
            headings = tuple(fold(heading.title) for heading in reversed(open_))
            yield Frame(headings or above, lead_ins)
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
        kept_leads = {at for at in twins if self._leads_in(at) and self._stays(self._under(at), twins)}
        gone = {at: twin for at, twin in twins.items() if at not in kept_leads}
        if not gone:
            return Cut(self.scored)
        removed: dict[str, int] = defaultdict(int)
        for at, twin in gone.items():
            removed[twin] += self.blocks[at].end - self.blocks[at].start
        kept = self._kept(gone)
        if all(self.blocks[at].kind == "heading" for at in kept):
            return Cut(None, removed)
        ends = [block.start for block in self.blocks[1:]] + [len(self.text)]
        text = "".join(self.text[self.blocks[at].start : ends[at]] for at in kept)
        return Cut(with_text(self.scored, text.rstrip()), removed)

    def _kept(self, gone: Mapping[int, str]) -> list[int]:
        out = dict.fromkeys(gone)
        # The deepest first: a heading over nothing but a bare lead-in line is bare itself.
        framing = [at for at in range(len(self.blocks)) if at not in out and self._level(at)]
        for at in sorted(framing, key=lambda at: (self._level(at), at), reverse=True):
            under = self._under(at)
            if under and not self._stays(under, out):
                out[at] = None
        return [at for at in range(len(self.blocks)) if at not in out]

    def _level(self, at: int) -> int:
        return _LEAD_IN_LEVEL if self._leads_in(at) else self.blocks[at].level

    def _under(self, at: int) -> list[int]:
        """List the evidence under a heading or a lead-in line, down to the next one of its level.

        A lead-in line right after another one stands under it.
        """
        under: list[int] = []
        for below in range(at + 1, len(self.blocks)):
            chained = self._leads_in(below) and self._leads_in(below - 1)
            if 0 < self._level(below) <= self._level(at) and not chained:
                break
            if self.blocks[below].kind != "heading":
                under.append(below)
        return under

    @staticmethod
    def _stays(places: list[int], out: Mapping[int, object]) -> bool:
        return any(at not in out for at in places)
