"""The stretch of an answer that a scanner has under its eyes, and what a look at it can say.

A stream brings an answer in pieces of any size. So that the size never matters, a shape is judged only when no
further character could change the judgement, and what counts as certain text follows from the judgements alone,
never from how much has arrived.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

LIMIT: Final = 1024
"""Characters that a marker, a tag, a link's target or the rest of a link's text may have; longer ones are text."""
BLANKS: Final = 64
"""Spaces and tabs that may stand between a removed thing and its neighbours, and go with it."""

_TRIM_AT = 4096
_BLANK_RUN = re.compile(r"[ \t]*")


class Outcome(Enum):
    """What a look at a shape found."""

    MORE = "the shape may go on in text that has not arrived"
    FOUND = "the whole shape is there"
    BROKEN = "it can't go on, unless what interrupts it is removed"
    NONE = "it is not there"


class Hit(NamedTuple):
    """The answer to one look: `end` is behind a found shape, or where a broken one is interrupted."""

    outcome: Outcome
    end: int = -1
    own: bool = False
    """Whether a found tag has the shape that our prompt uses, ``<source id="S1"``."""


MORE: Final = Hit(Outcome.MORE)
NONE: Final = Hit(Outcome.NONE)


class View(NamedTuple):
    """What a look may see: `text` up to `stop`."""

    text: str
    stop: int
    more: bool
    """Whether text may still arrive at `stop`."""
    last: bool
    """Whether the answer ends at `stop`."""
    openers: str
    """Characters that may open something that will be removed."""

    def clip(self, start: int) -> View:
        """Return the view without what is more than LIMIT characters away from `start`."""
        limit = start + LIMIT
        return self if self.stop <= limit else View(self.text, limit, more=False, last=False, openers=self.openers)

    def broken_at(self, at: int) -> Hit:
        """Judge a begun shape that can't go on at `at`: what stands there, blanks apart, may yet be removed."""
        edge = self.blanks_end(at)
        if edge == self.stop:
            return MORE if self.more else NONE
        return Hit(Outcome.BROKEN, edge) if self.text[edge] in self.openers else NONE

    def blanks_end(self, at: int) -> int:
        """Return the end of the blanks at `at`, of at most BLANKS."""
        blanks = _BLANK_RUN.match(self.text, at, min(self.stop, at + BLANKS))
        return at if blanks is None else blanks.end()


@dataclass(kw_only=True, slots=True)
class Lookahead:
    """The text that is still needed, with the places that matter in it.

    Indexes count in `text` as it is now. A place ahead of the scan is kept as a *mark*, which stays right when
    something before it is removed or trimmed; `begun` and `done` lie behind the scan, where nothing moves.
    """

    text: str = ""
    pos: int = 0
    """Where the scan goes on."""
    done: int = 0
    """Text before this index is certain."""
    begun: list[int] = field(default_factory=list[int])
    """Starts of shapes, each interrupted by the next, that go on if what interrupts them is removed."""
    _sent: int = 0
    _gone: int = 0

    def mark(self, index: int) -> int:
        """Return the mark of an index at or ahead of the scan."""
        return index + self._gone

    def index(self, mark: int) -> int:
        """Return the index of a mark."""
        return mark - self._gone

    def settle(self, upto: int) -> None:
        """Declare text certain before `upto`, but for begun shapes and the blanks in front, which may yet go."""
        hold = self.blanks_start(self.begun[0] if self.begun else upto)
        self.done = max(self.done, hold, upto - LIMIT)

    def interrupt(self, start: int, by: int) -> None:
        """Remember that the shape at `start` is interrupted, and go on with what interrupts it."""
        self.begun.append(start)
        self.pos = by

    def resume(self, removed: int, behind: int) -> None:
        """Go on after a removal that began at `removed`: with the shape that it interrupted, or `behind` it."""
        while self.begun and self.begun[-1] >= removed:
            self.begun.pop()
        self.pos = self.begun.pop() if self.begun else behind

    def advance(self, to: int) -> None:
        """Move the scan past plain text, which no begun shape survives."""
        self.pos = to
        self.begun.clear()

    def blanks_start(self, at: int) -> int:
        """Return the start of the blanks that end at `at`, of at most BLANKS."""
        if self.text[at - 1 : at] not in (" ", "\t"):
            return at
        lead = self.text[max(0, at - BLANKS) : at]
        return at - len(lead) + len(lead.rstrip(" \t"))

    def opens_line(self, at: int) -> bool:
        """Return whether a line begins at `at`."""
        return at == 0 or self.text[at - 1] == "\n"

    def indented(self, at: int) -> bool:
        """Return whether nothing but up to three spaces stands between the start of a line and `at`."""
        lead = self.text[max(0, at - 3) : at]
        return self.opens_line(at - len(lead) + len(lead.rstrip(" ")))

    def only_blank_before(self, at: int) -> bool:
        """Return whether `at` is the start of the answer, white space apart."""
        # Once text was trimmed, the scan is never as near to the start of what is left.
        return at <= LIMIT and not self.text[:at].strip()

    def remove(self, start: int, stop: int, *, instead: str) -> None:
        """Put `instead` in place of text that is not certain yet."""
        self.text = f"{self.text[:start]}{instead}{self.text[stop:]}"
        self._gone += stop - start - len(instead)

    def take(self) -> str:
        """Return the certain text that was not taken yet, and forget what no look goes back to."""
        taken = self.text[self._sent : self.done]
        self._sent = self.done
        spare = min(self.done, self.pos, *self.begun[:1]) - 2 * LIMIT
        if spare > _TRIM_AT:
            self.text = self.text[spare:]
            self.pos, self.done, self._sent = self.pos - spare, self.done - spare, self._sent - spare
            self.begun = [start - spare for start in self.begun]
            self._gone += spare
        return taken
