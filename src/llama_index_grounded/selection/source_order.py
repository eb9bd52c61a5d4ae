"""Put sources in the order of the documents that they come from, for procedures, versions and histories.

Place: last, after the budget, in place of `AttentionReorder`.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode

from llama_index_grounded.evidence import field, identity
from llama_index_grounded.selection.carrier import Evidence, rank_of
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["By", "Newest", "SourceOrder", "natural", "when"]

By = Literal["date", "position"]
Newest = Literal["first", "last"]
_DIGITS = re.compile(r"([0-9]{1,18})")
_DATE = re.compile(r"\s*(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d-])")


class SourceOrder(Stage):
    """Order nodes chronologically, or by document rank and then by their place in the document.

    Nodes whose date or place is unknown come after the others, in rank order; ties keep rank order.

    Args:
        by: ``"date"``: by the ``updated`` field. ``"position"``: documents by their best-ranked node, and within one
            document version by character position, else by page (p10 after p2), else by chunk id.
        newest: With ``"date"``, where the newest node stands: models lean towards what stands last.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> fields = [{"document_id": "manual", "page": page} for page in ("p10", "p2")]
        >>> nodes = SourceOrder(by="position").postprocess_nodes(make_nodes(["ten", "two"], metadata=fields))
        >>> [node.text for node in nodes]
        ['two', 'ten']
    """

    kind: ClassVar[Kind] = "reorder"

    by: By = "position"
    newest: Newest = "last"

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Move the nodes and report where each went."""
        ranked = sorted(nodes, key=rank_of)
        placed = self._by_date(ranked) if self.by == "date" else _by_position(ranked)
        decisions = [
            self.decision(scored, "moved", self.by, value=now)
            for now, (scored, before) in enumerate(zip(placed, nodes, strict=True))
            if scored is not before
        ]
        return Outcome(placed, decisions)

    def _by_date(self, ranked: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        dates = [(when(field(scored.node, "updated")), scored) for scored in ranked]
        dated = [(moment, scored) for moment, scored in dates if moment is not None]
        # Sorted by the moment alone, so that ties keep rank order in both directions.
        dated.sort(key=lambda pair: pair[0] if self.newest == "last" else -pair[0])
        return [*(scored for _, scored in dated), *(scored for moment, scored in dates if moment is None)]


def when(written: str | None) -> float | None:
    """Read a date or time as seconds since 1970, in UTC where it names no zone; None for what is none.

    Dates may be partial: ``2026`` and ``2026-03`` stand for their first day.
    """
    if written is None:
        return None
    text = written.strip()
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    except ValueError:
        found = _DATE.match(text)
        if found is None:
            return None
        year, month, day = (int(part) if part else 1 for part in found.groups())
        try:
            moment = datetime.combine(date(year, month, day), datetime.min.time())
        except ValueError:
            return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    try:
        return (zoned - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()
    except OverflowError:  # a zone can push the first and the last day out of range
        return None


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key under which numbers in texts sort as numbers: p2 before p10, and mixed types compare."""
    folded = unicodedata.normalize("NFC", text).casefold()
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(folded) if part)


def _by_position(ranked: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    groups: dict[Any, list[NodeWithScore]] = {}
    for scored in ranked:
        groups.setdefault(identity(scored.node)[:3], []).append(scored)
    return [scored for group in groups.values() for scored in _in_document(group)]


def _in_document(group: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Sort by the first of position, page and chunk id that all nodes of the document have; else keep rank order."""
    starts = [_start(scored.node) for scored in group]
    pages = [field(scored.node, "page") for scored in group]
    if all(start is not None for start in starts) and len(set(starts)) > 1:
        keys: list[Any] = starts
    elif any(page is not None for page in pages):
        keys = [(page is None, natural(page or ""), start or 0) for page, start in zip(pages, starts, strict=True)]
    elif any(start is not None for start in starts):
        keys = [(start is None, start or 0) for start in starts]
    else:
        keys = [natural(identity(scored.node).chunk_id) for scored in group]
    order = sorted(range(len(group)), key=lambda place: keys[place])
    return [group[place] for place in order]


def _start(node: BaseNode) -> int | None:
    return node.start_char_idx if isinstance(node, TextNode) else None
