"""Takes away what makes a link of a marker, and tells the markers that are text of a link apart from the others.

A model that is shown no address has none to give: what stands behind a marker would lead its readers to where the
model, or a document that it believed, wants them. What is taken away leaves the marker to be judged again, as if it had
stood alone. Two things are held apart by a space: a marker and what may be read as a target or a definition, although
that is not clear; and a marker that stays and brackets behind it, ``[S1][note]``, which are one link where a line of
the answer defines the note.
"""

from __future__ import annotations

from llama_index_grounded.synthesis.lookahead import Hit, Lookahead, Outcome, View
from llama_index_grounded.synthesis.markers import CLOSERS, in_target, in_text
from llama_index_grounded.synthesis.targets import is_image, match_definition, match_namesake, match_target


class Unlinker:
    """Judges markers in the text of a scan.

    Each method answers with an `Outcome`: MORE where it needs text that has not arrived, BROKEN where it changed the
    text, so that the scan has to look again.
    """

    def __init__(self, ahead: Lookahead) -> None:
        """Work on what lies ahead."""
        self._ahead = ahead

    def marker(self, view: View, start: int, end: int, *, stays: bool) -> Outcome:
        """Judge a marker: FOUND where it is plain text in a link or an image, NONE where it is a marker.

        Args:
            view: What may be seen.
            start: Where the marker begins.
            end: Where it ends.
            stays: Whether it stays if it is a marker.
        """
        inside = in_target(view, start, end)
        if inside in (Outcome.FOUND, Outcome.MORE):
            return self._plain(start, end, inside)
        at = self.end_of(start, end)
        follows = match_target(view, at)
        image = is_image(view.text, start - (at > end))
        if follows.outcome is Outcome.FOUND and image:
            return self._plain(start, end, Outcome.FOUND)
        if follows.outcome is Outcome.NONE and at == end:
            follows = match_definition(view, start, end)
        if follows.outcome in (Outcome.MORE, Outcome.FOUND):
            return self._cut(at, follows)
        linked = in_text(view, start - (at > end), at)
        apart = follows.outcome is Outcome.BROKEN and (stays or linked is Outcome.FOUND)
        return self.keep_apart(at) if apart and linked is not Outcome.MORE else self._plain(start, end, linked)

    def namesake(self, view: View, start: int) -> Hit:
        """Judge a bracket that is no marker but may name one in a definition; behind one that does the scan goes on."""
        like = match_namesake(view, start)
        if like.outcome is not Outcome.FOUND:
            return like
        follows = match_definition(view, start, like.end)
        if follows.outcome is Outcome.BROKEN:
            self.keep_apart(like.end)
        elif follows.outcome in (Outcome.MORE, Outcome.FOUND):
            self._cut(like.end, follows)
        if follows.outcome is not Outcome.MORE:
            self._ahead.judged(start, like.end, like.end, stays=True)
        return follows if follows.outcome is Outcome.MORE else like

    def end_of(self, start: int, end: int) -> int:
        """Return the end of a marker, with the brackets that hold nothing else."""
        text = self._ahead.text
        around = self._ahead.begun[-1:] == [start - 1] and text[start - 1] == text[start]
        return end + 1 if around and text[end : end + 1] == CLOSERS[text[start]] else end

    def bracket(self, start: int) -> bool:
        """Keep the bracket at `start` apart from a marker that stays right in front of it; False if there is none."""
        ahead = self._ahead
        beside = start == ahead.behind and ahead.stays >= 0 and ahead.text[start] == "["
        return beside and self.keep_apart(start) is Outcome.BROKEN

    def keep_apart(self, at: int) -> Outcome:
        """Put a space between a marker and what stands at `at`."""
        if at < self._ahead.done:
            # It was certain already, which takes a chain of begun shapes longer than any look.
            return Outcome.NONE
        self._ahead.remove(at, at, instead=" ")
        return Outcome.BROKEN

    def _cut(self, at: int, follows: Hit) -> Outcome:
        first = max(at, self._ahead.done)
        if follows.outcome is Outcome.MORE or follows.end <= first:
            return Outcome.MORE if follows.outcome is Outcome.MORE else Outcome.NONE
        self._ahead.remove(first, follows.end, instead="")
        return Outcome.BROKEN

    def _plain(self, start: int, end: int, linked: Outcome) -> Outcome:
        if linked is Outcome.FOUND:
            self._ahead.judged(start, end, end, stays=False)
        return linked
