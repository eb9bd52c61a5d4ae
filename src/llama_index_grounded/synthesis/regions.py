r"""Where code and mathematics begin and end.

* **Fenced code**: three or more backticks or tildes at a line's start, up to three spaces before, to a line that holds
  nothing but the same character at least as often, or to the end. Another backtick on the opening line makes it
  inline code.
* **Inline code**: a run of backticks up to the next run of the same length.
* **Mathematics**: ``$…$`` on one line (the first ``$`` before something that is neither digit nor white space),
  ``$$…$$``, ``\(…\)``, ``\[…\]``. A ``$`` behind a backslash is a plain character.

Inline code, ``$$``, ``\(`` and ``\[`` must close before a blank line, a line that opens a fence, and the end;
otherwise the opening is plain text, and what follows is read as usual.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from llama_index_grounded.synthesis.lookahead import BLANKS, LIMIT, Lookahead

NOT_YET = -1
"""The closer may stand in text that has not arrived."""
NEVER = -2
"""There is no closer."""

# A longer run counts as several, so that a look at one is bounded. The last two may become other tokens.
_TOKEN = re.compile(rf"`{{1,{LIMIT}}}|~{{3,{LIMIT}}}|(?<!\\)\$\$|\\[)\]]|\n|[$\\]\Z|~{{1,2}}\Z")
_WHOLE = ("$$", "\\)", "\\]")
_BLANK_LINE = re.compile(rf"[ \t\r]{{0,{BLANKS}}}(?:\n|\Z)")
_DOLLAR = re.compile(r"(?<!\\)\$|\n")
_ANY_TAG = re.compile(r"<[^<>\n]*>")
_RUN = re.compile(rf"`{{1,{LIMIT}}}|~{{1,{LIMIT}}}")
_INFO = re.compile(r"[^`\n]*")


class Opening(NamedTuple):
    """What a ``$``, a backslash or a run of backticks opens."""

    size: int
    """Characters of the opening."""
    closer: str
    """What closes it; empty if it opens nothing."""
    plain: int
    """Characters that are plain text if it is never closed."""


_PAIRS = {
    "$$": Opening(2, "$$", 2),
    "\\(": Opening(2, "\\)", 2),
    # If it never closes, the bracket may still open a marker.
    "\\[": Opening(2, "\\]", 1),
    "\\$": Opening(2, "", 2),
}


class Closers:
    """Finds the closers of regions, and looks at no stretch of text again and again.

    A search that failed has seen the rest of its block. From then on `_last` knows where each closer stands last in it,
    so that a later opening in the block that will fail does so without a search.
    """

    def __init__(self, ahead: Lookahead) -> None:
        """Search in what lies ahead."""
        self._ahead = ahead
        self._pending = NOT_YET
        self._resume = 0
        self._last: dict[str, int] = {}
        self._block_end = NOT_YET

    def find(self, start: int, closer: str, *, final: bool) -> int:
        """Return the index behind the closer of a region whose content begins at `start`, or NOT_YET or NEVER."""
        mark = self._ahead.mark(start)
        if mark != self._pending:
            if mark > self._block_end:
                self._last = {}
            elif closer != "$" and self._last.get(closer, NOT_YET) < mark:
                return NEVER
            self._resume = mark
        end = self._on_line(final=final) if closer == "$" else self._in_block(closer, final=final)
        self._pending = mark if end == NOT_YET else NOT_YET
        return end

    def _on_line(self, *, final: bool) -> int:
        text = self._ahead.text
        found = _DOLLAR.search(text, self._ahead.index(self._resume))
        if found is not None:
            return found.end() if found[0] == "$" else NEVER
        self._resume = self._ahead.mark(len(text))
        return NEVER if final else NOT_YET

    def _in_block(self, closer: str, *, final: bool) -> int:
        text = self._ahead.text
        for token in _TOKEN.finditer(text, self._ahead.index(self._resume)):
            self._resume = self._ahead.mark(token.start())
            if not final and _undecided(token):
                return NOT_YET
            self._last[token[0]] = max(self._resume, self._last.get(token[0], NOT_YET))
            if token[0] == closer:
                return token.end()
            if _ends_block(token):
                self._block_end = self._resume
                return NEVER
        self._resume = self._ahead.mark(len(text))
        if not final:
            return NOT_YET
        self._block_end = self._resume
        return NEVER


def opening_at(text: str, start: int, *, final: bool) -> Opening | None:
    """Return what opens at `start`, fences apart; None if text that has not arrived decides it."""
    if text[start] in "`~":
        run = run_at(text, start, final=final)
        return None if run is None else Opening(len(run), run if run[0] == "`" else "", len(run))
    pair = text[start : start + 2]
    if len(pair) == 1 and not final:
        return None
    if pair in _PAIRS:
        return _PAIRS[pair]
    opens = pair[0] == "$" and len(pair) > 1 and not unfit_for_dollar(pair[1])
    return Opening(1, "$" if opens else "", 1)


def unfit_for_dollar(following: str) -> bool:
    """Return whether a ``$`` in front of this character opens no mathematics."""
    return following.isspace() or following.isnumeric()


def run_at(text: str, start: int, *, final: bool) -> str | None:
    """Return the run of backticks or tildes at `start`; None if it may go on."""
    run = _RUN.match(text, start)
    whole = "" if run is None else run[0]
    return whole if final or start + len(whole) < len(text) or len(whole) == LIMIT else None


def opens_fence(ahead: Lookahead, start: int, run: str, *, final: bool) -> bool | None:
    """Return whether the run at `start` opens fenced code; None if text that has not arrived decides it."""
    if len(run) < 3 or not ahead.indented(start):  # noqa: PLR2004 - Markdown's own number
        return False
    if run[0] == "~":
        return True
    info = start + len(run)
    limit = info + LIMIT
    found = _INFO.match(ahead.text, info, limit)
    end = info if found is None else found.end()
    if end == limit:
        return True
    if end == len(ahead.text):
        return True if final else None
    return ahead.text[end] == "\n"


def closes_fence(ahead: Lookahead, start: int, run: str, fence: str, *, final: bool) -> bool | None:
    """Return whether the run at `start` closes the fence; None if text that has not arrived decides it."""
    if run[0] != fence[0] or len(run) < len(fence) or not ahead.indented(start):
        return False
    line = _BLANK_LINE.match(ahead.text, start + len(run))
    if line is None:
        return False
    return True if final or line[0].endswith("\n") else None


def _undecided(token: re.Match[str]) -> bool:
    """Return whether text behind what has arrived could make another token of this one."""
    if token[0] == "\n":
        blank = _BLANK_LINE.match(token.string, token.end())
        return blank is not None and not blank[0].endswith("\n")
    return token[0] not in _WHOLE and len(token[0]) < LIMIT and token.end() == len(token.string)


def _ends_block(token: re.Match[str]) -> bool:
    if token[0] == "\n":
        return _BLANK_LINE.match(token.string, token.end()) is not None
    if token[0][0] not in "`~" or len(token[0]) < 3:  # noqa: PLR2004 - Markdown's own number
        return False
    # A tag that stands before the run on its line may be removed later, and then the run opens a line.
    line = token.string.rfind("\n", max(0, token.start() - LIMIT), token.start())
    lead = _ANY_TAG.sub("", token.string[line + 1 : token.start()])
    return line >= 0 and len(lead) < 4 and not lead.strip(" ")  # noqa: PLR2004 - as above
