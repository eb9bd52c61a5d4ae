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
from llama_index_grounded.selection.relations import source_node
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["By", "Newest", "SourceOrder", "natural", "when"]

By = Literal["date", "position"]
Newest = Literal["first", "last"]
_DIGITS = re.compile(r"(\d+)")
_DATE = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2}))?"
    r"|(?P<y>\d{4})(?P<mark>[-/.])(?P<m>\d{1,2})(?P=mark)(?P<d>\d{1,2})(?:[T ].*)?"
)


class SourceOrder(Stage):
    """Order nodes chronologically, or by document rank and then by their place in the document.

    Nodes whose date or place is unknown come after the others, in rank order; ties keep rank order.

    Args:
        by: ``"date"``: by the ``updated`` field. ``"position"``: documents by their best-ranked node, and within one
            document version by character position, else by page (p10 after p2), else by chunk id. Positions count
            within one source node: where a document version has several, these come by page, else by rank.
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

    Dates may be partial: ``2026`` and ``2026-03`` stand for their first day. The year comes first; any other order of
    the parts is not the same everywhere, and unknown.

    Example:
        >>> when("2026/12/01") == when("2026-12-01"), when("01.12.2026"), when("1984 Main Street")
        (True, None, None)
    """
    if written is None:
        return None
    text = written.strip()
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00") if text.endswith("Z") else text)
    except ValueError:
        found = _DATE.fullmatch(text)
        if found is None:
            return None
        year, month, day = found["year"] or found["y"], found["month"] or found["m"] or 1, found["d"] or 1
        try:
            moment = datetime.combine(date(int(year), int(month), int(day)), datetime.min.time())
        except ValueError:
            return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    try:
        return (zoned - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()
    except OverflowError:  # a zone can push the first and the last day out of range
        return None


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key under which numbers in texts sort as numbers: p2 before p10, and mixed types compare."""
    parts = _DIGITS.split(unicodedata.normalize("NFC", text).casefold())
    return tuple(_number(part) if place % 2 else (1, 0, part) for place, part in enumerate(parts) if part)


def _number(digits: str) -> tuple[int, int, str]:
    """Return a key that sorts digits of any script and number as their value, which Python may refuse to work out."""
    plain = digits if digits.isascii() else "".join(str(unicodedata.decimal(digit)) for digit in digits)
    value = plain.lstrip("0")
    return 0, len(value), value


def _by_position(ranked: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    documents: dict[Any, dict[Any, list[NodeWithScore]]] = {}
    for scored in ranked:
        sources = documents.setdefault(identity(scored.node)[:3], {})
        sources.setdefault(source_node(scored.node), []).append(scored)
    return [scored for sources in documents.values() for scored in _in_document(list(sources.values()))]


def _in_document(sources: Sequence[list[NodeWithScore]]) -> list[NodeWithScore]:
    """Go through the source nodes by their first pages, each in its own order."""
    placed = [_in_source(source) for source in sources]
    if len(placed) > 1:
        placed.sort(key=lambda source: min(_page(scored) for scored in source))
    return [scored for source in placed for scored in source]


def _in_source(group: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Sort by the first of position, page and chunk id that all nodes of the source have; else keep rank order."""
    starts = [_start(scored.node) for scored in group]
    pages = [_page(scored) for scored in group]
    if all(start is not None for start in starts) and len(set(starts)) > 1:
        keys: list[Any] = starts
    elif not all(missing for missing, _ in pages):
        keys = list(zip(pages, (start or 0 for start in starts), strict=True))
    elif any(start is not None for start in starts):
        keys = [(start is None, start or 0) for start in starts]
    else:
        keys = [natural(identity(scored.node).chunk_id) for scored in group]
    order = sorted(range(len(group)), key=lambda place: keys[place])
    return [group[place] for place in order]


def _page(scored: NodeWithScore) -> tuple[bool, tuple[tuple[int, int, str], ...]]:
    """Return a key that sorts nodes without a page behind the others."""
    page = field(scored.node, "page")
    return page is None, natural(page or "")


def _start(node: BaseNode) -> int | None:
    start = node.start_char_idx if isinstance(node, TextNode) else None
    return start if type(start) is int else None
