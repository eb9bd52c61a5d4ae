"""Show one of several texts that say the same in nearly the same words, and name the documents of the others.

Place: after `ScopedDedup`, before the budget, which brings a near-duplicate back when it rejects the node in whose
favour it went. Each text is compared with the better-ranked ones that stay: of what stays, no two are near-duplicates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar, Literal

from llama_index.core import Settings
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from pydantic import Field, model_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import included_text, mark_of, with_stamp
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Embedded, Evidence, Removal, Trail, rank_of, slot_of
from llama_index_grounded.selection.copies import distinct
from llama_index_grounded.selection.embeddings import embed, known_to, text_to_embed
from llama_index_grounded.selection.likeness import Likeness, Shingles, Vectors, vector_of, with_vector
from llama_index_grounded.selection.models import EmbedModel
from llama_index_grounded.selection.remover import Cut, Ledger
from llama_index_grounded.selection.repetition import Scope, scope_of
from llama_index_grounded.selection.shingling import may_be_near
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.selection.twins import Slot, Twins, left_out_with, with_more_twins
from llama_index_grounded.text.statement import Statement, apart, statement

__all__ = ["Method", "NearDuplicateFilter"]

Method = Literal["lexical", "embedding"]

DEFAULT_THRESHOLD: dict[Method, float] = {"lexical": 0.8, "embedding": 0.95}
_MOST_DOUBTS = 64
"""Near texts with whose words one is compared, equal ones apart: there may be very many that differ in a word."""


class NearDuplicateFilter(Stage):
    """Keep the better-ranked of two texts that are nearly the same; its source lists the other's document in `also_in`.

    Texts are near-duplicates if they share enough of their word triples (``"lexical"``: Jaccard index, case and
    punctuation aside) or their embeddings point the same way (``"embedding"``: cosine), and if their numbers, dates,
    negations and opposites are the same (`text.signature`), with the letters at the numbers (`text.fastened`), signs,
    operators and units whose case matters (`text.symbols`). Where a few words differ that may be one of these, in an
    unknown notation or another language than English and Turkish, both texts stay (`text.wording`). Names are not
    looked at. Blank texts stay.

    Of several copies of one chunk (same identity, same text) the one with the best score stays, at the best rank: they
    have no rank against each other.

    Embeddings that nodes carry are used as long as the text is the one that was embedded; the rest is embedded in one
    call a query. What comes back with a changed text is not embedded again and stays.

    Args:
        method: What is compared.
        threshold: Least similarity, above 0 to 1; by default 0.8 for ``"lexical"`` and 0.95 for ``"embedding"``.
        embed_model: For ``"embedding"``; by default ``Settings.embed_model``.
        scope: Where a twin may stand: anywhere, or in the same ``"document"`` or ``"section"`` of one version.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> text = "Printed books can be returned within {} days of delivery if they are unread and undamaged{}"
        >>> nodes = make_nodes([text.format(21, "."), text.format(21, "!"), text.format(14, ".")])
        >>> [scored.node.node_id for scored in NearDuplicateFilter().postprocess_nodes(nodes)]
        ['n0', 'n2']
    """

    kind: ClassVar[Kind] = "filter"

    method: Method = "lexical"
    threshold: Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)] | None = None
    embed_model: EmbedModel = None
    scope: Scope = "global"

    @model_validator(mode="after")
    def _model_has_a_use(self) -> NearDuplicateFilter:
        if self.method == "lexical" and self.embed_model is not None:
            raise ConfigurationError("embed_model is for method='embedding'; method='lexical' compares words")
        return self

    def ledger(self) -> Ledger:
        """Begin with nothing admitted."""
        return self._ledger()

    def _ledger(self) -> _NearLedger:
        return _NearLedger(self.method, self._bar, self.scope)

    @property
    def _bar(self) -> float:
        return DEFAULT_THRESHOLD[self.method] if self.threshold is None else self.threshold

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Go through the nodes in rank order and keep what is new."""
        decisions: list[Decision] = []
        distinct = self._distinct(nodes, decisions)
        comparable, embedded = self._embedded(distinct, nodes.trail) if self.method == "embedding" else (distinct, ())
        ledger = self._ledger()
        removals: list[Removal] = []
        twins: dict[int, dict[Slot, str]] = defaultdict(dict)
        for scored in self._maybe_near(sorted(comparable, key=rank_of)):
            found = ledger.twin_of(scored)
            if found is None:
                ledger.hold(scored)
                continue
            held, value = found
            twins[slot_of(held)].update(left_out_with(scored))
            twin, bar = held.node.node_id, self._bar
            decisions.append(
                self.decision(scored, "dropped", "near_duplicate", value=round(value, 4), limit=bar, twin=twin)
            )
            removals.append(Removal(scored, None, (twin,)))
        if not removals:
            return Outcome(comparable, decisions, embedded=embedded)
        gone = {slot_of(removal.before) for removal in removals}
        stay = [scored for scored in comparable if slot_of(scored) not in gone]
        kept = [with_more_twins(scored, twins.get(slot_of(scored), {})) for scored in stay]
        return Outcome(kept, decisions, removals, embedded=embedded)

    def _maybe_near(self, ranked: list[NodeWithScore]) -> list[NodeWithScore]:
        """Leave out the nodes that can be near to none: they are compared with no other one."""
        if self.method == "embedding":
            return ranked
        scopes = [scope_of(scored.node, self.scope) for scored in ranked]
        members = Counter(scopes)
        together = [scored for scored, scope in zip(ranked, scopes, strict=True) if members[scope] > 1]
        maybe = may_be_near([included_text(scored.node) for scored in together], self._bar)
        return [scored for scored, may_be in zip(together, maybe, strict=True) if may_be]

    def _distinct(self, nodes: Evidence, decisions: list[Decision]) -> list[NodeWithScore]:
        """Keep one copy of each chunk."""
        kept: list[NodeWithScore] = []
        for best, others in distinct(nodes):
            twin, bar, more = best.node.node_id, self._bar, best
            for scored in others:
                decisions.append(self.decision(scored, "dropped", "near_duplicate", value=1.0, limit=bar, twin=twin))
                more = with_more_twins(more, left_out_with(scored))
            kept.append(more)
        return kept

    def _embedded(self, nodes: list[NodeWithScore], trail: Trail) -> tuple[list[NodeWithScore], Sequence[Embedded]]:
        """Note the embedding of each node that has none in a copy, for the budget to compare by."""
        texts = {
            slot_of(scored): text for scored in nodes if vector_of(scored) is None and (text := text_to_embed(scored))
        }
        if not texts:
            return nodes, ()
        model = Settings.embed_model if self.embed_model is None else self.embed_model
        said = embed(known_to(model, trail.embedded), texts.values())
        noted = [
            with_vector(scored, said.texts[texts[slot]]) if (slot := slot_of(scored)) in texts else scored
            for scored in nodes
        ]
        return noted, (said,)


class _NearLedger:
    """What is admitted, by scope; lists each near-duplicate that is left out at the node that stands for it."""

    def __init__(self, method: Method, threshold: float, scope: Scope) -> None:
        self._method: Method = method
        self._threshold = threshold
        self._scope: Scope = scope
        self._indexes: dict[Hashable, tuple[Likeness, list[NodeWithScore]]] = {}
        self._statements: dict[str, Statement] = {}
        self._twins = Twins()

    def twin_of(self, scored: NodeWithScore) -> tuple[NodeWithScore, float] | None:
        """Find the first admitted near-duplicate, and how near it is."""
        index, held = self._part(scored.node)
        doubts = 0
        for number, value in index.near(scored):
            mine, theirs = self._said_by(scored), self._said_by(held[number])
            if mine.key != theirs.key and None not in (mine.key, theirs.key):
                continue
            if (doubts < _MOST_DOUBTS or value >= 1) and not apart(theirs, mine):
                return held[number], value
            doubts += 1
        return None

    def hold(self, scored: NodeWithScore) -> None:
        """Compare later nodes with this one, too."""
        index, held = self._part(scored.node)
        index.add(scored)
        held.append(scored)

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Leave a near-duplicate out; all else is returned as a copy of our own, on which its twins can be noted."""
        self._twins.forget(candidate)
        found = self.twin_of(candidate)
        if found is None:
            return Cut(with_stamp(candidate, mark_of(candidate)))
        holder, _ = found
        self._twins.add(holder, candidate)
        return Cut(None, {holder.node.node_id: len(included_text(candidate.node))})

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note what the model will see."""
        self.hold(scored)
        self._twins.admit(scored, came)

    def _part(self, node: BaseNode) -> tuple[Likeness, list[NodeWithScore]]:
        scope = scope_of(node, self._scope)
        if scope not in self._indexes:
            lexical = self._method == "lexical"
            self._indexes[scope] = (
                (
                    Shingles(self._threshold, lambda one: self._said_by(one).key)
                    if lexical
                    else Vectors(self._threshold)
                ),
                [],
            )
        return self._indexes[scope]

    def _said_by(self, scored: NodeWithScore) -> Statement:
        text = included_text(scored.node)
        if text not in self._statements:
            self._statements[text] = statement(text)
        return self._statements[text]
