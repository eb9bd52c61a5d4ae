r"""What makes a link of a marker: a target behind it, or a definition of its name. Both are the model's, and go.

* A **target** is ``(…)`` directly behind the marker, as Markdown reads it: a destination without white space, or in
  ``<…>``, which may be empty, and a title in quotes or brackets.
* A **definition** is a line that begins with the marker, a colon, a destination that looks like an address, and a
  title if there is one, up to the end of the line. An address has a ``/``, ``#``, ``\`` or ``&``, a colon inside, or
  ``www.`` in front, or stands in ``<…>``. In front of the marker may stand white space, and what makes a quote or a
  list: ``>``, ``-``, ``1.``. The destination may stand on the next line.

Here a look finds FOUND where it goes, and NONE where it is prose for every reader of Markdown: ``(as of 2024)``,
``: Books can be returned.`` BROKEN says that it may be a link although it is no address or no whole one, as ``: Yes.``,
or be one once something in it is removed; a space behind the marker then keeps the two apart, and nothing is lost. So
it is with a target that is longer than a look, too.
"""

from __future__ import annotations

import re

from llama_index_grounded.synthesis.keys import DASH, SEPARATORS
from llama_index_grounded.synthesis.lookahead import LIMIT, MORE, NONE, Hit, Outcome, View

# Markdown ends a destination at a blank or a control character alone, not at any white space.
_ENDS = r"\x00-\x20\x7f"
_OPENERS = r"<\[【［"
# An alternative for each first character, so that a failure is never tried in two ways.
_PLAIN = rf"[^{_ENDS}()\\]|\\(?:[^{_ENDS}]|(?=[{_ENDS}]))"
_BALANCED = rf"(?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN}|\((?:{_PLAIN})*\))*\))*\))*"
_ANGLE = r"<(?:[^<>\\\r\n]|\\[^\r\n])*"
_TITLE = r"(?:\"(?:[^\"\\\r\n]|\\[^\r\n])*\"|'(?:[^'\\\r\n]|\\[^\r\n])*'|\((?:[^()\\\r\n]|\\[^\r\n])*\))"
_TITLE_BEGUN = (
    r"(?:\"(?:[^\"\\\r\n]|\\[^\r\n])*(?:\\|\")?|'(?:[^'\\\r\n]|\\[^\r\n])*(?:\\|')?"
    r"|\((?:[^()\\\r\n]|\\[^\r\n])*(?:\\|\))?)"
)
# All of them, so that where something else is missing behind them, no part of them is tried.
_BLANKS = r"[ \t]*(?![ \t])"
# A line that begins with anything else may be no part of the paragraph.
_LEAD = rf"{_BLANKS}(?:\r?\n[ \t]*(?=[A-Za-z/]))?"
_GAP = rf"(?:[ \t]+(?![ \t])|{_BLANKS}\r?\n[ \t]*)"
_SPACE = rf"{_BLANKS}(?:\r?\n?{_BLANKS})?"

_TARGET = re.compile(rf"\({_LEAD}(?:{_ANGLE}>|(?!<){_BALANCED})(?:{_GAP}{_TITLE})?[ \t]*(?:\r?\n[ \t]*)?\)")
# Some readers allow blanks in a destination, so that an address is no prose, whatever follows it.
_PROSE = re.compile(rf"\([ \t]*[^\s:/\\&()>{_OPENERS}]+{_GAP}(?=[^\s\"'(){_OPENERS}])")
_BEGUN = rf"{_SPACE}(?:{_ANGLE}(?:\\|>)?|(?!<)[^{_ENDS}]*)(?:{_SPACE}{_TITLE_BEGUN})?{_SPACE}"
_TARGET_BEGUN = re.compile(rf"\({_BEGUN}")

_ADDRESS = rf"(?:(?=[^{_ENDS}]*(?:[/#\\&]|:[^{_ENDS}]))|(?=[Ww]{{3}}\.))"
_WORD = rf"[^>\\{_ENDS}{_OPENERS}]+"
_LINE_END = r"[ \t]*(?:(?=[\r\n])|\Z)"
_DEFINITION = re.compile(rf":{_LEAD}(?:{_ANGLE}>|(?!<){_ADDRESS}[^{_ENDS}]+)(?:{_GAP}{_TITLE})?{_LINE_END}")
_REMARK = re.compile(
    rf":{_BLANKS}(?:\r?\n{_BLANKS})?{_WORD}[ \t]+(?=[^\"'({_ENDS}{_OPENERS}])|:[ \t]*(?:\Z|\r?\n{_LINE_END})"
)
_DEFINITION_BEGUN = re.compile(f":{_BEGUN}")

_LEAD_OF_LINE = 256
_CONTAINERS = re.compile(r"(?:\s|>|[-*+:](?=\s)|[0-9]{1,9}[.)](?=\s))*")
_LIKE_ITEM = rf"(?:[0-9]+†)?s\s*[0-9]+(?:\s*{DASH}\s*(?:s\s*)?[0-9]+)?"
_LIKE_SEPARATOR = rf"\s*(?:[{SEPARATORS}](?:\s*(?:and|ve|&))?|and|ve)\s*"
_LIKE = re.compile(rf"\[\s*{_LIKE_ITEM}(?:{_LIKE_SEPARATOR}{_LIKE_ITEM})*\s*\]", re.IGNORECASE)
_LIKE_BEGUN = re.compile(rf"\[(?:[\s0-9†{SEPARATORS}andves]|{DASH})*", re.IGNORECASE)


def match_target(view: View, at: int) -> Hit:
    """Look whether the target of a link stands at `at`, behind a marker."""
    if view.text[at : at + 1] not in ("", "("):
        return NONE
    return _look(view.clip(at), at, _TARGET, _PROSE, _TARGET_BEGUN)


def match_definition(view: View, start: int, at: int) -> Hit:
    """Look whether what follows at `at` makes a definition of the bracket at `start`."""
    if view.text[start] != "[" or view.text[at : at + 1] not in ("", ":") or not _begins_line(view.text, start):
        return NONE
    return _look(view.clip(at), at, _DEFINITION, _REMARK, _DEFINITION_BEGUN)


def match_namesake(view: View, start: int) -> Hit:
    """Look whether a line begins with a bracket that is no marker, and whose definition would be one of a marker.

    Markdown folds letters and white space in such names: ``[ſ1]`` and ``[S1 AND S2]`` define ``[S1]``, ``[S1 and S2]``.
    """
    if view.text[start] != "[" or not _begins_line(view.text, start):
        return NONE
    view = view.clip(start)
    like = _LIKE.match(view.text, start, view.stop)
    if like is not None:
        return Hit(Outcome.FOUND, like.end())
    begun = _LIKE_BEGUN.match(view.text, start, view.stop)
    reach = start if begun is None else begun.end()
    return MORE if reach == view.stop and view.more else view.broken_at(reach)


def is_image(text: str, start: int) -> bool:
    """Return whether the bracket at `start` would be that of an image."""
    if text[start - 1 : start] != "!":
        return False
    before = text[max(0, start - 1 - LIMIT) : start - 1]
    backslashes = len(before) - len(before.rstrip("\\"))
    return backslashes % 2 == 0 and backslashes < LIMIT


def _look(view: View, at: int, goes: re.Pattern[str], stays: re.Pattern[str], begun: re.Pattern[str]) -> Hit:
    if at == view.stop:
        return MORE if view.more else NONE
    for pattern, outcome in ((goes, Outcome.FOUND), (stays, Outcome.NONE)):
        found = pattern.match(view.text, at, view.stop)
        # What is whole at the end of the text alone is whole where the answer ends.
        if found is not None and (found.end() < view.stop or view.last or pattern is _TARGET):
            return Hit(outcome, found.end())
    first = begun.match(view.text, at, view.stop)
    return MORE if first is not None and first.end() == view.stop and view.more else Hit(Outcome.BROKEN, at)


def _begins_line(text: str, start: int) -> bool:
    """Return whether a line begins at `start`, also in a quote or a list."""
    lead = text[max(0, start - _LEAD_OF_LINE) : start]
    line = lead[max(lead.rfind("\n"), lead.rfind("\r")) + 1 :]
    return _CONTAINERS.fullmatch(line) is not None
