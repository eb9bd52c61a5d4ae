"""How much goes when something is removed, and what stays in its place.

A tag alone on its line takes the line with it, and so does a copied heading. A marker takes the blanks in front of it,
and brackets that hold nothing else. Where the neighbours would grow together into another piece of Markdown, one space
stays.
"""

from __future__ import annotations

import re

from llama_index_grounded.synthesis.lookahead import Lookahead, View
from llama_index_grounded.synthesis.tags import begins_autolink

_LINE_END = re.compile(r"\r?\n")
_JOINS = {"`": "`", "~": "~", "$": "$", "\\": "()[]$"}


def tag_extent(ahead: Lookahead, view: View, start: int, end: int) -> tuple[int, int] | None:
    """Return from where to where text goes with a tag; None if text that has not arrived decides it."""
    lead = ahead.blanks_start(start)
    if not ahead.opens_line(lead):
        return start, end
    edge = view.blanks_end(end)
    if view.more and view.text[edge : view.stop] in ("", "\r"):
        return None
    line_end = _LINE_END.match(view.text, edge, view.stop)
    return (start, end) if line_end is None else (lead, line_end.end())


def marker_extent(
    ahead: Lookahead, view: View, start: int, end: int, *, framed: bool, final: bool
) -> tuple[int, int] | None:
    """Return from where to where text goes with a marker; None if text that has not arrived decides it.

    What a model copied with its frame, a heading or the end of a block, goes as a tag does where it has a line.
    """
    line = tag_extent(ahead, view, start, end) if framed else (start, end)
    if line != (start, end):
        return line
    text = ahead.text
    if ahead.begun[-1:] == [start - 1] and text[start - 1] == text[start]:
        if end == len(text) and not final:
            return None
        if text[end : end + 1] == text[end - 1]:
            start, end = start - 1, end + 1
    lead = ahead.blanks_start(start)
    # A blank behind a dollar sign says that it opens no mathematics.
    return (start if text[lead - 1 : lead] == "$" else lead), end


def instead_of(text: str, start: int, end: int, *, final: bool) -> str | None:
    """Return what stays in place of the text that goes; None if text that has not arrived decides it."""
    joins = _JOINS.get(text[start - 1 : start], "")
    in_link = begins_autolink(text, start)
    if not joins and not in_link:
        return ""
    if end == len(text) and not final:
        return None
    following = text[end : end + 1]
    return " " if following and (following in joins or (in_link and not following.isspace())) else ""
