"""What is admitted already, and so need not be said again: by its text, or by its place in the document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index_grounded.evidence import field, identity, included_text
from llama_index_grounded.selection.chunk import Chunk, Frame
from llama_index_grounded.selection.paragraphs import MIN_WORDS, word_count
from llama_index_grounded.selection.remover import Cut

__all__ = ["Level", "PositionLedger", "Scope", "TextLedger", "scope_of"]

Scope = Literal["section", "document", "global"]
Level = Literal["paragraph", "chunk"]


@dataclass(frozen=True, slots=True)
class _Twin:
    node_id: str
    frame: Frame


class TextLedger:
    """Admitted paragraphs and chunks by their folded text, within one scope."""

    def __init__(self, scope: Scope, level: Level) -> None:
        self._scope: Scope = scope
        self._level: Level = level
        self._paragraphs: dict[Hashable, list[_Twin]] = defaultdict(list)
        self._chunks: dict[Hashable, list[_Twin]] = defaultdict(list)
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
        if chunk.first is not None and (
            twin := _fitting(self._chunks[scope, chunk.evidence], chunk.frames[chunk.first])
        ):
            return Cut(None, {twin: len(chunk.text)})
        if self._level == "chunk":
            return Cut(chunk.scored)
        twins = {
            at: twin
            for at, block in enumerate(chunk.blocks)
            if block.kind == "prose"
            and (twin := _fitting(self._paragraphs[scope, chunk.folded[at]], chunk.frames[at]))
            and word_count(chunk.folded[at]) >= MIN_WORDS
        }
        return chunk.without(twins)

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see."""
        chunk = self._chunk_of(scored)
        scope = scope_of(scored.node, self._scope)
        twins = [_Twin(scored.node.node_id, frame) for frame in chunk.frames]
        if chunk.first is not None:
            self._chunks[scope, chunk.evidence].append(twins[chunk.first])
        for block, folded, twin in zip(chunk.blocks, chunk.folded, twins, strict=True):
            if block.kind == "prose":
                self._paragraphs[scope, folded].append(twin)

    def _chunk_of(self, scored: NodeWithScore) -> Chunk:
        """Split a node once, though it is trimmed first and then admitted."""
        found = next((chunk for chunk in self._recent if chunk.scored is scored), None)
        if found is None:
            found = Chunk(scored)
            self._recent.append(found)
        return found


@dataclass(frozen=True, slots=True)
class _Region:
    node_id: str
    start: int
    text: str


class PositionLedger:
    """Admitted stretches of each document. Only the very same characters of the same document count as repeated."""

    def __init__(self, level: Level) -> None:
        self._level: Level = level
        self._regions: dict[Hashable, list[_Region]] = defaultdict(list)

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Take away what is admitted already; a node whose place in its document is unknown is left alone."""
        start = _start_in_document(candidate.node)
        regions = self._regions[scope_of(candidate.node, "document")]
        if start is None or not regions:
            return Cut(candidate)
        chunk = Chunk(candidate)
        if self._level == "chunk":
            twin = _holder(regions, start, chunk.text)
            return Cut(None, {twin: len(chunk.text)}) if twin and chunk.text.strip() else Cut(candidate)
        return chunk.without(
            {
                at: twin
                for at, block in enumerate(chunk.blocks)
                if block.kind != "heading"
                and (twin := _holder(regions, start + block.start, chunk.text[block.start : block.end]))
            }
        )

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see: the stretch as it came, since what was taken out of it stands elsewhere."""
        start = _start_in_document(came.node)
        if start is not None:
            region = _Region(scored.node.node_id, start, included_text(came.node))
            self._regions[scope_of(came.node, "document")].append(region)


def scope_of(node: BaseNode, scope: Scope) -> Hashable:
    """Name the scope that a node belongs to."""
    who = identity(node)
    if scope == "section":
        return who.document_id, who.revision, who.version, field(node, "section")
    return () if scope == "global" else who[:3]


def _fitting(twins: list[_Twin], frame: Frame) -> str | None:
    return next((twin.node_id for twin in twins if twin.frame.fits(frame)), None)


def _holder(regions: list[_Region], start: int, text: str) -> str | None:
    """Find the region that holds these very characters."""
    for region in regions:
        at = start - region.start
        if at >= 0 and region.text.startswith(text, at):
            return region.node_id
    return None


def _start_in_document(node: BaseNode) -> int | None:
    """Return where the text begins in its document, if the node's range is that of this very text."""
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    known = isinstance(start, int) and isinstance(end, int) and end - start == len(included_text(node))
    return start if known else None
