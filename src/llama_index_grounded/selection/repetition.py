"""What is admitted already, and so need not be said again: by its text, or by its place in the document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index_grounded.evidence import field, identity, included_text, mark_of, with_stamp
from llama_index_grounded.selection.chunk import Chunk, Frame
from llama_index_grounded.selection.paragraphs import MIN_WORDS, word_count
from llama_index_grounded.selection.relations import neighbour_ids, source_node
from llama_index_grounded.selection.remover import Cut
from llama_index_grounded.selection.twins import Twins

__all__ = ["Level", "ListingLedger", "PositionLedger", "Scope", "TextLedger", "scope_of"]

Scope = Literal["section", "document", "global"]
Level = Literal["paragraph", "chunk"]
_ByFrame: TypeAlias = "dict[tuple[Hashable, ...], tuple[int, str]]"


class _Twins:
    """Which node says a text first, by what frames it there."""

    def __init__(self) -> None:
        self._said: defaultdict[Hashable, tuple[_ByFrame, _ByFrame]] = defaultdict(lambda: ({}, {}))
        self._count = 0

    def add(self, text: Hashable, frame: Frame, node_id: str) -> None:
        """Note a text; of two nodes that say it in the same frame the first counts."""
        exactly, below = self._said[text, frame.lead_ins]
        self._count += 1
        twin = self._count, node_id
        exactly.setdefault(frame.above, twin)
        for known in range(len(frame.above)):
            below.setdefault(frame.above[:known], twin)

    def find(self, text: Hashable, frame: Frame) -> str | None:
        """Return the first node that says a text in a frame that fits, as far as both frames are known."""
        said = self._said.get((text, frame.lead_ins))
        if said is None:
            return None
        exactly, below = said
        found = [exactly.get(frame.above[:known]) for known in range(len(frame.above) + 1)]
        found.append(below.get(frame.above))
        return min((twin for twin in found if twin is not None), default=(0, None))[1]


class TextLedger:
    """Admitted paragraphs and chunks by their folded text, within one scope."""

    def __init__(self, scope: Scope, level: Level) -> None:
        self._scope: Scope = scope
        self._level: Level = level
        self._paragraphs = _Twins()
        self._chunks = _Twins()
        self._recent: list[Chunk] = []
        self.shortened: list[NodeWithScore] = []
        """Every copy that was left of a node, also on the way to nothing."""

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Take away what is admitted already, until what is left repeats nothing."""
        self._recent = []
        scored, removed = candidate, dict[str, int]()
        while True:
            cut = self._cut(self._chunk_of(scored))
            for twin, characters in cut.twins.items():
                removed[twin] = removed.get(twin, 0) + characters
            if cut.after is None or cut.after is scored:
                return Cut(cut.after, removed)
            scored = cut.after
            self.shortened.append(scored)

    def _cut(self, chunk: Chunk) -> Cut:
        scope = scope_of(chunk.scored.node, self._scope)
        if chunk.first is not None and (twin := self._chunks.find((scope, chunk.evidence), chunk.frames[chunk.first])):
            return Cut(None, {twin: len(chunk.text)})
        if self._level == "chunk":
            return Cut(chunk.scored)
        twins = {
            at: twin
            for at, block in enumerate(chunk.blocks)
            if block.kind == "prose"
            and (twin := self._paragraphs.find((scope, chunk.folded[at]), chunk.frames[at]))
            and word_count(chunk.folded[at]) >= MIN_WORDS
        }
        return chunk.without(twins, framed=True)

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see."""
        chunk = self._chunk_of(scored)
        scope = scope_of(scored.node, self._scope)
        node_id = scored.node.node_id
        if chunk.first is not None:
            self._chunks.add((scope, chunk.evidence), chunk.frames[chunk.first], node_id)
        for block, folded, frame in zip(chunk.blocks, chunk.folded, chunk.frames, strict=True):
            if block.kind == "prose":
                self._paragraphs.add((scope, folded), frame, node_id)

    def _chunk_of(self, scored: NodeWithScore) -> Chunk:
        """Split a node once, though it is trimmed first and then admitted."""
        found = next((chunk for chunk in self._recent if chunk.scored is scored), None)
        if found is None:
            found = Chunk(scored)
            self._recent.append(found)
        return found


class ListingLedger(TextLedger):
    """The same, asked again by a budget: a node lists the documents of those that were left out for it."""

    def __init__(self, scope: Scope, level: Level) -> None:
        super().__init__(scope, level)
        self._twins = Twins()
        self._holders: dict[str, NodeWithScore] = {}

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Take away what is admitted already; what is left is a copy of our own, on which twins can be noted."""
        self._twins.forget(candidate)
        cut = super().trim(candidate)
        if cut.after is None:
            for holder in map(self._holders.get, cut.twins):
                if holder is not None:
                    self._twins.add(holder, candidate)
        elif cut.after is candidate:
            return Cut(with_stamp(candidate, mark_of(candidate)))
        return cut

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see."""
        super().admit(scored, came)
        self._holders[scored.node.node_id] = scored
        self._twins.admit(scored, came)


@dataclass(frozen=True, slots=True)
class _Region:
    """A stretch of a document, the end not included, and the node that has it."""

    node_id: str
    start: int
    text: str
    came_as: str
    """The id of the node that had the stretch first; neighbours know it under this one."""
    previous: str | None
    following: str | None

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def counts_as(self, other: _Region) -> bool:
        """Tell whether two positions count from the same character, as far as neighbours can tell.

        A parser that is given sections counts from the section, and names the whole document as the source. Of its
        chunks only those overlap that follow each other, and there the one ends as the other begins.
        """
        if not (self.previous or self.following or other.previous or other.following):
            return True
        if self.came_as == other.came_as:
            return self.start == other.start and self.text == other.text
        one, two = (self, other) if self.start < other.start else (other, self)
        if two.came_as != one.following and one.came_as != two.previous:
            return False
        goes_on = one.start < two.start <= one.end < two.end
        return goes_on and one.text.endswith(two.text[: one.end - two.start])


class PositionLedger:
    """Admitted stretches of each document. Only the very same characters of the same source count as repeated."""

    def __init__(self, scope: Scope, level: Level) -> None:
        self._scope: Scope = scope
        self._level: Level = level
        self._regions: dict[Hashable, list[_Region]] = defaultdict(list)

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Take away what is admitted already; a node whose place in its document is unknown is left alone."""
        own = _region(candidate, candidate.node.node_id)
        if own is None:
            return Cut(candidate)
        regions = [other for other in self._regions[self._count_of(candidate.node)] if own.counts_as(other)]
        if not regions:
            return Cut(candidate)
        chunk = Chunk(candidate)
        if self._level == "chunk":
            twin = _holder(regions, own.start, chunk.text)
            return Cut(None, {twin: len(chunk.text)}) if twin and chunk.text.strip() else Cut(candidate)
        return chunk.without(
            {
                at: twin
                for at, block in enumerate(chunk.blocks)
                if block.kind != "heading"
                and (twin := _holder(regions, own.start + block.start, chunk.text[block.start : block.end]))
            },
            framed=False,
        )

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see: the stretch as it came, since what was taken out of it stands elsewhere."""
        region = _region(came, scored.node.node_id)
        if region is not None:
            self._regions[self._count_of(came.node)].append(region)

    def _count_of(self, node: BaseNode) -> Hashable:
        """Name what a node's position counts from, within the scope."""
        source = source_node(node)
        if source is not None:
            return scope_of(node, self._scope), source
        # Nobody knows: a page or a section may be a source of its own.
        return scope_of(node, "section"), field(node, "page")


def scope_of(node: BaseNode, scope: Scope) -> Hashable:
    """Name the scope that a node belongs to."""
    who = identity(node)
    if scope == "section":
        return who.document_id, who.revision, who.version, field(node, "section")
    return () if scope == "global" else who[:3]


def _holder(regions: list[_Region], start: int, text: str) -> str | None:
    """Find the region that holds these very characters."""
    for region in regions:
        at = start - region.start
        if at >= 0 and region.text.startswith(text, at):
            return region.node_id
    return None


def _region(scored: NodeWithScore, holder: str) -> _Region | None:
    """Return the stretch that a node is, if the node's range is that of this very text."""
    node = scored.node
    text, start, end = included_text(node), getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    if not isinstance(start, int) or not isinstance(end, int) or end - start != len(text):
        return None
    return _Region(holder, start, text, node.node_id, *neighbour_ids(node))
