"""Which numbers in an answer are no statement: those of citations, keys, lists and headings.

* Citation markers, source keys, and what looks like either for a source of the prompt: ``[1]``, ``^1^``, ``[^1]``,
  "Source 1", "Kaynak 1", and the page in "(S1, p. 4)". ``[30]`` without a source S30 is a number. So is one with a unit
  behind ("documents 2 weeks before") and, unless the noun is written as a name ("Source", "BELGE"), one with "of"
  behind ("five documents 2 of us signed"). Any other that could be a key is taken for one.
* Numbers of list items at the start of a line (``1.``, ``2)``, ``(3)``) and of Markdown headings (``## 3.1 Returns``):
  see `list_numbers`.
* Numbers of lists within a line, which count up from 1 in one style and have two items at least: ``1) red 2) blue``,
  ``(1) first, (2) second``, ``1. red; 2. blue``. With a full stop, a mark such as ``:`` or ``;`` must stand in front.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from llama_index_grounded.checks.list_numbers import list_numbers
from llama_index_grounded.synthesis.lookahead import Outcome, View
from llama_index_grounded.synthesis.markers import CLOSERS, match_marker
from llama_index_grounded.text.measures import measure_at

__all__ = ["not_said"]

_OPENERS = re.compile("[" + re.escape("".join(CLOSERS)) + "]")
_KEY = re.compile(r"(?<![^\W_])[Ss][0-9]+(?![^\W_])")
_LIKE_KEY = re.compile(
    r"\[\^?(?P<bracket>[0-9]{1,4})\]|\^(?P<raised>[0-9]{1,4})\^"
    r"|(?<![^\W_])(?P<noun>sources?|documents?|kaynak|belge)[ \u00a0]#?(?P<word>[0-9]{1,4})(?![^\W_]|[.,][0-9])",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:Source|Document|Kaynak|Belge)\b|[A-Z]+\b")
_OF = re.compile(r"\s+of\b", re.IGNORECASE)
_PAGE = re.compile(
    r"[(\[](?P<key>[Ss][0-9]{1,4})(?:,[ ]?[Ss][0-9]{1,4}){0,8}[,;:]?[ ]"
    r"(?:pp?\.?|pages?|s\.|ss\.|sayfa|sf\.)[ ]?[0-9]{1,5}(?:[-–,][ ]?[0-9]{1,5}){0,8}[)\]]",
    re.IGNORECASE,
)
_INLINE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\S)\((?P<at>[0-9]{1,2})\)(?=\s)",
        r"(?<!\S)(?P<at>[0-9]{1,2})\)(?=\s)",
        r"(?:\A|(?<=[:;,.!?][ \n]))(?P<at>[0-9]{1,2})\.(?=[ \n]\S)",
    )
)
_LEAST_ITEMS = 2
_LOOK_BACK = 80


def not_said(answer: str, keys: Container[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each, in no order.

    Args:
        answer: The answer.
        keys: The keys of the sources in the prompt.

    Example:
        >>> [(start, end) for start, end in not_said("1. As [S1] says, 5.", {"S1"})]
        [(6, 10), (0, 3), (7, 9)]
    """
    markers = list(_markers(answer))
    yield from markers
    yield from list_numbers(answer, markers)
    yield from (found.span() for found in _KEY.finditer(answer) if found[0].upper() in keys)
    yield from (found.span() for found in _PAGE.finditer(answer) if found["key"].upper() in keys)
    for found in _LIKE_KEY.finditer(answer):
        number = found["bracket"] or found["raised"] or found["word"]
        if f"S{number}" in keys and _names_source(answer, found):
            yield found.span()
    for style in _INLINE:
        yield from _items(style, answer)


def _markers(answer: str) -> Iterator[tuple[int, int]]:
    whole = View(answer, len(answer), more=False, last=True, openers="")
    for opener in _OPENERS.finditer(answer):
        hit = match_marker(whole, opener.start())
        if hit.outcome is Outcome.FOUND:
            yield opener.start(), hit.end


def _names_source(answer: str, found: re.Match[str]) -> bool:
    """Say whether what looks like a key is one: no unit follows, and behind a common noun no "of" either."""
    if measure_at(answer, found.end()):
        return False
    noun = found["noun"]
    return noun is None or _NAME.match(noun) is not None or _OF.match(answer, found.end()) is None


def _items(style: re.Pattern[str], answer: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers of one style that count up from 1, two of them at least."""
    run: list[tuple[int, int]] = []
    for found in style.finditer(answer):
        if "(" not in found[0] and _in_brackets(answer, found.start()):
            continue
        at = int(found["at"])
        if at == len(run) + 1:
            run.append(found.span())
        elif at == 1:
            yield from run if len(run) >= _LEAST_ITEMS else ()
            run = [found.span()]
    yield from run if len(run) >= _LEAST_ITEMS else ()


def _in_brackets(answer: str, at: int) -> bool:
    near = answer[max(0, at - _LOOK_BACK) : at]
    return near.rfind("(") > near.rfind(")")
