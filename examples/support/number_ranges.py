"""Numbers with their unit, as ranges: "50–199 copies", "200 or more", "within 21 days", "600 TL ve üzeri".

A question about 120 copies is answered by the range that holds 120, though 120 itself stands nowhere.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from .words import plain_letters

Kind = Literal["time", "money", "percent", "count"]

_NUMBER = r"(\d{1,3}(?:[.,]\d{3})+|\d+(?:[.,]\d+)?)(?![\w:])"
_PAIR = re.compile(rf"(?<![\w:.,]){_NUMBER}(?:\s?(?:[-–]|\b(?:to|and|ila|ile)\b)\s?{_NUMBER})?")
_AT_MOST = re.compile(r"\b(?:within|up to|at most|under|fewer than|less than|en cok|en fazla)\s*$")
_AT_LEAST = re.compile(r"\b(?:at least|from|over|more than|en az)\s*$")
_OR_MORE = re.compile(r"^\W*(?:\w+ )?(?:or more|and more|or over|ve uzeri|ve fazlasi|veya daha fazla)\b")
_INSIDE = re.compile(r"^\W*(?:\w+ ){1,2}(?:icinde|kadar)\b")
_PERCENT = re.compile(r"^\s?(?:%|percent\b)")
_MONEY = re.compile(r"^\W{0,2}(?:tl|lira\w*|euros?|dollars?)\b")
_TIME = re.compile(r"^\W?(?:(?:working|business|is) )?(day|week|month|year|gun|hafta|ay|yil)")
_DAYS = {"day": 1, "gun": 1, "week": 7, "hafta": 7, "month": 30, "ay": 30, "year": 365, "yil": 365}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRange:
    """A range of numbers of one kind."""

    low: float
    """Smallest number in the range; days where the kind is time."""
    high: float
    """Largest number in the range, infinity for "200 or more"; days where the kind is time."""
    kind: Kind

    def holds(self, other: NumberRange) -> bool:
        """Say whether this range contains all of another one of the same kind."""
        return self.kind == other.kind and self.low <= other.low and other.high <= self.high


def number_ranges(text: str) -> list[NumberRange]:
    """Return the numbers of a text in order, as ranges.

    Args:
        text: English or Turkish; "1,000" and "1.000" are both a thousand. Times of day ("14:00") are left out.

    Returns:
        One range for each number and each pair of numbers.
    """
    plain = plain_letters(text)
    return [_number_range(found, plain[: found.start()], plain[found.end() :]) for found in _PAIR.finditer(plain)]


def _number_range(found: re.Match[str], before: str, after: str) -> NumberRange:
    low = _value(found[1])
    high = low if found[2] is None else _value(found[2])
    if found[2] is None and (_AT_MOST.search(before) or _INSIDE.search(after)):
        low = 0.0
    elif found[2] is None and (_AT_LEAST.search(before) or _OR_MORE.search(after)):
        high = math.inf
    kind, factor = _kind(before, after)
    return NumberRange(low=low * factor, high=high * factor, kind=kind)


def _kind(before: str, after: str) -> tuple[Kind, int]:
    """Return the kind of a number and how many days one of its unit is."""
    time = _TIME.search(after)
    if time:
        return "time", _DAYS[time[1]]
    if _PERCENT.search(after) or re.search(r"(?:%|yuzde)\s?$", before):
        return "percent", 1
    return ("money" if _MONEY.search(after) else "count"), 1


def _value(digits: str) -> float:
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", digits):
        return float(re.sub(r"[.,]", "", digits))
    return float(digits.replace(",", "."))
