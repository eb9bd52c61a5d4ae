"""Whether a quantity of the answer stands in a text.

A quantity stands in a text where one of its readings is one of the readings there:

* A number by its value; a place (``3rd``) as the number. The plain number ``5`` also by ``$5``, the year ``2026`` by a
  date of that year, ``3.6`` by the version ``v3.6`` (not by ``3.6.1``), digits without separators by a digit string.
  ``14.00`` also by the time ``14:00``.
* "5 weeks" by "5 weeks" and by a 5 without a unit of time, length or weight, never by "5 days" or "$5"; a 5 without a
  unit by each of them.
* Digits in a name ("covid-19", "CO2") also by the whole name, ``CO₂`` included.
* A percentage only by a percentage, and a plain number never by one.
* An amount by an amount in the same currency, or by a number without any unit. "5 cents" are 0.05 of a currency that
  has cents.
* A date by one that has all its parts; a full date also by its day and month and its year, apart from each other.
* A time without "am" and "pm" also by the same time with one of them.
* A version as a whole; ``3.6.x`` by every version that begins with 3.6.
* A telephone number with ``+`` and a country's code also by the one without, with a 0 in front or not.
* A range by both ends, a fraction by both numbers, and what spaces or hyphens group by all groups. A number between the
  ends of a range does not stand there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.composed import composed
from llama_index_grounded.text.number_forms import Quantity, seconds_of
from llama_index_grounded.text.number_shapes import CLOCK, FOLDED, NAME
from llama_index_grounded.text.number_words import readings_of, shifted
from llama_index_grounded.text.quantities import quantities

__all__ = ["MEASURED", "Facts", "Term", "is_short", "stands", "values_of"]

_HALF_DAY = Decimal(12 * 60 * 60)
_LONGEST_VERSION = 8
_MOST_TERMS = 100
_MOST_DIGITS = 28
_DIGIT = re.compile(r"[0-9]")
_NUMERAL = re.compile(r"[0-9]+(?:[.,' \u00a0][0-9]+)*")
_LONGEST_CODE = 3
_HAVE_CENTS = ("¢", "USD", "EUR", "AUD", "CAD", "NZD", "HKD")
MEASURED: Final = frozenset({"number", "percent", "currency"})


@dataclass(frozen=True)
class Facts:
    """The quantities of a text.

    Args:
        items: Each quantity as it is written, and what it stands for.
        names: In lower case, the words that have letters and digits in them.
    """

    items: tuple[tuple[str, Quantity], ...]
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *texts: str) -> Facts:
        """Read the quantities of texts."""
        texts = tuple(composed(text)[0] for text in texts)
        items = tuple((text[found.start : found.end], found) for text in texts for found in quantities(text))
        return cls(items, frozenset(name for text in texts for name in _names(text)))

    @cached_property
    def keys(self) -> frozenset[Hashable]:
        """All that a quantity of the answer may ask for."""
        numbers = frozenset(key for _, quantity in self.items for key in _offers(quantity))
        return numbers | {("name", name) for name in self.names}

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The first numbers that sums may be made of, each value once."""
        found: dict[tuple[str, str, Decimal], Term] = {}
        for written, quantity in self.items:
            for part in quantity.parts if quantity.kind == "range" else (quantity,):
                if part.kind in MEASURED:
                    text = written if part is quantity else f"{part.readings[0][0]:f}"
                    for value in values_of(part):
                        if is_short(value):
                            found.setdefault((part.kind, part.unit, value), Term(part.kind, part.unit, value, text))
        return tuple(found.values())[:_MOST_TERMS]


@dataclass(frozen=True, slots=True)
class Term:
    """A value that sums may be made of, and how it is written."""

    kind: str
    unit: str
    value: Decimal
    text: str


def stands(quantity: Quantity, texts: Sequence[Facts]) -> bool:
    """Return whether a quantity stands in one of the texts, or each of its parts does."""
    if any(key in facts.keys for key in _needs(quantity) for facts in texts):
        return True
    return bool(quantity.parts) and all(stands(part, texts) for part in quantity.parts)


def _names(text: str) -> Iterator[str]:
    plain = lower(unicodedata.normalize("NFKC", text).translate(FOLDED))
    return (found[0] for found in NAME.finditer(plain) if _DIGIT.search(found[0]))


def values_of(quantity: Quantity) -> Iterator[Decimal]:
    """Yield the values that a quantity of one value may have."""
    return (value for value in (reading[0] for reading in quantity.readings) if value is not None)


def _offers(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys under which a quantity of a source is found."""
    yield from _own(quantity)
    yield from _offered_values(quantity)
    kind = quantity.kind
    if kind == "number":
        yield from _as_written(quantity)
    if kind == "date":
        yield from _parts_of_dates(quantity)
    elif kind == "version":
        yield from _beginnings(tuple(quantity.readings[0]))
    elif "." in quantity.numeral and kind == "number":
        yield from _beginnings(_groups(quantity.numeral))
    if kind in {"range", "number", "time"}:
        for part in quantity.parts:
            yield from _offers(part)


def _offered_values(quantity: Quantity) -> Iterator[Hashable]:
    kind = quantity.kind
    for value in values_of(quantity):
        if kind in {"number", "ordinal"}:
            yield "bare", value
            yield ("measured", quantity.measure, value) if quantity.measure else ("unmeasured", value)
        elif kind == "currency":
            yield from (("number", plain) for plain in _plain(quantity, value))
        elif kind == "time":
            yield "clock", value
            if quantity.unit:
                yield "half-day", value % _HALF_DAY


def _needs(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys of which a quantity of the answer needs one."""
    if quantity.name:
        yield "name", quantity.name
    if quantity.kind == "version" and quantity.unit == "x":
        yield "begins", tuple(quantity.readings[0][:_LONGEST_VERSION])
        return
    if quantity.measure:
        for value in values_of(quantity):
            yield from (("measured", quantity.measure, value), ("unmeasured", value))
        return
    yield from _own(quantity)
    if quantity.kind == "number":
        yield from _as_written(quantity)
        if CLOCK.fullmatch(quantity.numeral):
            yield "clock", seconds_of(quantity.numeral)
    for value in values_of(quantity):
        if quantity.kind == "currency":
            yield from (("bare", plain) for plain in _plain(quantity, value))
        elif quantity.kind == "time" and not quantity.unit and 0 < value < _HALF_DAY + _HALF_DAY / 12:
            yield "half-day", value % _HALF_DAY


def _own(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys that are the same on both sides."""
    kind = quantity.kind
    if kind == "version":
        yield "version", tuple(quantity.readings[0]), quantity.unit
    elif kind == "digits":
        yield from (("digits", digits) for digits in _lines(quantity))
    elif kind == "date":
        yield from (("date", reading) for reading in quantity.readings)
    elif kind == "currency":
        units = _HAVE_CENTS if quantity.unit == "¢" else (quantity.unit,)
        yield from ((kind, unit, value) for value in values_of(quantity) for unit in units)
    elif kind != "range":
        name = "number" if kind == "ordinal" else kind
        yield from ((name, value) for value in values_of(quantity))


def _plain(quantity: Quantity, value: Decimal) -> Iterator[Decimal]:
    """Yield the number that an amount is written with, cents as well as their part of a whole."""
    yield value
    cents = shifted(value, 2)
    if quantity.unit == "¢" or (_NUMERAL.fullmatch(quantity.numeral) and cents in readings_of(quantity.numeral)):
        yield cents


def _lines(quantity: Quantity) -> Iterator[str]:
    """Yield a string of digits, an international telephone number also as it is dialled at home."""
    yield quantity.unit
    if quantity.numeral.startswith("+"):
        for code in range(1, _LONGEST_CODE + 1):
            yield from (quantity.unit[code:], f"0{quantity.unit[code:]}")


def _as_written(quantity: Quantity) -> Iterator[Hashable]:
    numeral = "" if any(value < 0 for value in values_of(quantity)) else quantity.numeral
    if numeral.isdigit():
        yield "digits", numeral
    if "." in numeral and not set(numeral) - set("0123456789."):
        yield "version", _groups(numeral), ""


def _groups(numeral: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(group) for group in numeral.split(".") if group.isdigit())


def _beginnings(groups: tuple[Decimal | None, ...]) -> Iterator[Hashable]:
    return (("begins", groups[:size]) for size in range(1, min(len(groups), _LONGEST_VERSION) + 1))


def _parts_of_dates(quantity: Quantity) -> Iterator[Hashable]:
    for year, month, day in quantity.readings:
        yield from ((("date", (None, month, day)), ("date", (year, month, None))))
        if year is not None:
            yield "number", year


def is_short(value: Decimal) -> bool:
    """Return whether sums and products of such values are exact."""
    return len(value.as_tuple().digits) <= _MOST_DIGITS and abs(value.adjusted()) <= _MOST_DIGITS
