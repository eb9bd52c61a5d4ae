r"""Keys of a document's own, ``[\S1]`` as the renderers with bracketed headings show them, in an answer.

They are text of a document, whatever source has that key in the prompt. In an answer the backslash goes, and where the
rest would be a marker, ``[S1]``, its brackets become round ones, ``(S1)``: nobody who reads the answer later shall take
it for a citation, be it a display, a history or a second cleaning. In code, mathematics and links it stays as it is.
"""

from __future__ import annotations

import re

from llama_index_grounded.synthesis.lookahead import MORE, NONE, Hit, Outcome, View
from llama_index_grounded.synthesis.markers import CLOSERS, OPEN, match_marker

_SPACE = r"[^\S\n]*"
_DIGIT = r"[\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u24ff]"
_KEY = re.compile(rf"{OPEN}\\+{_SPACE}(?:/{_SPACE})?[Ss]{_SPACE}{_DIGIT}")
_BEGUN = re.compile(rf"{OPEN}\\+{_SPACE}(?:/{_SPACE})?(?:[Ss]{_SPACE})?")
# Round brackets behind these would be the target of a link, or mathematics.
_JOINING = ("]", "\\")


def match_escaped(view: View, start: int) -> Hit:
    """Look whether an escaped key stands at `start`, where the text has an opening bracket and a backslash.

    A hit ends behind the closing bracket of what would be a whole marker, else behind the first digit.
    """
    view = view.clip(start)
    key = _KEY.match(view.text, start, view.stop)
    if key is None:
        begun = _BEGUN.match(view.text, start, view.stop)
        return MORE if begun is not None and begun.end() == view.stop and view.more else NONE
    bare = view.text[start] + view.text[start + 2 : view.stop]
    hit = match_marker(View(bare, len(bare), more=view.more, last=view.last, openers=view.openers), 0)
    if hit.outcome is Outcome.FOUND:
        return Hit(Outcome.FOUND, start + hit.end + 1)
    if hit.outcome is Outcome.NONE:
        return Hit(Outcome.FOUND, key.end())
    # What interrupts it may go, and would leave a marker.
    return MORE if hit.outcome is Outcome.MORE else NONE


def as_text(written: str, before: str) -> str:
    r"""Return an escaped key as the text that it is; `before` is the character in front of it.

    Example:
        >>> as_text(r"[\S1]", " "), as_text(r"[\S1", " ")
        ('(S1)', '[S1')
    """
    bare = written[0] + written[2:]
    if bare[-1] not in CLOSERS.values():
        return bare
    return f"{' ' if before in _JOINING else ''}({bare[1:-1]})"
