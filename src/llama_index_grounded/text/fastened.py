"""Letters that belong to a number: "5a" is not "5b", "A4" not "B4", "12/B" not "12".

They are compared as they are written, words of more than three letters without their case. What `quantities` and
`signature` read with the number is none of them: "3rd", "5k", "5 km", "v1.2", "5'inci".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_forms import Quantity
from llama_index_grounded.text.signature import with_unit

__all__ = ["fastened"]

_LETTER = "[A-Za-zªµºÀ-ÖØ-öø-ɏͰ-ϿЀ-ӿＡ-Ｚａ-ｚ]"
"""Of scripts that have capitals: others write a number and the next word without a space."""
_SHORT, _LONGEST = 3, 40
_FRONT = re.compile(rf"(?:{_LETTER}{{1,{_LONGEST}}}|(?<![^\W_]){_LETTER}-)\Z")
_BEHIND = re.compile(
    rf"{_LETTER}{{1,{_LONGEST}}}|['’]s(?![^\W_])|-(?:alpha|beta|rc|dev|post|pre|snapshot|nightly|final)(?![^\W\d_])"
    rf"|\s?\({_LETTER}{{1,4}}\)|[\s./-]?{_LETTER}(?![^\W_]|['’.]\w)",
    re.IGNORECASE,
)
_MAYBE_LETTERS = frozenset("mbB")
"""Read as a million or a billion that may as well be no multiplier; behind an amount of money they are sure."""
_UNITS = re.compile(
    "[km]?wh|k[vwj]|[kg]?hz|rpm|dpi|ppi|ppm|db|psi|bar|nm|cc|fps|px|pt|kcal|mmol|kbps|kbit|mbit", re.IGNORECASE
)
"""Written with and without a space: to be compared as words, and by their case as symbols."""
_DECADE = re.compile(r"[0-9]{3}0s")


def fastened(text: str, numbers: Iterable[Quantity]) -> tuple[str, ...]:
    """Return the letters at the numbers of a text, in their order.

    Example:
        >>> from llama_index_grounded.text.quantities import quantities
        >>> text = "Room 5a or B12, form 1040B, section 3(c), flat 12/D, the 1990s; 5 km, 3rd, v1.2"
        >>> fastened(text, quantities(text))
        ('a', 'B', 'B', 'c', 'D', 's')
    """
    return tuple(letters for number in numbers for letters in _at(text, number) if letters)


def _at(text: str, number: Quantity) -> Iterator[str]:
    if number.kind == "range":
        for end in number.parts:
            yield from _at(text, end)
        return
    written = text[number.start : number.end]
    if not any(map(str.isnumeric, written)):
        return
    front = _FRONT.search(text, max(0, number.start - _LONGEST), number.start)
    yield _letters(front)
    if written[-1] in _MAYBE_LETTERS and written[-2:-1].isdigit() and number.kind != "currency":
        yield written[-1]
        return
    unit = text[number.end : with_unit(text, number.end)].strip(" \n\t\r\u00a0-")
    if not unit:
        behind = _letters(_BEHIND.match(text, number.end))
        yield "" if _UNITS.fullmatch(behind) else behind
    elif (len(unit) == 1 and unit.isupper()) or _DECADE.fullmatch(f"{number.numeral}{unit}"):
        yield unit


def _letters(found: re.Match[str] | None) -> str:
    letters = "" if found is None else found[0].strip(" \n\t\r\u00a0()./-'’")
    return lower(letters) if len(letters) > _SHORT else letters
