"""Whether a quantity of the answer follows from two numbers of its source and the question."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cached_property
from itertools import permutations

from llama_index_grounded.checks.number_support import MEASURED, Facts, is_short, values_of
from llama_index_grounded.text.number_forms import Quantity
from llama_index_grounded.text.number_words import shifted

__all__ = ["Sums"]

_EXACT = Context(prec=80)
_MOST_DECIMALS = 6


class Sums:
    """What follows from two numbers of one source and the question.

    Four ways, for numbers, percentages and amounts: the sum and the difference of two different values of one kind and
    currency, a percentage of a number or an amount, and the percentage that one number is of a greater one of the same
    kind: exactly, or rounded to the decimals that are written, one at least ("33.3 %" for 1 of 3, not "33 %", which too
    many pairs of numbers give). Only the first 100 values of each text are tried.
    """

    def __init__(self, source: Facts, asked: Facts) -> None:
        """Take the numbers of a source and of the question."""
        self._rounded: dict[int, dict[Decimal, str]] = {}
        self._alike: dict[tuple[str, str], dict[Decimal, str]] = {}
        for term in (*source.terms, *asked.terms):
            self._alike.setdefault((term.kind, term.unit), {}).setdefault(term.value, term.text)

    def derive(self, quantity: Quantity, written: str) -> str | None:
        """Return how a quantity follows, None if it does not."""
        kind = (quantity.kind, quantity.unit)
        for value in filter(is_short, values_of(quantity)) if quantity.kind in MEASURED else ():
            way = _sum(value, self._alike.get(kind, {})) or self._shares.get((*kind, shifted(value, 2)))
            if way is None and quantity.kind == "percent":
                way = self._parts(_decimals(value)).get(value)
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

    def _parts(self, decimals: int) -> dict[Decimal, str]:
        """What percentage each number is of each greater one, rounded to decimals, and how it came about."""
        if decimals not in self._rounded:
            step = Decimal((0, (1,), -decimals))
            found: dict[Decimal, str] = {}
            for (kind, _), alike in self._alike.items():
                for part, whole in permutations(alike, 2) if kind != "percent" else ():
                    if 0 < part < whole:
                        share = _EXACT.divide(shifted(part, 2), whole)
                        near = share.quantize(step, ROUND_HALF_UP, _EXACT)
                        if decimals or near == share:
                            found.setdefault(near, f"{alike[part]} of {alike[whole]}")
            self._rounded[decimals] = found
        return self._rounded[decimals]


def _decimals(value: Decimal) -> int:
    return max(0, min(_MOST_DECIMALS, -int(value.as_tuple().exponent)))


def _sum(value: Decimal, alike: dict[Decimal, str]) -> str | None:
    for first, text in alike.items():
        second = _EXACT.subtract(value, first)
        if second in alike and second != first:
            return f"{text} + {alike[second]}"
        second = _EXACT.subtract(first, value)
        if second in alike and second != first:
            return f"{text} − {alike[second]}"
    return None
