"""Pay for a repeated paragraph once, without losing what gives it its meaning.

Place: after the gate, before the budget, which undoes a removal when it rejects the node that kept the text.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llama_index_grounded import evidence
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.paragraphs import Block, fold, split_blocks, word_count
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.selection.trail import Evidence, Removal

__all__ = ["ScopedDedup"]

Scope = Literal["section", "document", "global"]
Level = Literal["paragraph", "chunk"]
Match = Literal["text", "position"]

MIN_WORDS = 8


class ScopedDedup(Stage):
    """Remove repeated chunks, and repeated prose paragraphs within one section of one document version.

    The better-ranked node keeps the text. Twins are equal after Unicode NFC and white-space folding, case kept.
    Nothing is removed within one chunk; no paragraph under eight words; none whose heading or lead-in line differs
    from its twin's; none that leads in what stays. Code, tables and lists are never cut and go only with a chunk that
    repeats as a whole. A chunk of which only headings are left is dropped.

    Of several copies of one chunk (same identity, same text) the one with the best score stays.

    A paragraph at the start of a chunk has the chunk's ``heading`` field as its heading; where that is absent the
    heading is unknown, which does not count as different.

    Args:
        scope: Where a twin may stand: in the same ``"section"``, the same ``"document"`` (and revision and version
            in both cases), or anywhere (``"global"``).
        level: ``"paragraph"``, or ``"chunk"`` to remove whole chunks only.
        match: ``"text"``, or ``"position"`` to remove only text whose character ranges in the document overlap, of
            whatever kind and length; a warning that a document repeats then stays. Nodes without ranges are left alone.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> same = "Books can be returned within twenty-one days of delivery to us."
        >>> nodes = make_nodes([same, same + "\\n\\nGift cards can not."], metadata={"document_id": "returns"})
        >>> [node.text for node in ScopedDedup().postprocess_nodes(nodes)]
        ['Books can be returned within twenty-one days of delivery to us.', 'Gift cards can not.']
    """

    kind: ClassVar[Kind] = "rewrite"
    removes: ClassVar[bool] = True

    scope: Scope = "section"
    level: Level = "paragraph"
    match: Match = "text"

    def ledger(self) -> TextLedger:
        """Begin with nothing admitted."""
        return TextLedger(self.scope, self.level, self.match)

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:  # noqa: ARG002 - repetition does not depend on the query
        """Go through the nodes in rank order and keep what is new."""
        decisions: list[Decision] = []
        removals: list[Removal] = []
        kept: dict[int, NodeWithScore] = {}
        ledger = self.ledger()
        for scored in sorted(self._distinct(nodes, decisions), key=_rank):
            cut = ledger.cut(scored)
            decisions.extend(self._report(scored, cut))
            if cut.after is not scored:
                removals.append(Removal(self, scored, cut.after))
            if cut.after is not None:
                ledger.admit(cut.after)
                kept[evidence.mark_of(scored)["slot"]] = cut.after
        ordered = [kept[slot] for scored in nodes if (slot := evidence.mark_of(scored)["slot"]) in kept]
        return Outcome(ordered, decisions, removals)

    def _distinct(self, nodes: Evidence, decisions: list[Decision]) -> list[NodeWithScore]:
        """Keep the best-scored of the copies of one chunk. Other text under the same identity is another chunk."""
        groups: dict[Hashable, list[NodeWithScore]] = defaultdict(list)
        for scored in nodes:
            groups[evidence.identity(scored.node), evidence.included_text(scored.node)].append(scored)
        best: list[NodeWithScore] = []
        for copies in groups.values():
            winner = max(copies, key=_score)
            best.append(winner)
            for scored in copies:
                if scored is not winner:
                    twin = winner.node.node_id
                    decisions.append(self.decision(scored, "dropped", "repeated_chunk", value=scored.score, twin=twin))
        return best

    def _report(self, scored: NodeWithScore, cut: Cut) -> Iterator[Decision]:
        if cut.after is None:
            yield self.decision(scored, "dropped", "duplicate", value=sum(cut.twins.values()), twin=next(iter(cut.twins)))
            return
        for twin, characters in cut.twins.items():
            yield self.decision(scored, "shortened", "duplicate", value=characters, twin=twin)


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left of one node, and who holds the rest."""

    after: NodeWithScore | None
    twins: dict[str, int] = field(default_factory=dict[str, int])
    """Removed characters by the node id of the twin that keeps them, in the order of the text."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A block as a possible twin: who holds it, and in which frame."""

    node_id: str
    heading: str | None
    """None where the chunk does not say."""
    lead_in: str | None
    span: tuple[int, int] | None
    """Character range in the document, where known."""


class TextLedger:
    """The text that is already admitted, by scope."""

    def __init__(self, scope: Scope, level: Level, match: Match) -> None:
        self._scope: Scope = "document" if match == "position" and scope == "section" else scope
        self._level = level
        self._by_position = match == "position"
        self._blocks: dict[Hashable, list[Passage]] = defaultdict(list)
        self._chunks: dict[Hashable, list[Passage]] = defaultdict(list)
        self._last: _Chunk | None = None

    def trim(self, candidate: NodeWithScore) -> NodeWithScore | None:
        """Return the candidate as it is, a shortened copy, or None where nothing new is left."""
        return self.cut(candidate).after

    def admit(self, scored: NodeWithScore) -> None:
        """Note that the model will see this node."""
        chunk = self._chunk_of(scored)
        scope = self._scope_of(scored.node)
        self._chunks[scope, chunk.evidence_text].append(chunk.whole())
        for place, block in enumerate(chunk.blocks):
            if block.kind != "heading":
                self._blocks[scope, chunk.folded(place)].append(chunk.passage(place))

    def cut(self, scored: NodeWithScore) -> Cut:
        """Find what of a node is already admitted."""
        chunk = self._chunk_of(scored)
        scope = self._scope_of(scored.node)
        if chunk.evidence_text and (twin := self._twin(self._chunks[scope, chunk.evidence_text], chunk.whole())):
            return Cut(None, {twin.node_id: len(chunk.text)})
        if self._level == "chunk":
            return Cut(scored)
        gone = {
            place: twin
            for place, block in enumerate(chunk.blocks)
            if self._comparable(block, chunk, place)
            and (twin := self._twin(self._blocks[scope, chunk.folded(place)], chunk.passage(place)))
        }
        return chunk.without(chunk.framed(gone))

    def _chunk_of(self, scored: NodeWithScore) -> _Chunk:
        """Split a node once, though it is judged first and then admitted."""
        if self._last is None or self._last.scored is not scored:
            self._last = _Chunk(scored)
        return self._last

    def _comparable(self, block: Block, chunk: _Chunk, place: int) -> bool:
        if self._by_position:
            return block.kind != "heading"
        return block.kind == "prose" and word_count(chunk.folded(place)) >= MIN_WORDS

    def _twin(self, candidates: list[Passage], passage: Passage) -> Passage | None:
        same = self._overlap if self._by_position else self._same_frame
        return next((other for other in candidates if same(other, passage)), None)

    @staticmethod
    def _overlap(one: Passage, other: Passage) -> bool:
        if one.span is None or other.span is None:
            return False
        return max(one.span[0], other.span[0]) < min(one.span[1], other.span[1])

    @staticmethod
    def _same_frame(one: Passage, other: Passage) -> bool:
        unknown = one.heading is None or other.heading is None
        return (unknown or one.heading == other.heading) and one.lead_in == other.lead_in

    def _scope_of(self, node: BaseNode) -> Hashable:
        who = evidence.identity(node)
        if self._scope == "section":
            return who.document_id, who.revision, who.version, evidence.field(node, "section")
        # Ranges of different documents have nothing to do with each other, whatever the scope.
        return () if self._scope == "global" and not self._by_position else who[:3]


class _Chunk:
    """One node's text in blocks, each with its frame."""

    def __init__(self, scored: NodeWithScore) -> None:
        self.scored = scored
        self.text = evidence.included_text(scored.node)
        self.blocks = split_blocks(self.text)
        self._offset = _offset_in_document(scored.node, self.text)
        places = (place for place, block in enumerate(self.blocks) if block.kind != "heading")
        self._first = next(places, len(self.blocks))
        """The first block that is evidence."""
        self.evidence_text = fold(self.text[self.blocks[self._first].start :]) if self._first < len(self.blocks) else ""

    def folded(self, place: int) -> str:
        block = self.blocks[place]
        return fold(self.text[block.start : block.end])

    def passage(self, place: int) -> Passage:
        """Frame one block."""
        return self._passage(place, self.blocks[place].end)

    def whole(self) -> Passage:
        """Frame the chunk: everything after the headings that prefix it."""
        if self._first == len(self.blocks):
            return Passage(self.scored.node.node_id, None, None, None)
        return self._passage(self._first, self.blocks[-1].end)

    def _passage(self, place: int, end: int) -> Passage:
        start = self.blocks[place].start
        span = None if self._offset is None else (self._offset + start, self._offset + end)
        return Passage(self.scored.node.node_id, self._heading(place), self._lead_in(place), span)

    def _heading(self, place: int) -> str | None:
        for block in reversed(self.blocks[:place]):
            if block.kind == "heading":
                return fold(self.text[block.start : block.end].strip("#=-*_ \n"))
        stated = evidence.field(self.scored.node, "heading")
        return None if stated is None else fold(stated)

    def _lead_in(self, place: int) -> str | None:
        before = self.folded(place - 1) if place and self.blocks[place - 1].kind == "prose" else ""
        return before if before.endswith((":", "：")) else None

    def framed(self, gone: dict[int, Passage]) -> dict[int, Passage]:
        """Keep a paragraph that leads in what stays: "The following are excluded:" belongs to its list."""
        kept = dict(gone)
        for place in reversed(gone):
            leads_in = self.folded(place).endswith((":", "："))
            if leads_in and place + 1 < len(self.blocks) and place + 1 not in kept:
                del kept[place]
        return kept

    def without(self, gone: dict[int, Passage]) -> Cut:
        if not gone:
            return Cut(self.scored)
        twins: dict[str, int] = defaultdict(int)
        for place, passage in gone.items():
            twins[passage.node_id] += self.blocks[place].end - self.blocks[place].start
        kept = [place for place in range(len(self.blocks)) if place not in gone and not self._is_bare(place, gone)]
        if all(self.blocks[place].kind == "heading" for place in kept):
            return Cut(None, dict(twins))
        ends = [block.start for block in self.blocks[1:]] + [len(self.text)]
        text = "".join(self.text[self.blocks[place].start : ends[place]] for place in kept)
        return Cut(evidence.with_text(self.scored, text.rstrip()), dict(twins))

    def _is_bare(self, place: int, gone: dict[int, Passage]) -> bool:
        """Tell a heading that has lost everything under it."""
        level = self.blocks[place].level
        under = []
        for below in range(place + 1, len(self.blocks)):
            if 0 < self.blocks[below].level <= level:
                break
            if self.blocks[below].kind != "heading":
                under.append(below)
        return bool(level and under) and all(below in gone for below in under)


def _offset_in_document(node: BaseNode, text: str) -> int | None:
    """Return where the text begins in its document, if the node's range is that of this very text."""
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    return start if isinstance(start, int) and isinstance(end, int) and end - start == len(text) else None


def _rank(scored: NodeWithScore) -> int:
    return evidence.mark_of(scored)["rank"]


def _score(scored: NodeWithScore) -> float:
    return scored.score if scored.score is not None and not math.isnan(scored.score) else -math.inf
