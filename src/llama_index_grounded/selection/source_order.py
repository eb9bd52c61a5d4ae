"""Put sources in the order of the documents that they come from, for procedures, versions and histories.

Place: last, after the budget, in place of `AttentionReorder`.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from pydantic import model_validator

from llama_index_grounded.errors import ConfigurationError
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
_MOMENT = re.compile(r"(?P<day>[-/.\dW]+)(?:[Tt\s]\s*(?P<clock>.+))?", re.DOTALL)
_WHOLE_DAY = re.compile(r"(\d{4})(?:([-/.])(\d{1,2})\2(\d{1,2})|()(\d{2})(\d{2}))")
_PARTIAL_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_WEEK = re.compile(r"(\d{4})-?W(\d{2})(?:-?(\d))?")
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?::?(?P<minute>(?<=\d\d)\d{2}|(?<=:)\d{2})(?::?(?P<second>\d{2})(?P<fraction>[.,]\d+)?)?)?"
    r"(?:\s?(?P<half>[ap])(?:m|\.m\.))?"
    r"\s?(?:Z|UTC|GMT|(?P<sign>[-+\u2212])(?P<hours>\d{2})(?::?(?P<minutes>\d{2})(?::?(?P<seconds>\d{2}(?:\.\d+)?))?)?)?",
    re.IGNORECASE,
)
_HOUR, _MINUTE, _HALF_DAY, _DAY = 3600, 60, 12, 24
_ROMAN = re.compile(r"(?=.)(?:x{0,3}|xl|lx{0,3})(?:ix|iv|v?i{0,3})")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50}


class SourceOrder(Stage):
    """Order nodes chronologically, or by document rank and then by their place in the document.

    Nodes whose date or place is unknown come after the others, in rank order; ties keep rank order.

    Args:
        by: ``"date"``: by the ``updated`` field. ``"position"``: documents by their best-ranked node, and within one
            document version by character position, else by page (p10 after p2, iv before 1), else by chunk id.
            Positions count within one source node: where a document version has several, these come by page, else by
            rank.
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

    @model_validator(mode="after")
    def _newest_has_a_use(self) -> SourceOrder:
        if self.by != "date" and self.newest != "last":
            raise ConfigurationError("newest is for by='date'; by='position' looks at no date")
        return self

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
    the parts is not the same everywhere, and unknown, and so is a date behind which something else than a time stands.
    The forms are those of ISO 8601, and a.m. and p.m.; Python's own reader knows other ones in every version.

    Example:
        >>> when("2026/12/01") == when("2026-12-01"), when("01.12.2026"), when("1984 Main Street")
        (True, None, None)
        >>> when("2026-03-01 9:30 pm") == when("20260301T213000,0Z"), when("2026-03-01T99:99")
        (True, None)
    """
    found = _MOMENT.fullmatch(written.strip()) if written else None
    if found is None:
        return None
    day = _day(found["day"], partial=found["clock"] is None)
    seconds = 0.0 if found["clock"] is None else _seconds(found["clock"])
    return None if day is None or seconds is None else (day - date(1970, 1, 1)).days * _DAY * _HOUR + seconds


def _day(written: str, *, partial: bool) -> date | None:
    whole, week = _WHOLE_DAY.fullmatch(written), _WEEK.fullmatch(written)
    begun = _PARTIAL_DAY.fullmatch(written) if partial else None
    try:
        if whole is not None:
            return date(int(whole[1]), int(whole[3] or whole[6]), int(whole[4] or whole[7]))
        if week is not None:
            return date.fromisocalendar(int(week[1]), int(week[2]), int(week[3] or 1))
        return None if begun is None else date(int(begun[1]), int(begun[2] or 1), 1)
    except ValueError:
        return None


def _seconds(written: str) -> float | None:
    """Read a time of day with its zone as seconds from the beginning of the day in UTC."""
    found = _CLOCK.fullmatch(written)
    if found is None:
        return None
    hour, minute, second, more, minutes = (
        int(found[name] or 0) for name in ("hour", "minute", "second", "hours", "minutes")
    )
    part = float(f"0.{found['fraction'][1:]}") if found["fraction"] else 0.0
    beyond = float(found["seconds"] or 0)
    if found["half"] and not 1 <= hour <= _HALF_DAY:
        return None
    if found["half"]:
        hour = hour % _HALF_DAY + (_HALF_DAY if found["half"] in "pP" else 0)
    clock = hour * _HOUR + minute * _MINUTE + second + part
    if max(minute, second, minutes, beyond) >= _MINUTE or clock > _DAY * _HOUR or more >= _DAY:
        return None
    zone = more * _HOUR + minutes * _MINUTE + beyond
    return clock - (zone if found["sign"] == "+" else -zone)


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
    """Return a key that sorts nodes without a page behind the others, and small roman pages, of a preface, in front."""
    page = field(scored.node, "page")
    roman = _ROMAN.fullmatch(page) if page else None
    return page is None, natural(page or "") if roman is None else ((-1, _roman(roman[0]), ""),)


def _roman(written: str) -> int:
    """Return the value of a roman numeral."""
    values = [_ROMAN_DIGITS[digit] for digit in written]
    return sum(-value if value < max(values[place:]) else value for place, value in enumerate(values))


def _start(node: BaseNode) -> int | None:
    start = node.start_char_idx if isinstance(node, TextNode) else None
    return start if type(start) is int else None
