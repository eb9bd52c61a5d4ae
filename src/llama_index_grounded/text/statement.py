"""What two texts must agree in to be near-duplicates: numbers, dates, negations, telling words, symbols.

Numbers are compared more strictly here than in `signature`: the letters at them, and a unit that only one text has,
make another number. "1,500" is not "1.500", 3/4/2026 not 4/3/2026 and "2.000" not 2, though each may be what the other
is; "1.500" is 1500.

`key` is the same for all texts that may say the same, so that many texts can be told apart without a look at each pair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from llama_index_grounded.text.fastened import fastened
from llama_index_grounded.text.quantities import quantities
from llama_index_grounded.text.signature import Mark, Signature, differs, signature
from llama_index_grounded.text.symbols import symbols
from llama_index_grounded.text.wording import Wording, first_difference, reworded, wording

__all__ = ["Statement", "apart", "statement"]

_ALIKE = frozenset({"number", "version", "digits"})
_DIGIT = re.compile(r"\d")
_THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3})")
_DAY_OR_MONTH = re.compile(r"(?<!\d)0?(\d{1,2})[-/]0?(\d{1,2})(?=[-/]\d)")


@dataclass(frozen=True, slots=True)
class Statement:
    """What a text says. Compare two with `apart`."""

    signature: Signature
    wording: Wording
    letters: tuple[str, ...]
    """Those that belong to a number."""
    symbols: tuple[str, ...]
    key: Hashable | None
    """Two texts with different keys are surely apart; None for a text that may agree with texts of any key."""


def statement(text: str) -> Statement:
    """Work out what a text says, in linear time; nothing in a text makes this raise."""
    text = unicodedata.normalize("NFC", text)
    found = signature(text)
    numbers = quantities(text) if found.numbers or _DIGIT.search(text) else []
    letters, signs = fastened(text, numbers), symbols(text, {one.start for one in numbers})
    worded = wording(text, [mark.span for mark in found.numbers])
    marks = tuple(map(_key_of, found.numbers))
    key = (
        marks,
        tuple(mark.measure for mark in found.numbers),
        frozenset(found.negations.items()),
        frozenset(found.links.items()),
        worded.telling,
        letters,
        signs,
    )
    return Statement(found, worded, letters, signs, None if None in marks else key)


def apart(one: Statement, other: Statement) -> str:
    """Name the first thing in which two texts differ or may differ; empty where they say the same.

    Example:
        >>> apart(statement("Closed in January."), statement("Closed in February."))
        'words: january against february'
        >>> apart(statement("Return it within 21 days."), statement("return it within twenty-one days!"))
        ''
    """
    return (
        differs(one.signature, other.signature)
        or _other_number(one.signature.numbers, other.signature.numbers)
        or first_difference("letters", one.letters, other.letters)
        or first_difference("symbols", one.symbols, other.symbols)
        or reworded(one.wording, other.wording)
    )


def _other_number(one: Sequence[Mark], other: Sequence[Mark]) -> str:
    """Name two numbers that agree and are not surely the same: a unit is missing, or each may be what the other is."""
    for mine, theirs in zip(one, other, strict=True):
        spelt, others = _spelling(mine), _spelling(theirs)
        unlike = mine.measure != theirs.measure or (spelt and others and spelt != others)
        if unlike or _as_a_fraction(mine, theirs) or _as_a_fraction(theirs, mine):
            return f"numbers: {mine.written} against {theirs.written}"
    return ""


def _as_a_fraction(one: Mark, other: Mark) -> bool:
    """Tell whether a number with a group of three digits agrees with another only if it is no group: 2.000 with 2."""
    if len(one.readings) == 1 or len(other.readings) > 1 or not _THOUSANDS.search(one.written):
        return False
    known = [reading for reading in one.readings if None not in reading]
    grouped: tuple[Decimal | None, ...] = max(known, default=())
    return grouped not in other.readings


def _spelling(mark: Mark) -> list[str | tuple[str, str]]:
    """Return what decides between the readings of a number: the marks in a numeral, the order of day and month."""
    if len(mark.readings) == 1:
        return []
    return [*_THOUSANDS.findall(mark.written), *_DAY_OR_MONTH.findall(mark.written)]


def _key_of(mark: Mark) -> Hashable | None:
    """Return what all marks that agree with one share: kind, unit, digits; None where its readings share no digits."""
    if mark.kind == "range":
        return mark.kind, mark.unit
    if mark.kind in _ALIKE:
        # Version 3.10 and the number 3.10 agree.
        found = {"".join(map(_digits, reading)).strip("0") for reading in mark.readings}
        if mark.kind == "version" and found != {re.sub(r"\D", "", mark.numeral).strip("0")}:
            return None
        return ("number", *found) if len(found) == 1 else None
    parts = {" ".join(sorted(_digits(value).strip("0") for value in reading)) for reading in mark.readings}
    return (mark.kind, mark.unit, *parts) if len(parts) == 1 else None


def _digits(value: Decimal | None) -> str:
    return "" if value is None else "".join(map(str, value.as_tuple().digits))
