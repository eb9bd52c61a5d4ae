"""Pay for a repeated paragraph once, without losing what gives it its meaning.

Place: after the gate and any reranker, right before the budget, which undoes a removal when it rejects the node that
kept the text. What another postprocessor drops in between counts as seen: its text does not come back elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import model_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import included_text
from llama_index_grounded.metadata import known
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Evidence, Removal, rank_of, slot_of
from llama_index_grounded.selection.copies import distinct
from llama_index_grounded.selection.openings import Openings
from llama_index_grounded.selection.remover import Cut, Ledger
from llama_index_grounded.selection.repetition import Level, ListingLedger, PositionLedger, Scope, TextLedger, scope_of
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.selection.twins import Slot, left_out_with, with_more_twins

__all__ = ["Match", "ScopedDedup", "cut_by"]

Match = Literal["text", "position"]


class ScopedDedup(Stage):
    r"""Remove repeated chunks, and repeated prose paragraphs within one section of one document version.

    The better-ranked node keeps the text. Twins are equal after Unicode NFC and white-space folding, case kept.
    Nothing is removed within one chunk; no paragraph under another heading or label than its twin; none that leads in,
    or may be the title of, what stays; none right before what is never cut; none under eight words, but a label with
    all that stood under it. Code, tables, lists and other containers are never cut and go only with a chunk that
    repeats as a whole. A chunk of which only headings are left is dropped.

    A label is what ends openly or with a question ("E-books:"), a paragraph of fewer than eight words ("iPhone",
    "Business customers only."), and a longer line that does not end as a sentence does. It counts until the next
    heading. A sentence of eight words or more is not told from other prose, whatever it says of what follows.

    Of several copies of one chunk (same identity, same text) the one with the best score stays, at the best rank.

    A paragraph at the start of a chunk has the chunk's ``heading`` field as its heading; where that is absent the
    heading is unknown, which does not count as different. Nor does a label that may stand above the chunk's beginning,
    unless the twin stands right behind its own.

    Args:
        scope: Where a twin may stand: in the same ``"section"``, the same ``"document"`` (and revision and version
            in both cases), or anywhere (``"global"``): then the source of a kept node lists in `also_in` the documents
            of chunks that were dropped for it as a whole.
        level: ``"paragraph"``, or ``"chunk"`` to remove whole chunks only.
        match: ``"text"``, or ``"position"`` to remove only what is the same stretch of the same document, whole blocks
            of whatever kind and length, if they do not lead in what stays; a warning that a document repeats then
            stays. Ranges are compared only where they count from one source: LlamaIndex's source node, or page and
            section where there is none, and a parser's chunks only with their neighbours. Nodes without a character
            range are left alone, and ``"global"`` is refused: ranges of two documents do not overlap.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> same = "Books can be returned within twenty-one days of delivery to us."
        >>> nodes = make_nodes([same, same + "\n\nGift cards can not."], metadata={"document_id": "returns"})
        >>> [node.text for node in ScopedDedup().postprocess_nodes(nodes)]
        ['Books can be returned within twenty-one days of delivery to us.', 'Gift cards can not.']
    """

    kind: ClassVar[Kind] = "rewrite"

    scope: Scope = "section"
    level: Level = "paragraph"
    match: Match = "text"

    @model_validator(mode="after")
    def _in_one_document(self) -> ScopedDedup:
        if self.match == "position" and self.scope == "global":
            msg = "match='position' compares character ranges of one document; scope must be 'section' or 'document'"
            raise ConfigurationError(msg)
        return self

    def ledger(self) -> Ledger:
        """Begin with nothing admitted."""
        if self.match == "position":
            return PositionLedger(self.scope, self.level)
        # In a narrower scope all twins are of one document.
        return (ListingLedger if self.scope == "global" else TextLedger)(self.scope, self.level)

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Go through the nodes in rank order and keep what is new."""
        decisions: list[Decision] = []
        removals: list[Removal] = []
        distinct = self._distinct(nodes, decisions)
        cuts = self._cuts(sorted(distinct, key=rank_of))
        for scored, cut in cuts:
            decisions.extend(self._report(scored, cut))
            left = None if cut.after is None else included_text(cut.after.node)
            removals.append(Removal(scored, left, tuple(cut.twins)))
        if not cuts:
            return Outcome(distinct, decisions)
        after = {slot_of(scored): cut.after for scored, cut in cuts}
        stay = [after.get(slot_of(scored), scored) for scored in distinct]
        listed = _listed(cuts) if self.scope == "global" else {}
        kept = [with_more_twins(scored, listed.get(scored.node.node_id, {})) for scored in stay if scored is not None]
        return Outcome(kept, decisions, removals)

    def _cuts(self, ranked: list[NodeWithScore]) -> list[tuple[NodeWithScore, Cut]]:
        """Find what goes; a node that shares no beginning of a line with another one is not even parsed."""
        if self.match == "position":
            return cut_by(self.ledger(), ranked)
        ledger = TextLedger(self.scope, self.level)
        beginnings = Openings(ranked, lambda node: scope_of(node, self.scope))
        cuts = cut_by(ledger, beginnings.alike)
        if beginnings.met_by(ledger.shortened):
            return cut_by(TextLedger(self.scope, self.level), ranked)
        return cuts

    def _distinct(self, nodes: Evidence, decisions: list[Decision]) -> list[NodeWithScore]:
        """Keep one copy of each chunk."""
        kept: list[NodeWithScore] = []
        for best, others in distinct(nodes):
            kept.append(best)
            decisions += [
                self.decision(scored, "dropped", "repeated_chunk", value=known(scored.score), twin=best.node.node_id)
                for scored in others
            ]
        return kept

    def _report(self, scored: NodeWithScore, cut: Cut) -> Iterator[Decision]:
        if cut.after is None:
            removed = sum(cut.twins.values())
            yield self.decision(scored, "dropped", "duplicate", value=removed, twin=next(iter(cut.twins)))
            return
        for twin, characters in cut.twins.items():
            yield self.decision(scored, "shortened", "duplicate", value=characters, twin=twin)


def cut_by(ledger: Ledger, ranked: Iterable[NodeWithScore]) -> list[tuple[NodeWithScore, Cut]]:
    """Go through nodes in rank order, and return those of which something goes."""
    cuts: list[tuple[NodeWithScore, Cut]] = []
    for scored in ranked:
        cut = ledger.trim(scored)
        if cut.after is not scored:
            cuts.append((scored, cut))
        if cut.after is not None:
            ledger.admit(cut.after, scored)
    return cuts


def _listed(cuts: Iterable[tuple[NodeWithScore, Cut]]) -> dict[str, dict[Slot, str]]:
    """Return what each node that stays stands for: the nodes that were left out as a whole, by its id."""
    listed: dict[str, dict[Slot, str]] = defaultdict(dict)
    for scored, cut in cuts:
        if cut.after is None:
            for twin in cut.twins:
                listed[twin].update(left_out_with(scored))
    return listed
