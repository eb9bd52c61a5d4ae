"""What numerals, number words and written dates stand for; `quantities` finds them in a text.

* **Numerals.** Thousands are divided by one of ``. , '`` or a space into groups of three, and the last ``.`` or ``,``
  may be the decimal sign: ``1.200,50`` = ``1,200.50`` = ``1 200,50``. A numeral with one ``.`` or ``,`` in front of
  exactly three digits has two readings, thousands first: ``1.200`` is 1200 or 1.2. Behind a lone 0 it is the decimal
  sign.
* **Words**, English and Turkish, also written together (``yirmiiki``), up to trillions. Words that do not build one
  number (``one two three``) are several. ``buçuk`` adds a half. "dozen", "point" and "and a half" are not read.
* **Dates** have a year, a month and a day, each of which may be missing. ``1/3/2026`` and ``1-3-2026`` have two
  readings where both are months, day first; with dots the day stands first. A year of two digits is 20xx or 19xx.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

__all__ = [
    "ENGLISH_TENS",
    "ENGLISH_UNITS",
    "MONTH",
    "MONTH_NAMES",
    "SCALES",
    "TEENS",
    "Phrase",
    "Term",
    "dates_of",
    "readings_of",
    "shifted",
    "terms_of",
]

Day = tuple[Decimal | None, Decimal | None, Decimal | None]

SCALES: Final = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "bin": 3,
    "milyon": 6,
    "milyar": 9,
    "trilyon": 12,
}
"""Zeros that a word behind a numeral adds."""

_UNIT, _TEEN, _TEN, _HUNDRED, _HALF, _ZERO, _SCALE = range(7)
ENGLISH_UNITS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS: Final = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
ENGLISH_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TURKISH_UNITS = ("bir", "iki", "üç", "dört", "beş", "altı", "yedi", "sekiz", "dokuz")
_TURKISH_TENS = ("on", "yirmi", "otuz", "kırk", "elli", "altmış", "yetmiş", "seksen", "doksan")

_MONTHS = (
    ("january", "jan", "ocak"),
    ("february", "feb", "şubat"),
    ("march", "mar", "mart"),
    ("april", "apr", "nisan"),
    ("may", "mayıs"),
    ("june", "jun", "haziran"),
    ("july", "jul", "temmuz"),
    ("august", "aug", "ağustos"),
    ("september", "sept", "sep", "eylül"),
    ("october", "oct", "ekim"),
    ("november", "nov", "kasım"),
    ("december", "dec", "aralık"),
)
MONTH: Final = "(?:" + "|".join(sorted((name for names in _MONTHS for name in names), key=len, reverse=True)) + ")"
"""A month's name, for patterns that ignore case."""
# "KASIM" is "kasim" in lower case outside a Turkish locale.
_MONTH_NUMBER = {
    spelt: Decimal(at)
    for at, names in enumerate(_MONTHS, 1)
    for name in names
    for spelt in (name, name.replace("ı", "i"))
}
MONTH_NAMES: Final = frozenset(_MONTH_NUMBER)
"""Names of months in lower case, short forms included."""

_NUMERIC_DATE = re.compile(r"([0-9]+)([-/.])([0-9]+)(?:\2([0-9]+))?")
_NUMBER = re.compile("[0-9]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_LONGEST_WORD = 120
_YEAR_DIGITS, _LAST_MONTH, _LAST_DAY = 4, 12, 31
_GROUP, _FULL_DATE = 3, 3


class Term(NamedTuple):
    """One number word."""

    rank: int
    value: Decimal
    turkish: bool


def _terms() -> dict[str, Term]:
    found = {"zero": Term(_ZERO, Decimal(0), turkish=False), "sıfır": Term(_ZERO, Decimal(0), turkish=True)}
    for turkish, units, tens, first in (
        (False, ENGLISH_UNITS, ENGLISH_TENS, 2),
        (True, _TURKISH_UNITS, _TURKISH_TENS, 1),
    ):
        found |= {word: Term(_UNIT, Decimal(at), turkish) for at, word in enumerate(units, 1)}
        found |= {word: Term(_TEN, Decimal(at * 10), turkish) for at, word in enumerate(tens, first)}
    found |= {word: Term(_TEEN, Decimal(at), turkish=False) for at, word in enumerate(TEENS, 10)}
    found |= {"hundred": Term(_HUNDRED, Decimal(100), turkish=False), "yüz": Term(_HUNDRED, Decimal(100), turkish=True)}
    found["buçuk"] = Term(_HALF, Decimal("0.5"), turkish=True)
    scales = ((word, zeros) for word, zeros in SCALES.items() if zeros > _GROUP - 1)
    return found | {
        word: Term(_SCALE, Decimal(10**zeros), word in {"bin", "milyon", "milyar", "trilyon"}) for word, zeros in scales
    }


_TERMS = _terms()
_TURKISH_WORDS = sorted((word for word, term in _TERMS.items() if term.turkish), key=len, reverse=True)
_JOINED = re.compile(f"(?:{'|'.join(_TURKISH_WORDS)})+")
_ONE_JOINED = re.compile("|".join(_TURKISH_WORDS))


def terms_of(word: str) -> tuple[Term, ...]:
    """Return the number words that a word in lower case is made of; none if it is no number.

    Example:
        >>> [str(term.value) for term in terms_of("yirmiiki")]
        ['20', '2']
    """
    if word in _TERMS:
        return (_TERMS[word],)
    if len(word) > _LONGEST_WORD or _JOINED.fullmatch(word) is None:
        return ()
    return tuple(_TERMS[part] for part in _ONE_JOINED.findall(word))


class Phrase:
    """Adds up number words, one after the other, as long as they build one number."""

    def __init__(self, first: Term) -> None:
        """Begin with a word."""
        self._total = self._part = Decimal(0)
        self._last: Term | None = None
        self._scale = Decimal("Infinity")
        self._turkish = first.turkish
        self.add(first)

    @property
    def value(self) -> Decimal:
        """What the words say so far."""
        return self._total + self._part

    @property
    def takes_and(self) -> bool:
        """Whether an "and" may follow, as in "one hundred and twenty"."""
        return self._last is not None and not self._turkish and self._last.rank in {_HUNDRED, _SCALE}

    def takes(self, term: Term) -> bool:
        """Return whether the number goes on with this word."""
        last = self._last
        if last is None or term.turkish is not self._turkish:
            return last is None
        if term.rank == _SCALE:
            # "bir milyon bin" is 1,001,000; English has "one thousand" there.
            bare = last.rank != _SCALE or term is _TERMS["bin"]
            return bare and last.rank != _ZERO and term.value < self._scale
        allowed = {
            _UNIT: {_TEN, _HUNDRED, _SCALE},
            _TEEN: {_HUNDRED, _SCALE},
            _TEN: {_HUNDRED, _SCALE},
            _HUNDRED: {_UNIT, _TEEN, _SCALE},
            _HALF: {_UNIT, _TEN, _HUNDRED},
        }
        return last.rank in allowed.get(term.rank, set()) and (term.rank != _HUNDRED or self._part < term.value)

    def add(self, term: Term) -> None:
        """Go on with a word that `takes` allows."""
        if term.rank == _SCALE:
            self._total += (self._part or 1) * term.value
            self._part, self._scale = Decimal(0), term.value
        elif term.rank == _HUNDRED:
            self._part = (self._part or 1) * term.value
        else:
            self._part += term.value
        self._last = term


def readings_of(numeral: str) -> tuple[Decimal, ...]:
    """Return what digits with ``. , '`` and spaces between them may stand for, the likelier first; none if nothing.

    Example:
        >>> [str(value) for value in readings_of("1.200")], readings_of("3.6.1")
        (['1200', '1.200'], ())
    """
    groups = _NUMBER.findall(numeral)
    marks = [mark for mark in numeral if not mark.isdigit()]
    if not marks:
        return (Decimal(numeral),)
    whole = _joined(groups) if len(set(marks)) == 1 else None
    decimal = None
    if marks[-1] in ".," and marks.count(marks[-1]) == 1 and len(set(marks[:-1])) <= 1:
        left = _joined(groups[:-1]) if len(groups) > 2 else groups[0]  # noqa: PLR2004 - thousands and decimals
        decimal = None if left is None else f"{left}.{groups[-1]}"
    return tuple(Decimal(value) for value in (whole, decimal) if value is not None)


def _joined(groups: list[str]) -> str | None:
    """Return the digits of a numeral that is divided into thousands, None if it is not."""
    fits = len(groups[0]) <= _GROUP and not groups[0].startswith("0") and all(len(g) == _GROUP for g in groups[1:])
    return "".join(groups) if fits else None


def shifted(value: Decimal, zeros: int) -> Decimal:
    """Return the value with as many zeros more, exactly."""
    sign, digits, exponent = value.as_tuple()
    return Decimal((sign, digits, int(exponent) + zeros))


def dates_of(written: str) -> tuple[Day, ...]:
    """Return the dates that a text in lower case may stand for, as year, month and day; none if it is no date.

    Example:
        >>> [[str(part) for part in day] for day in dates_of("march 2026")]
        [['2026', '3', 'None']]
    """
    numeric = _NUMERIC_DATE.fullmatch(written)
    if numeric is not None:
        return _numeric(numeric)
    names = [_MONTH_NUMBER[name] for name in _LETTERS.findall(written) if name in _MONTH_NUMBER]
    numbers = _NUMBER.findall(written)
    year = next((Decimal(number) for number in numbers if len(number) == _YEAR_DIGITS), None)
    day = next((Decimal(number) for number in numbers if len(number) < _YEAR_DIGITS), None)
    valid = names and (day is None or 1 <= day <= _LAST_DAY)
    return ((year, names[0], day),) if valid else ()


def _numeric(found: re.Match[str]) -> tuple[Day, ...]:
    first, mark, second, third = found.groups()
    if len(first) == _YEAR_DIGITS:
        return _valid([(first, second, third)])
    if third is None:
        return ()
    years = [third] if len(third) == _YEAR_DIGITS else [f"20{third}", f"19{third}"]
    orders = [(second, first)] if mark == "." or first == second else [(second, first), (first, second)]
    return _valid([(year, month, day) for year in years for month, day in orders])


def _valid(dates: list[tuple[str, str, str | None]]) -> tuple[Day, ...]:
    parts = [(Decimal(year), Decimal(month), None if day is None else Decimal(day)) for year, month, day in dates]
    return tuple(
        (year, month, day)
        for year, month, day in parts
        if 1 <= month <= _LAST_MONTH and (day is None or 1 <= day <= _LAST_DAY)
    )
