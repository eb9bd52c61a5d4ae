"""One quantity, and how text that a pattern found is read as one.

The rules stand in `quantities`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from typing import Final, Literal

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_words import dates_of, readings_of, shifted

__all__ = ["READERS", "Kind", "Quantity", "Reading", "date", "one", "seconds_of"]

Kind = Literal["number", "percent", "currency", "date", "range", "version", "ordinal", "time", "digits"]
Reading = tuple[Decimal | None, ...]
"""One value; a date has year, month and day, each may be missing; a version its groups; a range both ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number as it stands in a text, and what it may stand for."""

    start: int
    """First character in the text, a sign or unit in front included."""
    end: int
    """One past the last character."""
    kind: Kind
    readings: tuple[Reading, ...]
    """Each possible value, exactly, the likelier first."""
    unit: str = ""
    """Code of a currency, ``am`` or ``pm``, the tail of a version, or the digits of a digit string."""
    numeral: str = ""
    """The digits with their separators; empty for words."""
    certain: bool = True
    """False for a word that is often no number."""
    measure: str = ""
    """The unit of time, length or weight behind a number, as `measures` names it."""
    name: str = ""
    """In lower case, the word of letters and digits in which it stands behind letters ("covid-19")."""
    parts: tuple[Quantity, ...] = ()
    """What it is made of: ends of a range, parts of a fraction, groups of digits, day and year of a date."""


_VERSION = re.compile(r"[^0-9]*([0-9]+(?:\.[0-9]+)*)[-.]?(.*)", re.DOTALL)
_NUMBER = re.compile("[0-9]+")
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_SPACED = re.compile("[^ ]+")
_YEARS = re.compile(r"([12][0-9]{3})/([0-9]{2}|[0-9]{4})")
_POWER = re.compile(r"([0-9.]+)e([+-]?[0-9]+)", re.IGNORECASE)
_VULGAR = re.compile(r"([0-9]*)([^0-9])")
_QUOTIENT = Context(prec=28)
_HALF_DAY, _HOURS, _SIXTY = 12, 24, 60


def one(
    kind: Kind,
    start: int,
    text: str,
    readings: tuple[Reading, ...],
    *,
    unit: str = "",
    numeral: str = "",
    certain: bool = True,
    parts: tuple[Quantity, ...] = (),
) -> Quantity:
    """Return a quantity that is written as `text`."""
    return Quantity(
        start=start,
        end=start + len(text),
        kind=kind,
        readings=readings,
        unit=unit,
        numeral=numeral,
        certain=certain,
        parts=parts,
    )


def _date(text: str, start: int) -> Iterator[Quantity]:
    days = dates_of(lower(text))
    if days:
        yield date(start, text, days)
    else:
        yield from _numbers(text, start)


def date(start: int, text: str, days: tuple[Reading, ...]) -> Quantity:
    """Return a date; a full one is also a day of the year and a year."""
    parts: tuple[Quantity, ...] = ()
    if all(None not in day for day in days):
        day_of_year = tuple((None, month, day) for _, month, day in days)
        years = tuple(dict.fromkeys((year,) for year, _, _ in days))
        parts = one("date", start, text, day_of_year), one("number", start, text, years)
    return one("date", start, text, days, parts=parts)


def _clock(text: str) -> tuple[int, int, int]:
    hour, minute, second = (*map(int, _NUMBER.findall(text)), 0, 0)[:3]
    return hour, minute, second


def seconds_of(clock: str) -> Decimal:
    """Return the second of the day that hours and minutes with a mark between them stand for."""
    hour, minute, second = _clock(clock)
    return Decimal((hour * _SIXTY + minute) * _SIXTY + second)


def _time(text: str, start: int) -> Iterator[Quantity]:
    hour, minute, second = _clock(text)
    half = next((half for half in ("am", "pm") if half[0] in text.lower()), "")
    if minute >= _SIXTY or second >= _SIXTY or hour > (_HALF_DAY if half else _HOURS):
        yield from _numbers(text, start)
        return
    if half:
        hour = hour % _HALF_DAY + (_HALF_DAY if half == "pm" else 0)
    yield one("time", start, text, ((Decimal((hour * _SIXTY + minute) * _SIXTY + second),),), unit=half)


def _version(text: str, start: int) -> Iterator[Quantity]:
    found = _VERSION.fullmatch(text)
    if found is None or (found[0] == found[1] and readings_of(text)):
        yield from _number(text, start)
        return
    groups = tuple(Decimal(group) for group in found[1].split("."))
    yield one("version", start, text, (groups,), unit=found[2].lower(), numeral=found[1])


def _digits(text: str, start: int) -> Iterator[Quantity]:
    groups = tuple(_numbers(text, start))
    digits = "".join(group.numeral for group in groups)
    numeral = text if text.startswith("+") else ""
    yield one("digits", start, text, ((Decimal(digits),),), unit=digits, numeral=numeral, parts=groups)


def _fraction(text: str, start: int) -> Iterator[Quantity]:
    vulgar = _VULGAR.fullmatch(text)
    if vulgar is not None:
        text_of_part = unicodedata.normalize("NFKC", vulgar[2])
        top, bottom = (Decimal(number) for number in _NUMBER.findall(text_of_part))
        yield one("number", start, text, ((Decimal(vulgar[1] or 0) + _QUOTIENT.divide(top, bottom),),), numeral=text)
        return
    parts = tuple(_numbers(text, start))
    span = _YEARS.fullmatch(text)
    if span is not None and span[2] == str(int(span[1]) + 1)[-len(span[2]) :]:
        years = (Decimal(span[1]), Decimal(int(span[1]) + 1))
        ends = (parts[0], replace(parts[1], readings=((years[1],), *parts[1].readings)))
        yield one("range", start, text, (years,), parts=ends)
        return
    *whole, top, bottom = (part.readings[0][0] or Decimal(0) for part in parts)
    if not bottom:
        yield from parts
        return
    value = sum(whole, _QUOTIENT.divide(top, bottom))
    yield one("number", start, text, ((value,),), numeral=text, parts=parts)


def _number(text: str, start: int) -> Iterator[Quantity]:
    power = _POWER.fullmatch(text)
    if power is not None:
        yield one("number", start, text, ((shifted(Decimal(power[1]), int(power[2])),),), numeral=text)
        return
    numeral = f"0{text}" if text.startswith(".") else text
    values = readings_of(numeral)
    if values:
        parts = tuple(_numbers(text, start, _SPACED)) if " " in text else ()
        yield one("number", start, text, tuple((value,) for value in values), numeral=numeral, parts=parts)
        return
    for piece in _DOTTED.finditer(text):
        yield from (_number if readings_of(piece[0]) else _version)(piece[0], start + piece.start())


def _numbers(text: str, start: int, pattern: re.Pattern[str] = _NUMBER) -> Iterator[Quantity]:
    """Yield each group of digits as a number of its own."""
    for group in pattern.finditer(text):
        yield from _number(group[0], start + group.start())


READERS: Final[dict[str, Callable[[str, int], Iterator[Quantity]]]] = {
    "date": _date,
    "time": _time,
    "version": _version,
    "digits": _digits,
    "fraction": _fraction,
    "number": _number,
}
"""How to read what each group of the pattern found; every reader yields at least one quantity."""
