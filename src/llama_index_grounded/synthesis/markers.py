"""Inline markers, ``[S1]``, ``[S1, S2]``, ``[S1-S3]``, ``【1†S1】``: their shape, and what is left of them.

A marker is an opening bracket ``[``, ``【`` or ``［``, one or more items, and the closing bracket of the same kind. An
item is ``S`` or ``s``, at most one space, and characters for which ``str.isnumeric()`` holds, or a range of two such
items, the second with or without its ``S``; OpenAI's ``1†`` may stand in front. Items are divided by ``,`` ``;`` ``、``
``،`` ``，`` ``；`` ``&``, "and" or "ve" (", and" too), with white space and at most one line end around. What an item
stands for is `keys.KeyIndex`'s to say. A marker has at most `lookahead.LIMIT` characters. ``[3]`` and ``[see note]``
are text.

What a model copies of the headings of a prompt are markers too: ``[S1 | Document: Returns | Section: Window]`` is a
marker with a tail, of which nothing stays, and ``[/S1]`` the end of a block, which names nothing. Behind the bar of a
tail stands a label of letters, digits and spaces with a colon; the tail has no brackets and ends on its line.

Markers are plain text in a link or an image: in its text, in its target, or as its text, ``[S1](https://…)``. A link's
text is taken to stand on one line, to hold few brackets in brackets, and to go on for at most 256 characters before
and behind the marker; its target holds no white space, save in front of a quoted title.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from llama_index_grounded.synthesis.keys import DASH, NUMERAL, SEPARATORS, KeyIndex, without_prefix
from llama_index_grounded.synthesis.lookahead import LIMIT, MORE, NONE, Hit, Outcome, View
from llama_index_grounded.synthesis.tags import match_tag

OPEN = r"[\[【［]"
CLOSERS = {"[": "]", "【": "】", "［": "］"}

_GAP = r"[^\S\n]?"
_SPACE = r"[^\S\n]*(?:\n[^\S\n]*)?"
_ITEM = rf"(?:[0-9]+†)?[Ss]{_GAP}{NUMERAL}(?:{_GAP}{DASH}{_GAP}(?:[Ss]{_GAP})?{NUMERAL})?"
_SEPARATOR = rf"{_SPACE}(?:[{SEPARATORS}](?:{_SPACE}(?:and|ve|&))?|and|ve){_SPACE}"
_ITEMS = rf"(?:/{_SPACE})?{_ITEM}(?:{_SEPARATOR}{_ITEM})*{_SPACE}"
_LABEL = r"\|[^\S\n]*[^\W\d_][\w ]{0,31}"
_VALUE = r"[^\[\]【】［］\n]*"
_GROUP = re.compile(rf"{OPEN}{_SPACE}{_ITEMS}(?:{_LABEL}:{_VALUE})?[\]】］]")
_PART = rf"(?:[0-9]+†?)?(?:[Ss](?:{_GAP}{NUMERAL}(?:{_GAP}{DASH}(?:{_GAP}(?:[Ss]{_GAP})?(?:{NUMERAL})?)?)?|{_GAP})?)?"
_BEGUN = re.compile(rf"{OPEN}{_SPACE}(?:/{_SPACE})?(?:{_ITEM}{_SEPARATOR})*{_PART}{_SPACE}(?:an?|v)?")
_TAIL_BEGUN = re.compile(rf"{OPEN}{_SPACE}{_ITEMS}(?:{_LABEL}(?::{_VALUE})?|\|[^\S\n]*)")
_ONE_ITEM = re.compile(_ITEM)
_NUMERALS = re.compile(rf"[Ss]{_GAP}({NUMERAL})|{DASH}{_GAP}({NUMERAL})")

_LINK_TEXT = 256
_NESTED = 3
_PAIR = re.compile(r"\[[^\[\]]*\]")
_FLAT = r"(?:[^\[\]\n]|\[[^\[\]\n]*\])*"
_BALANCED = re.compile(rf"(?:[^\[\]\n]|\[{_FLAT}\])*")
_WITHOUT_SPACE = r"(?:[^\s()]|\([^\s()]*\))*"
_TARGET = re.compile(
    rf"\([ \t]*(?:<[^<>\n]*>|{_WITHOUT_SPACE})(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ \t]*\)",
)
_TARGET_BEGUN = re.compile(
    rf"\([ \t]*(?:<[^<>\n]*>?|{_WITHOUT_SPACE}(?:\([^\s()]*)?)(?:[ \t]+(?:\"[^\"\n]*\"?|'[^'\n]*'?)?)?[ \t]*"
)


class Item(NamedTuple):
    """One item of a marker."""

    written: str
    keys: tuple[str, ...]
    """The keys it stands for; none if it is unknown."""
    start: int
    stop: int


def match_marker(view: View, start: int) -> Hit:
    """Look whether a marker stands at `start`, where the text has an opening bracket."""
    view = view.clip(start)
    text, stop = view.text, view.stop
    closed = text.find(CLOSERS[text[start]], start, stop) >= 0
    group = _GROUP.match(text, start, stop) if closed else None
    if group is not None:
        same = text[group.end() - 1] == CLOSERS[text[start]]
        bar = text.find("|", start, group.end())
        items = _NUMERALS.finditer(text, start, group.end() if bar < 0 else bar)
        numeric = all((item[1] or item[2]).isnumeric() for item in items)
        return Hit(Outcome.FOUND, group.end()) if same and numeric else NONE
    begun = _TAIL_BEGUN.match(text, start, stop) or _BEGUN.match(text, start, stop)
    reach = start if begun is None else begun.end()
    if reach == stop and view.more:
        return MORE
    return view.broken_at(reach)


def without_frame(marker: str) -> str:
    """Return the marker without the tail of a heading; nothing of the end of a block, which cites nothing.

    Example:
        >>> without_frame("[S1 | Document: Returns]"), without_frame("[/S1]"), without_frame("[S1]")
        ('[S1]', '', '[S1]')
    """
    if marker[1:].lstrip()[:1] == "/":
        return ""
    head, bar, _ = marker.partition("|")
    return f"{head.rstrip()}{marker[-1]}" if bar else marker


def items_of(marker: str, index: KeyIndex) -> list[Item]:
    """Return the items of a marker in their order."""
    found: list[Item] = []
    for item in _ONE_ITEM.finditer(marker):
        written = without_prefix(item[0])
        found.append(Item(written, index.lookup(written), item.start(), item.end()))
    return found


def without_unknown(marker: str, items: list[Item]) -> str:
    """Return a marker that holds at least one known item, without the others.

    Each item that stays keeps the separator in front of it, unless it is the first now.
    """
    kept = [place for place, item in enumerate(items) if item.keys]
    if len(kept) == len(items):
        return marker
    parts = [marker[: items[0].start]]
    for place in kept:
        start = items[place].start if place == kept[0] else items[place - 1].stop
        parts.append(marker[start : items[place].stop])
    return "".join([*parts, marker[items[-1].stop :]])


def in_link(view: View, start: int, end: int) -> bool | None:
    """Return whether the marker at `start` is part of a link; None if text that has not arrived decides it."""
    looks = [_target(view, end).outcome, _in_target(view, start, end), _in_text(view, start, end)]
    if Outcome.FOUND in looks:
        return True
    return None if Outcome.MORE in looks else False


def _target(view: View, at: int) -> Hit:
    """Look whether a link's target stands at `at`."""
    view = view.clip(at)
    if at == view.stop:
        return MORE if view.more else NONE
    target = _TARGET.match(view.text, at, view.stop)
    if target is not None:
        return Hit(Outcome.FOUND, target.end())
    begun = _TARGET_BEGUN.match(view.text, at, view.stop)
    return MORE if begun is not None and begun.end() == view.stop and view.more else NONE


def _in_target(view: View, start: int, end: int) -> Outcome:
    """Look whether a link's target that began before `start` holds the marker."""
    opening = view.text.rfind("](", max(0, start - LIMIT), start)
    if opening < 0 or "\n" in view.text[opening:start]:
        return Outcome.NONE
    target = _target(view, opening + 1)
    return Outcome.NONE if target.outcome is Outcome.FOUND and target.end < end else target.outcome


def _in_text(view: View, start: int, end: int) -> Outcome:
    """Look whether a bracket that is open before `start` becomes a link's text behind the marker."""
    open_before = _open_brackets(view.text[max(0, start - _LINK_TEXT) : start])
    if not open_before:
        return Outcome.NONE
    ahead, at = _without_tags(view, end), 0
    rest, more = ahead.text, ahead.more
    while open_before:
        inside = _BALANCED.match(rest, at)
        at = at if inside is None else inside.end()
        if rest[at : at + 1] != "]":
            return Outcome.MORE if more and "\n" not in rest[at:] else Outcome.NONE
        at += 1
        target = _target(ahead, at)
        if target.outcome is not Outcome.NONE:
            return target.outcome
        open_before -= 1
    return Outcome.NONE


def _without_tags(view: View, start: int) -> View:
    """Return a view of the text that will follow `start` when the tags in it are gone."""
    limit = start + _LINK_TEXT
    more, last = view.more and view.stop < limit, view.last and view.stop <= limit
    view = View(view.text, min(view.stop, limit), more=more, last=last, openers="")
    parts: list[str] = []
    angle = view.text.find("<", start, view.stop)
    while angle >= 0:
        tag = match_tag(view, angle)
        if tag.outcome is Outcome.MORE:
            view = View(view.text, angle, more=True, last=False, openers="")
            break
        found = tag.outcome is Outcome.FOUND
        parts.append(view.text[start : angle if found else angle + 1])
        start = tag.end if found else angle + 1
        angle = view.text.find("<", start, view.stop)
    rest = "".join([*parts, view.text[start : view.stop]])
    return View(rest, len(rest), more=view.more, last=view.last, openers="")


def _open_brackets(text: str) -> int:
    """Return how many brackets are open at the end of the text's last line, of at most _NESTED."""
    line = text[text.rfind("\n") + 1 :]
    opened = closed = 0
    for bracket in reversed(re.findall(r"[\[\]]", _PAIR.sub("", line)) if "[" in line else []):
        if bracket == "]":
            closed += 1
        elif closed:
            closed -= 1
        elif (opened := opened + 1) == _NESTED:
            break
    return opened
