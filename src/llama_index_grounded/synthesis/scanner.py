"""Takes leaked tags and unknown markers out of an answer, in one pass over text that arrives in pieces.

The scan goes from left to right over what is *kept*. Where something is removed, it goes back to the shape that the
removed thing interrupted, so ``<sou<source>rce>`` and ``[S[S9]9]`` leave nothing. A second pass over the output finds
nothing to remove.
"""

from __future__ import annotations

import re

from llama_index_grounded.synthesis.escaped import as_text, match_escaped
from llama_index_grounded.synthesis.keys import KeyIndex
from llama_index_grounded.synthesis.lookahead import Hit, Lookahead, Outcome, View
from llama_index_grounded.synthesis.markers import Item, in_link, items_of, match_marker, without_frame, without_unknown
from llama_index_grounded.synthesis.regions import (
    NEVER,
    NOT_YET,
    Closers,
    closes_fence,
    opening_at,
    opens_fence,
    run_at,
    unfit_for_dollar,
)
from llama_index_grounded.synthesis.removal import instead_of, marker_extent, tag_extent
from llama_index_grounded.synthesis.tags import match_autolink, match_tag, match_tail

_OPENERS = "<[【［"
_OPENER_SET = frozenset(_OPENERS)
_OPENER = re.compile(r"[<\[【［]")
_SPECIAL = re.compile(r"[<\[【［`$]|\\(?=[(\[$]|\Z)|~(?=~~|~?\Z)")
_IN_FENCE = re.compile(r"[<`~]")
_NON_SPACE = re.compile(r"\S")
_STEP = 2048


class Scanner:
    r"""Cleans text in pieces: `feed` them, then `finish`.

    Each method that judges returns False where the judgement needs text that has not arrived.

    Args:
        index: The keys that are valid.
        inline: False removes the markers of valid keys too.
        escaped: The prompt wrote keys of documents as ``[\S1]``.
    """

    def __init__(self, index: KeyIndex, *, inline: bool = True, escaped: bool = False) -> None:
        """Start in front of the first character."""
        self.keys: dict[str, None] = {}
        """Valid keys in markers, in order of first appearance."""
        self.unknown: dict[str, None] = {}
        """Unknown ids in markers, as written, in order of first appearance."""
        self._index = index
        self._inline = inline
        self._escaped = escaped
        self._ahead = Lookahead()
        self._closers = Closers(self._ahead)
        self._final = False
        self._at_start = True
        # The run that opened the fence, or the closer of the region, in which the scan is.
        self._fence = ""
        self._closer = ""
        self._closer_mark = 0

    def feed(self, text: str) -> str:
        """Return what is certain now."""
        parts: list[str] = []
        # In steps, since a removal copies the text that is there.
        for start in range(0, len(text), _STEP):
            self._ahead.text += text[start : start + _STEP]
            self._run()
            parts.append(self._ahead.take())
        return "".join(parts)

    def finish(self) -> str:
        """Return the rest."""
        self._final = True
        self._run()
        self._ahead.done = len(self._ahead.text)
        return self._ahead.take()

    def _run(self) -> None:
        while self._step():
            pass

    def _step(self) -> bool:
        if self._fence:
            return self._in_fence()
        if self._closer:
            return self._in_region()
        return self._start() if self._at_start else self._in_text()

    # Where the scan is.

    def _start(self) -> bool:
        first = _NON_SPACE.search(self._ahead.text, self._ahead.pos)
        if first is None:
            return self._wait()
        start = self._move(first.start())
        hit = match_tail(self._view(), start)
        if hit.outcome is Outcome.MORE:
            return False
        if hit.outcome is Outcome.FOUND:
            return self._remove_tag(start, hit.end)
        self._at_start = False
        if hit.outcome is Outcome.BROKEN:
            self._ahead.interrupt(start, by=hit.end)
        return True

    def _in_text(self) -> bool:
        special = _SPECIAL.search(self._ahead.text, self._ahead.pos)
        if special is None:
            return self._wait()
        start = self._move(special.start(), shape=special[0] in _OPENERS)
        if special[0] not in _OPENERS:
            return self._opening(start)
        if special.string[start + 1 : start + 2] in _OPENER_SET:
            self._ahead.interrupt(start, by=start + 1)
            return True
        return self._angle(start) if special[0] == "<" else self._bracket(start)

    def _in_region(self) -> bool:
        ahead = self._ahead
        stop = ahead.index(self._closer_mark)
        start = ahead.text.find("<", ahead.pos, stop)
        if start >= 0:
            return self._angle(self._move(start))
        ahead.advance(stop + len(self._closer))
        self._closer = ""
        return True

    def _in_fence(self) -> bool:
        ahead = self._ahead
        special = _IN_FENCE.search(ahead.text, ahead.pos)
        if special is None:
            return self._wait()
        start = self._move(special.start(), shape=special[0] == "<")
        if special[0] == "<":
            return self._angle(start)
        run = run_at(ahead.text, start, final=self._final)
        closes = run and closes_fence(ahead, start, run, self._fence, final=self._final)
        if run is None or closes is None:
            ahead.settle(len(ahead.text))
            return False
        self._fence = "" if closes else self._fence
        ahead.advance(start + len(run))
        return True

    def _wait(self) -> bool:
        self._ahead.advance(len(self._ahead.text))
        self._ahead.settle(self._ahead.pos)
        return False

    def _move(self, to: int, *, shape: bool = True) -> int:
        """Move to the next place that needs a judgement; only another shape keeps a begun one alive."""
        if to != self._ahead.pos or not shape:
            self._ahead.advance(to)
        self._ahead.settle(to)
        return to

    def _view(self) -> View:
        text, final = self._ahead.text, self._final
        if self._closer:
            return View(text, self._ahead.index(self._closer_mark), more=False, last=False, openers="<")
        return View(text, len(text), more=not final, last=final, openers="<" if self._fence else _OPENERS)

    # What stands there.

    def _angle(self, start: int) -> bool:
        hit = match_tag(self._view(), start)
        if hit.outcome is Outcome.NONE and not self._fence and not self._closer:
            hit = match_autolink(self._view(), start)
            if hit.outcome is Outcome.FOUND:
                self._ahead.advance(hit.end)
                return True
        code = self._fence or self._closer.startswith("`")
        if hit.outcome is Outcome.FOUND and (hit.own or not code):
            return self._remove_tag(start, hit.end)
        return self._leave(start, hit)

    def _bracket(self, start: int) -> bool:
        if self._escaped and self._ahead.text[start + 1 : start + 2] == "\\":
            return self._escaped_key(start)
        hit = match_marker(self._view(), start)
        if hit.outcome is not Outcome.FOUND:
            return self._leave(start, hit)
        linked = in_link(self._view(), start, hit.end)
        if linked is None:
            return False
        if linked:
            self._ahead.advance(hit.end)
            return True
        return self._marker(start, hit.end)

    def _escaped_key(self, start: int) -> bool:
        ahead = self._ahead
        hit = match_escaped(self._view(), start)
        if hit.outcome is not Outcome.FOUND:
            return self._leave(start, hit)
        linked = in_link(self._view(), start + 1, hit.end)
        if linked is None:
            return False
        if linked or start < ahead.done:
            ahead.advance(hit.end)
            return True
        shown = as_text(ahead.text[start : hit.end], ahead.text[start - 1 : start] if start else "")
        ahead.remove(start, hit.end, instead=shown)
        if shown.endswith(")"):
            # The heading of a source may go on behind it.
            ahead.resume(start, behind=start + len(shown))
        else:
            ahead.advance(start + len(shown))
        return True

    def _leave(self, start: int, hit: Hit) -> bool:
        """Leave the opening character in the text, at least for now."""
        if hit.outcome is Outcome.MORE:
            return False
        if hit.outcome is Outcome.BROKEN:
            self._ahead.interrupt(start, by=hit.end)
        else:
            self._ahead.advance(start + 1)
        return True

    def _opening(self, start: int) -> bool:
        ahead, final = self._ahead, self._final
        opening = opening_at(ahead.text, start, final=final)
        if opening is None:
            return False
        run = ahead.text[start : start + opening.size]
        fenced = opens_fence(ahead, start, run, final=final)
        if fenced is None:
            return False
        if fenced:
            self._fence = run
        if fenced or not opening.closer:
            ahead.advance(start + opening.size)
            return True
        end = self._closers.find(start + opening.size, opening.closer, final=final)
        if end == NOT_YET:
            # Whether it closes or not, text in front of the next shape stays as it is.
            unsure = _OPENER.search(ahead.text, max(ahead.done, start + opening.plain))
            ahead.settle(len(ahead.text) if unsure is None else unsure.start())
            return False
        if end == NEVER:
            ahead.advance(start + opening.plain)
            return True
        self._closer = opening.closer
        self._closer_mark = ahead.mark(end - len(opening.closer))
        ahead.advance(start + opening.size)
        return True

    # What goes.

    def _marker(self, start: int, end: int) -> bool:
        ahead = self._ahead
        written = ahead.text[start:end]
        marker = without_frame(written)
        items = items_of(marker, self._index)
        kept = without_unknown(marker, items) if self._inline and any(item.keys for item in items) else ""
        if kept == written or (kept and start >= ahead.done):
            ahead.remove(start, end, instead=kept)
            ahead.advance(start + len(kept))
        else:
            extent = marker_extent(ahead, self._view(), start, end, framed=marker != written, final=self._final)
            if extent is None or not self._remove(*extent):
                return False
        self._report(items)
        return True

    def _report(self, items: list[Item]) -> None:
        for item in items:
            if not item.keys:
                self.unknown[item.written] = None
            elif len(self.keys) < len(self._index):
                self.keys.update(dict.fromkeys(item.keys))

    def _remove_tag(self, start: int, end: int) -> bool:
        extent = tag_extent(self._ahead, self._view(), start, end)
        return extent is not None and self._remove(*extent)

    def _remove(self, start: int, end: int) -> bool:
        ahead = self._ahead
        first = max(start, ahead.done)
        if end <= first:
            # All of it was certain already, which takes a chain of begun shapes longer than any look.
            ahead.advance(end)
            return True
        instead = instead_of(ahead.text, first, end, final=self._final)
        if instead is None:
            return False
        ahead.remove(first, max(first, end), instead=instead)
        ahead.resume(start, behind=first + len(instead) if instead else first)
        before, following = ahead.text[max(0, first - 2) : first], ahead.text[first : first + 1]
        if self._closer == "$" and before[-1:] == "$" and before != "\\$" and unfit_for_dollar(following):
            self._closer = ""
        self._at_start = ahead.only_blank_before(ahead.pos)
        return True
