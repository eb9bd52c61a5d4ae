"""What two texts must agree in to be near-duplicates: numbers, dates, negations, telling words.

`key` is the same for all texts that may say the same, so that many texts can be told apart without a look at each pair.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal

from llama_index_grounded.text.quantities import quantities
from llama_index_grounded.text.signature import Mark, Signature, differs, signature, with_unit
from llama_index_grounded.text.wording import Wording, reworded, wording

__all__ = ["Statement", "apart", "statement"]

_ALIKE = frozenset({"number", "version", "digits"})


@dataclass(frozen=True, slots=True)
class Statement:
    """What a text says. Compare two with `apart`."""

    signature: Signature
    wording: Wording
    key: Hashable | None
    """Two texts with different keys are surely apart; None for a text that may agree with texts of any key."""


def statement(text: str) -> Statement:
    """Work out what a text says, in linear time; nothing in a text makes this raise."""
    found = signature(text)
    spans = [(one.start, with_unit(text, one.end)) for one in quantities(text)] if found.numbers else ()
    worded = wording(text, spans)
    numbers = tuple(map(_key_of, found.numbers))
    key = (
        numbers,
        frozenset(found.negations.items()),
        frozenset(found.links.items()),
        worded.telling,
        worded.signs,
    )
    return Statement(found, worded, None if None in numbers else key)


def apart(one: Statement, other: Statement) -> str:
    """Name the first thing in which two texts differ or may differ; empty where they say the same.

    Example:
        >>> apart(statement("Closed in January."), statement("Closed in February."))
        'words: january against february'
        >>> apart(statement("Return it within 21 days."), statement("return it within twenty-one days!"))
        ''
    """
    return differs(one.signature, other.signature) or reworded(one.wording, other.wording)


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
