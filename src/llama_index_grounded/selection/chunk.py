"""One chunk as blocks, each with what frames it, and what is left when some of them are taken out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import field, included_text, with_text
from llama_index_grounded.selection.lead_ins import label_of, says_something
from llama_index_grounded.selection.paragraphs import fold, is_short, split_blocks
from llama_index_grounded.selection.remover import Cut

__all__ = ["Chunk", "Frame"]

_BOLD_LEVEL = 7
_LEAD_IN_LEVEL = 8
_SENTENCE_LEVEL = 9
_LABEL_LEVELS = {"lead-in": _LEAD_IN_LEVEL, "sentence": _SENTENCE_LEVEL}
_LEVELS = 10
_MOST_LABELS = 4
"""How many labels above a block count one by one; the last of them stands for all that are farther away."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What gives a block its meaning: the headings and labels above it and the lines that lead it in.

    Two blocks of the same text say the same if they have the same lead-in lines, and the same headings and labels as
    far as those of both are known.
    """

    above: tuple[Hashable, ...]
    """Headings, and labels since the last of them, the nearest first. Those above the chunk's beginning are unknown."""
    lead_ins: int
    """Hash of the label right before the block ("E-books:") and of the ones that lead that in; 0 without any."""


class Chunk:
    """One node's text in blocks."""

    def __init__(self, scored: NodeWithScore) -> None:
        self.scored = scored
        self.text = included_text(scored.node)
        self.blocks = split_blocks(self.text)
        self.folded = [fold(self.text[block.start : block.end]) for block in self.blocks]
        self.labels = [label_of(block, self.text) for block in self.blocks]
        self.frames = list(self._frames())
        self.first = next((at for at, block in enumerate(self.blocks) if block.kind != "heading"), None)
        """The first block that is evidence; None for a chunk of nothing but headings."""
        self.evidence = "" if self.first is None else fold(self.text[self.blocks[self.first].start :])
        """The folded text without the headings that prefix it."""

    def _frames(self) -> Iterator[Frame]:
        stated = field(self.scored.node, "heading")
        headings: tuple[str, ...] = () if stated is None else (fold(stated),)
        open_: list[tuple[int, str]] = []
        labels: tuple[Hashable, ...] = ()
        lead_ins = earlier = 0
        for block, label, folded in zip(self.blocks, self.labels, self.folded, strict=True):
            if block.title and block.level < _BOLD_LEVEL:
                while open_ and open_[-1][0] >= block.level:
                    open_.pop()
                open_.append((block.level, fold(block.title)))
                headings, labels = tuple(title for _, title in reversed(open_)), ()
            yield Frame(labels + headings, lead_ins)
            if not says_something(folded):
                continue
            text = fold(block.title) if block.level == _BOLD_LEVEL else "" if label is None else label.text
            if text:
                labels = (text, *labels)
                labels = labels if len(labels) <= _MOST_LABELS else (*labels[:-2], hash(labels[-2:]))
            # A sentence may be the label of what follows, but no label of another label.
            lead_ins = 0 if label is None or label.kind == "line" else hash((label.text, earlier))
            earlier = lead_ins if label is not None and label.kind == "lead-in" else 0

    def without(self, twins: Mapping[int, str], *, framed: bool) -> Cut:
        """Take out blocks that stand elsewhere.

        A line that leads in what stays ("The following are excluded:") stays too. If framed, so does what may be the
        title of it, and a paragraph right before a list, a table or code, which these may be about. Headings that have
        lost everything under them go as well, and so do labels of prose that the twins have.

        Args:
            twins: Places of the blocks, and the id of the node that holds each.
            framed: Whether each twin stands behind the same labels, so that these need not be twins themselves.
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
        """Go up from the end, and know at each heading or label whether there was and is anything under it."""
        out: set[int] = set()
        had, has = [False] * _LEVELS, [False] * _LEVELS
        tied = {*self._introducing()} if framed else set[int]()
        for at in reversed(range(len(self.blocks))):
            level, evidence = self._level(at), self.blocks[at].kind != "heading"
            # By position, a sentence that stands elsewhere is no less said there for what stands under it here.
            level = 0 if level == _SENTENCE_LEVEL and not framed else level
            goes_along = had[level] and (framed or not evidence)
            stays = at in tied or (framed and at + 1 not in out and self._may_title(at))
            if not stays and not has[level] and (at in twins or (level and goes_along)):
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

    def _introducing(self) -> Iterator[int]:
        """Find the paragraphs that a list, a table or code may be about: right before these, or before their labels."""
        introduced, leads = False, False
        for at in reversed(range(len(self.blocks))):
            kind, level, folded = self.blocks[at].kind, self._level(at), self.folded[at]
            if introduced and kind == "prose":
                yield at
            if not says_something(folded):
                continue
            if level < _BOLD_LEVEL or not is_short(folded):
                introduced = kind in {"code", "table", "list"}
            # What looks like a label and has nothing under it is a list without bullets, a formula, or an image.
            elif level == _LEAD_IN_LEVEL and not leads:
                introduced = True
            leads = kind != "heading" or level == _BOLD_LEVEL

    def _may_title(self, at: int) -> bool:
        """Tell whether what may be a long title, or begins with one, stands right before a text of some length."""
        label, behind = self.labels[at], at + 1
        if label is None or label.kind != "line" or behind == len(self.blocks):
            return False
        return self.blocks[behind].kind != "heading" and not is_short(self.folded[behind])

    def _level(self, at: int) -> int:
        block, label = self.blocks[at], self.labels[at]
        # A list, table or code that ends openly frames what follows, but is evidence itself.
        return block.level if label is None or block.kind != "prose" else _LABEL_LEVELS.get(label.kind, 0)
