"""Whether a quantity of the answer stands in a text, or follows from two numbers of it.

A quantity stands in a text where one of its readings is one of the readings there:

* A number by its value; a place (``3rd``) as the number. The plain number ``5`` also by ``$5``, the year ``2026`` by a
  date of that year, ``3.6`` by the version ``v3.6`` (not by ``3.6.1``), digits without separators by a digit string.
* A percentage only by a percentage, and a plain number never by one.
* An amount by an amount in the same currency, or by a number without any unit.
* A date by one that has all its parts; a full date also by its day and month and its year, apart from each other.
* A time without "am" and "pm" also by the same time with one of them.
* A version as a whole; ``3.6.x`` by every version that begins with 3.6.
* A range by both ends, a fraction by both numbers, and what spaces or hyphens group by all groups. A number between the
  ends of a range does not stand there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property

from llama_index_grounded.text.number_forms import Quantity
from llama_index_grounded.text.number_words import shifted
from llama_index_grounded.text.quantities import quantities

__all__ = ["Facts", "Sums", "stands"]

_HALF_DAY = Decimal(12 * 60 * 60)
_LONGEST_VERSION = 8
_EXACT = Context(prec=80)
_MOST_TERMS = 100
_MOST_DIGITS = 28
_MEASURED = frozenset({"number", "percent", "currency"})


@dataclass(frozen=True)
class Facts:
    """The quantities of a text.

    Args:
        items: Each quantity as it is written, and what it stands for.
    """

    items: tuple[tuple[str, Quantity], ...]

    @classmethod
    def of(cls, *texts: str) -> Facts:
        """Read the quantities of texts."""
        return cls(tuple((text[found.start : found.end], found) for text in texts for found in quantities(text)))

    @cached_property
    def keys(self) -> frozenset[Hashable]:
        """All that a quantity of the answer may ask for."""
        return frozenset(key for _, quantity in self.items for key in _offers(quantity))

    @cached_property
    def terms(self) -> tuple[_Term, ...]:
        """The first numbers that sums may be made of, each value once."""
        found: dict[tuple[str, str, Decimal], _Term] = {}
        for written, quantity in self.items:
            for part in quantity.parts if quantity.kind == "range" else (quantity,):
                if part.kind in _MEASURED:
                    text = written if part is quantity else f"{part.readings[0][0]:f}"
                    for value in _values(part):
                        if _short(value):
                            found.setdefault((part.kind, part.unit, value), _Term(part.kind, part.unit, value, text))
        return tuple(found.values())[:_MOST_TERMS]


@dataclass(frozen=True, slots=True)
class _Term:
    kind: str
    unit: str
    value: Decimal
    text: str


def stands(quantity: Quantity, texts: Sequence[Facts]) -> bool:
    """Return whether a quantity stands in one of the texts, or each of its parts does."""
    if any(key in facts.keys for key in _needs(quantity) for facts in texts):
        return True
    return bool(quantity.parts) and all(stands(part, texts) for part in quantity.parts)


def _values(quantity: Quantity) -> Iterator[Decimal]:
    return (value for value in (reading[0] for reading in quantity.readings) if value is not None)


def _offers(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys under which a quantity of a source is found."""
    yield from _own(quantity)
    for value in _values(quantity):
        if quantity.kind in {"number", "ordinal"}:
            yield "bare", value
        elif quantity.kind == "currency":
            yield "number", value
        elif quantity.kind == "time" and quantity.unit:
            yield "half-day", value % _HALF_DAY
    if quantity.kind == "date":
        yield from _parts_of_dates(quantity)
    elif quantity.kind == "version":
        yield from _beginnings(tuple(quantity.readings[0]))
    elif "." in quantity.numeral and quantity.kind == "number":
        yield from _beginnings(_groups(quantity.numeral))
    if quantity.kind in {"range", "number"}:
        for part in quantity.parts:
            yield from _offers(part)


def _needs(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys of which a quantity of the answer needs one."""
    if quantity.kind == "version" and quantity.unit == "x":
        yield "begins", tuple(quantity.readings[0][:_LONGEST_VERSION])
        return
    yield from _own(quantity)
    for value in _values(quantity):
        if quantity.kind == "currency":
            yield "bare", value
        elif quantity.kind == "time" and not quantity.unit and 0 < value < _HALF_DAY + _HALF_DAY / 12:
            yield "half-day", value % _HALF_DAY


def _own(quantity: Quantity) -> Iterator[Hashable]:
    """Yield the keys that are the same on both sides."""
    kind = quantity.kind
    if kind == "version":
        yield "version", tuple(quantity.readings[0]), quantity.unit
    elif kind == "digits":
        yield "digits", quantity.unit
    elif kind == "date":
        yield from (("date", reading) for reading in quantity.readings)
    elif kind != "range":
        name = "number" if kind == "ordinal" else kind
        yield from (
            (name, quantity.unit, value) if kind == "currency" else (name, value) for value in _values(quantity)
        )
        if kind == "number" and all(value >= 0 for value in _values(quantity)):
            yield from _as_written(quantity.numeral)


def _as_written(numeral: str) -> Iterator[Hashable]:
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


class Sums:
    """What follows from two numbers of one source and the question.

    Three ways, for numbers, percentages and amounts: the sum and the difference of two different values of one kind and
    currency, and a percentage of a number or an amount. Only the first 100 values of each text are tried.
    """

    def __init__(self, source: Facts, asked: Facts) -> None:
        """Take the numbers of a source and of the question."""
        self._alike: dict[tuple[str, str], dict[Decimal, str]] = {}
        for term in (*source.terms, *asked.terms):
            self._alike.setdefault((term.kind, term.unit), {}).setdefault(term.value, term.text)

    def derive(self, quantity: Quantity, written: str) -> str | None:
        """Return how a quantity follows, None if it does not."""
        kind = (quantity.kind, quantity.unit)
        for value in filter(_short, _values(quantity)) if quantity.kind in _MEASURED else ():
            way = _sum(value, self._alike.get(kind, {})) or self._shares.get((*kind, shifted(value, 2)))
            if way is not None:
                return f"{written} = {way}"
        return None

    @cached_property
    def _shares(self) -> dict[tuple[str, str, Decimal], str]:
        """A hundred times each percentage of each number, and how it came about."""
        found: dict[tuple[str, str, Decimal], str] = {}
        percents = self._alike.get(("percent", ""), {})
        for (kind, unit), bases in self._alike.items():
            for base, text in bases.items() if kind != "percent" else ():
                for percent, sign in percents.items():
                    found.setdefault((kind, unit, _EXACT.multiply(base, percent)), f"{text} × {sign}")
        return found


def _short(value: Decimal) -> bool:
    """Return whether sums and products of such values are exact."""
    return len(value.as_tuple().digits) <= _MOST_DIGITS and abs(value.adjusted()) <= _MOST_DIGITS


def _sum(value: Decimal, alike: dict[Decimal, str]) -> str | None:
    for first, text in alike.items():
        second = _EXACT.subtract(value, first)
        if second in alike and second != first:
            return f"{text} + {alike[second]}"
        second = _EXACT.subtract(first, value)
        if second in alike and second != first:
            return f"{text} − {alike[second]}"
    return None
