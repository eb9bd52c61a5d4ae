"""Refuse before the model is called when the evidence is weak.

Place: after the retriever (and an access guard), before everything that shortens.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, PrivateAttr

from llama_index_grounded.errors import MissingScoreError
from llama_index_grounded.metadata import known
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Embedded, Evidence, Notes
from llama_index_grounded.selection.copies import chunk_of
from llama_index_grounded.selection.scales import odd_scale
from llama_index_grounded.selection.signals import Signal, VectorSimilarity
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

__all__ = ["Judgement", "ScoreGate", "judge"]

_logger = logging.getLogger(__name__)

Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the evidence is strong enough, and the number that says so."""

    passed: bool
    reason: str
    """``best_score`` where it passed, else ``low_score`` or ``low_margin``."""
    value: float | None
    limit: float


def judge(signals: Sequence[float], *, min_score: float, min_margin: float = 0.0) -> Judgement:
    """Judge a list of signals, one per distinct chunk and none of them missing.

    The best must reach ``min_score`` and, where there is a second, lead it by ``min_margin``. An empty list fails.
    """
    ranked = sorted(signals, reverse=True)
    if not ranked or ranked[0] < min_score:
        return Judgement(passed=False, reason="low_score", value=ranked[0] if ranked else None, limit=min_score)
    lead = ranked[0] - ranked[1] if len(ranked) > 1 else math.inf
    # Nearly equal is enough: 0.9 leads 0.8 by 0.1, though the difference of the two floats is a little less.
    if lead < min_margin and not math.isclose(lead, min_margin):
        return Judgement(passed=False, reason="low_margin", value=lead, limit=min_margin)
    return Judgement(passed=True, reason="best_score", value=ranked[0], limit=min_score)


class ScoreGate(Stage):
    """Refuse when the best score is too low: no node passes and the model is never called.

    Otherwise all nodes stay, except those below ``drop_below``. A missing score (None, not a number, infinite) is
    unknown, not 0: it counts neither for nor against while another node has one. Only a copy of a chunk (same identity,
    same text) of which another copy has a score is judged by that one. Scores are compared as the retriever gave them,
    so measure ``min_score`` on your own data, for your own embedding model. Scores of a rank fusion are ranks, not
    likeness; the result has a warning where they can be told (`selection.scales` says when they can not).

    Args:
        min_score: What the best score must reach, on the scale of the retriever.
        signal: What to compare: the node's own ``"score"``, a `VectorSimilarity` for hybrid and fused lists, or a
            `MetadataScore`.
        on_missing_score: What to do when no node has a score: ``"raise"``, ``"pass"`` with a warning, or ``"refuse"``.
        drop_below: Leave out single nodes whose known score is below this.
        min_margin: By how much the best must lead the second-best chunk, 0 or more.
        keys: Names of the identifying metadata fields.

    Raises:
        MissingScoreError: When no node has a score and ``on_missing_score`` is ``"raise"``.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> gate = ScoreGate(min_score=0.4)
        >>> gate.select(make_nodes(["a", "b"], scores=[0.3, 0.2])).nodes
        []
    """

    kind: ClassVar[Kind] = "filter"
    judges_together: ClassVar[bool] = True

    min_score: Finite
    signal: Signal = "score"
    on_missing_score: Literal["raise", "pass", "refuse"] = "raise"
    drop_below: Finite | None = None
    min_margin: Annotated[Finite, Field(ge=0)] = 0.0

    _told: set[str] = PrivateAttr(default_factory=set[str])

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Refuse all nodes, or leave out those below ``drop_below``."""
        if not nodes:
            return Outcome(nodes)
        found, embedded = self._signals(nodes, query)
        if all(score is None for score in found):
            return replace(self._without_scores(nodes), embedded=embedded)
        chunks = [chunk_of(scored) for scored in nodes]
        best = _best_of(chunks, found)
        signals = list(best.values())
        # A copy without a score, such as one that somebody added as a neighbour, is no stronger than its chunk.
        scores = [best.get(chunk) if score is None else score for chunk, score in zip(chunks, found, strict=True)]
        judgement = judge(signals, min_score=self.min_score, min_margin=self.min_margin)
        outcome = (self._passed if judgement.passed else self._refused)(nodes, scores, judgement)
        odd = odd_scale(signals, self.min_score) if self.signal == "score" else ""
        notes = self._warned(nodes, "scale", odd) if odd else None
        return replace(outcome, top_score=max(signals), notes=notes, embedded=embedded)

    def _warned(self, nodes: Evidence, about: str, text: str) -> Notes | None:
        """Warn in every result, and once in the log; not where another gate has said the same in this query."""
        warning = f"{self.class_name()}: {text}"
        if warning in nodes.trail.notes.warnings:
            return None
        if about not in self._told:
            _logger.warning(warning)
            self._told.add(about)
        return Notes(warnings=(warning,))

    def _signals(self, nodes: Evidence, query: QueryBundle | None) -> tuple[Sequence[float | None], Sequence[Embedded]]:
        if isinstance(self.signal, str):
            return [known(scored.score) for scored in nodes], ()
        if isinstance(self.signal, VectorSimilarity):
            values, embedded = self.signal.compare(nodes, query, nodes.trail.embedded)
            return values, (embedded,)
        return self.signal.values(nodes, query), ()

    def _without_scores(self, nodes: Evidence) -> Outcome:
        if self.on_missing_score == "raise":
            raise MissingScoreError(self.class_name(), tuple(scored.node.node_id for scored in nodes))
        if self.on_missing_score == "pass":
            missing = (
                f"none of {len(nodes)} nodes has a score, so they passed without a look at min_score={self.min_score:g}"
            )
            return Outcome(nodes, notes=self._warned(nodes, "missing", missing))
        return Outcome([], [self.decision(scored, "refused", "low_score", limit=self.min_score) for scored in nodes])

    def _refused(self, nodes: Sequence[NodeWithScore], scores: Sequence[float | None], judgement: Judgement) -> Outcome:
        values = [judgement.value] * len(nodes) if judgement.reason == "low_margin" else scores
        refused = [
            self.decision(scored, "refused", judgement.reason, value=value, limit=judgement.limit)
            for scored, value in zip(nodes, values, strict=True)
        ]
        return Outcome([], refused)

    def _passed(self, nodes: Sequence[NodeWithScore], scores: Sequence[float | None], judgement: Judgement) -> Outcome:
        bar = -math.inf if self.drop_below is None else self.drop_below
        weak = [score is not None and score < bar for score in scores]
        if all(weak):
            return self._refused(nodes, scores, replace(judgement, passed=False, reason="low_score", limit=bar))
        best = scores.index(judgement.value)
        decisions: list[Decision] = []
        for place, (scored, score) in enumerate(zip(nodes, scores, strict=True)):
            if weak[place]:
                decisions.append(self.decision(scored, "dropped", "low_score", value=score, limit=bar))
            elif place == best:
                decisions.append(self.decision(scored, "kept", "best_score", value=score, limit=self.min_score))
        return Outcome([scored for scored, out in zip(nodes, weak, strict=True) if not out], decisions)


def _best_of(chunks: Sequence[Hashable], scores: Sequence[float | None]) -> dict[Hashable, float]:
    """Keep one score per chunk, so that a chunk that came twice does not compete with itself."""
    best: dict[Hashable, float] = {}
    for chunk, score in zip(chunks, scores, strict=True):
        if score is not None and score > best.get(chunk, -math.inf):
            best[chunk] = score
    return best
