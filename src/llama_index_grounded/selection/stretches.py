"""Chunks as stretches of one document: which belong together, and the text that they make.

Plain values in, plain values out; `passages.PassageMerger` is the stage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

__all__ = ["GAP", "Joined", "Stretch", "groups", "join"]

GAP = "\n\n…\n\n"
"""Stands for the characters between two chunks, which no chunk holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A chunk in its document: characters ``start`` to ``end``, the end not included."""

    start: int
    end: int
    text: str
    node_id: str = ""
    previous: str | None = None
    """Node id of the chunk before it, where its parser says so."""
    following: str | None = None
    """Node id of the chunk behind it, where its parser says so."""


class Joined(NamedTuple):
    """Several stretches as one text."""

    text: str
    starts: tuple[int, ...]
    """Where each stretch begins in the text."""


def join(stretches: Sequence[Stretch]) -> Joined | None:
    """Write stretches of one document as one text, or return None where they tell different texts for one place.

    Takes time linear in the texts. Where nothing is known of what lies between two stretches, `GAP` stands.

    Args:
        stretches: In the order of their starts; at least one.

    Example:
        >>> join([Stretch(start=0, end=7, text="one two"), Stretch(start=4, end=13, text="two three")])
        Joined(text='one two three', starts=(0, 4))
    """
    reach = stretches[0]  # reaches farthest so far, so it holds whatever the next one may repeat
    pieces, starts = [reach.text], [0]
    length = len(reach.text)
    for stretch in stretches[1:]:
        if stretch.start > reach.end:
            pieces.append(GAP)
            length += len(GAP)
        repeated = max(0, reach.end - stretch.start)
        if repeated and not reach.text.startswith(stretch.text[:repeated], stretch.start - reach.start):
            return None
        starts.append(length - repeated)
        if stretch.end > reach.end:
            pieces.append(stretch.text[repeated:])
            length += len(pieces[-1])
            reach = stretch
    return Joined("".join(pieces), tuple(starts))


def groups(stretches: Sequence[Stretch], max_gap: int = 0) -> list[list[int]]:
    """Tell which stretches of one document belong together, by their places in the list, in source order.

    Chunks that know their neighbours are joined to these only: positions may count from a section, or from the wrong
    one of two equal texts, and neighbours can not. The others are joined to whatever they overlap or touch.

    Example:
        >>> one, two, three = (Stretch(start=at, end=at + 4, text="text") for at in (0, 4, 9))
        >>> groups([three, two, one]), groups([three, two, one], max_gap=1)
        ([[2, 1], [0]], [[2, 1, 0]])
    """
    order = sorted(range(len(stretches)), key=lambda at: _order(stretches[at]))
    tied = [at for at in order if stretches[at].previous or stretches[at].following]
    loose = [at for at in order if not (stretches[at].previous or stretches[at].following)]
    return [*_runs(stretches, loose, max_gap), *_chains(stretches, tied, max_gap)]


def _order(stretch: Stretch) -> tuple[int, int, str]:
    return stretch.start, -stretch.end, stretch.text


def _runs(stretches: Sequence[Stretch], order: Sequence[int], max_gap: int) -> Iterator[list[int]]:
    run: list[int] = []
    reach = 0
    for at in order:
        stretch = stretches[at]
        if run and stretch.start > reach + max_gap:
            yield run
            run = []
        run.append(at)
        reach = stretch.end if len(run) == 1 else max(reach, stretch.end)
    if run:
        yield run


def _chains(stretches: Sequence[Stretch], order: Sequence[int], max_gap: int) -> Iterable[list[int]]:
    copies: dict[str, list[int]] = defaultdict(list)
    for at in order:
        copies[stretches[at].node_id].append(at)
    # An id that two different chunks have names neither of them.
    first = {name: ats[0] for name, ats in copies.items() if len({_order(stretches[at]) for at in ats}) == 1}
    links = [pair for name in first for pair in pairwise(copies[name])]
    for name, at in first.items():
        before, behind = first.get(stretches[at].previous or ""), first.get(stretches[at].following or "")
        pairs = [(before, at), (at, behind)]
        links += [(one, two) for one, two in pairs if one is not None and two is not None and name]
    agreed = (pair for pair in links if _follows(stretches[pair[0]], stretches[pair[1]], max_gap))
    return _connected(order, agreed)


def _follows(one: Stretch, two: Stretch, max_gap: int) -> bool:
    """Tell whether a chunk is the same as its neighbour, or goes on where that one ends."""
    if _order(one) == _order(two):
        return True
    # A parser's chunk never stands within the one before it: such a position is that of an earlier, equal text.
    goes_on = one.start < two.start <= one.end + max_gap and one.end < two.end
    return goes_on and one.text.endswith(two.text[: max(0, one.end - two.start)])


def _connected(items: Sequence[int], links: Iterable[tuple[int, int]]) -> Iterable[list[int]]:
    parent = {item: item for item in items}

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = item = parent[parent[item]]
        return item

    for one, two in links:
        parent[root(two)] = root(one)
    together: dict[int, list[int]] = defaultdict(list)
    for item in items:
        together[root(item)].append(item)
    return together.values()
