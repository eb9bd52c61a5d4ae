"""Which numbers at the start of a line are those of a list or a heading, and not an ordinal or an answer.

"30. gün" and "5. März" begin a line with an ordinal, and "30. [S1]" is an answer. So a number counts as a list's only
in a list: the lines of an answer, with or without others in between, that count up from 1 (``1.``, ``2)``, ``(3)``),
two of them at least, with text behind each; lists within lists, ``1.1.`` below ``1.``, and headings (``## 2. Fees``)
alike. A list may repeat its 1, as Markdown allows, or count up from another number (``3.``, ``4.``), but then not with
units behind: "1. gün" and "1. gün", "30. gün" and "31. gün" are ordinals. Alone, the 1 of a list and the number of a
heading count where no unit follows and, behind a full stop, no small letter: "1) red" and "1. Fees", but not "1. gün",
"1. Gün" and "# 30. Yıl".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llama_index_grounded.text.measures import measure_at

__all__ = ["list_numbers"]

_LEVELS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,4}"
_NUMBERED = re.compile(
    rf"^[ \t>]*(?:[-*+•][ \t]+)?(?:\*\*|__)?\(?(?P<item>{_LEVELS})[.)](?:\*\*|__)?(?P<behind>[ \t]+)(?=\S)"
    r"|^#{1,6}[ \t]+(?P<heading>[0-9]{1,2}(?:[.)]|(?:\.[0-9]{1,3}){1,4}[.)]?))(?P<after>[ \t]+)(?=\S)",
    re.MULTILINE,
)
_LETTER = re.compile(r"[^\W_]")
_ONE = (1,)
_LEAST_ITEMS = 2

Levels = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    span: tuple[int, int]
    levels: Levels
    measured: bool
    """Whether a unit follows."""
    alone: bool
    """Whether it would count without others."""


def list_numbers(answer: str, markers: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    r"""Yield start and end of each, in no order, in linear time.

    Args:
        answer: The answer.
        markers: Start and end of its citation markers in their order, which are no text behind a number.

    Example:
        >>> answer = "1. Books\n2. Maps\n\n30. günde iade"
        >>> [answer[start:end] for start, end in list_numbers(answer, ())]
        ['1. ', '2. ']
    """
    for run in _runs(_items(_blanked(answer, markers))):
        yield from (item.span for item in run if item.alone or len(run) >= _LEAST_ITEMS)


def _items(text: str) -> Iterator[_Item]:
    """Yield the numbers at the start of lines that have text behind them."""
    for found in _NUMBERED.finditer(text):
        line = text.find("\n", found.end())
        first = _LETTER.search(text, found.end(), len(text) if line < 0 else line)
        if first is None:
            continue
        heading = found["heading"] is not None
        levels = tuple(map(int, (found["heading"] or found["item"]).rstrip(".)").split(".")))
        stop = ")" not in found[0]
        measured = measure_at(text, found.end() - 1) != ""
        ordinal = measured or (stop and first[0].islower())
        yield _Item(found.span(), levels, measured, not ordinal and (heading or levels == _ONE))


def _runs(items: Iterable[_Item]) -> list[list[_Item]]:
    """Return the lists, and each number that is in none as one of its own."""
    runs = list[list[_Item]]()
    waiting = dict[Levels, list[list[_Item]]]()  # the lists from 1 that go on with a number, the latest last
    loose = dict[Levels, list[list[_Item]]]()  # those from another number
    latest = dict[Levels, list[_Item]]()
    for item in items:
        levels = item.levels
        run = waiting[levels].pop() if waiting.get(levels) else None
        if run is None and levels[-1] == 1:
            run = latest.get(levels[:-1]) or _repeated(latest.get(levels), item)
        if run is None and not item.measured and loose.get(levels):
            run = loose[levels].pop()
        if run is None:
            run = []
            runs.append(run)
        run.append(item)
        following = (*levels[:-1], levels[-1] + 1)
        if run[0].levels[-1] == 1:
            waiting.setdefault(following, []).append(run)
            latest[levels] = run
        elif not item.measured:
            loose.setdefault(following, []).append(run)
    return runs


def _repeated(run: list[_Item] | None, item: _Item) -> list[_Item] | None:
    """Return a list whose last number the item repeats, no unit behind either."""
    same = run is not None and run[-1].levels == item.levels
    return run if same and run is not None and not (run[-1].measured or item.measured) else None


def _blanked(answer: str, markers: Iterable[tuple[int, int]]) -> str:
    """Return the answer with spaces in place of its markers."""
    kept, done = list[str](), 0
    for start, end in markers:
        if start >= done:
            kept += [answer[done:start], " " * (end - start)]
            done = end
    return "".join([*kept, answer[done:]])
