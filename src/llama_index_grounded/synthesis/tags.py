"""Source tags that leaked into an answer: what is shaped like one, whole or cut.

* A **whole tag** is ``<source …>``, ``</source>`` or ``<source …/>``, also of our siblings ``sources`` and ``cite``, in
  any case and with white space as in ``</ SOURCE >``; a copied ``&gt;`` may stand for its ``>``. Its attributes are
  ``name="value"`` (quotes of either kind may hold ``>``), ``name=value``, or a bare key such as ``S1``. Other words
  make it prose: ``<source of the Nile>`` stays.
* A **closing tag** is never prose: ``</source`` goes also without its ``>``.
* A **cut tag** has at least one attribute and then something that is none: ``<source id="S1" Books may…``. It goes up
  to there, with the blanks behind it. A value whose quote does not close on its line is cut behind a key or, without
  one, behind the quote: ``<source id="S1 Books`` leaves ``Books``.
* At the **end of the answer** everything goes that a tag could begin with: ``</``, ``<so``, ``<source``,
  ``<source id=``. A lone ``<`` or ``<s`` stays, since it may be mathematics.
* At the **start of the answer** the tail of a tag goes: at least three letters of its name, or one of our attributes
  with a quoted value, up to its ``>``: ``ource>``, ``/source>``, ``source id="S1">``, ``id="S1" title="x">``. White
  space in front of a ``>`` that follows a mere name makes it prose (``source > target``).

An **autolink** ``<https://…>`` is no tag. A tag has at most `lookahead.LIMIT` characters. A look takes time linear in
the tag's length.
"""

from __future__ import annotations

import re

from llama_index_grounded.synthesis.lookahead import LIMIT, MORE, NONE, Hit, Outcome, View

_NAMES = ("source", "sources", "cite")
_BEGUN_NAMES = frozenset(name[:size] for name in _NAMES for size in range(len(name) + 1))
_NAME = r"[A-Za-z_][\w:.-]*"
_QUOTED = r"(?:\"[^\"\n]*\"|'[^'\n]*')"
_OPEN_QUOTE = r"(?:\"[^\"\n]*|'[^'\n]*)"
_BARE_VALUE = r"(?:[^\s\"'<>=`&]|&(?!gt;))"

_HEAD = re.compile(r"<\s*(/?)\s*([A-Za-z]*)")
_ATTRIBUTES = re.compile(
    rf"(?:\s+(?:{_NAME}\s*=\s*(?:{_QUOTED}|{_BARE_VALUE}+)|[Ss][0-9]+(?![^\s/>]|\s*=)))*",
)
_CLOSE = re.compile(r"\s*(?:/\s*)?(?:>|&gt;)")
# What may stand between whole attributes and the place where the text has not arrived; group 1 is an open quote.
_UNFINISHED = re.compile(
    rf"(?:\s+(?:{_NAME}\s*(?:=\s*(?:({_OPEN_QUOTE})|{_BARE_VALUE}*))?)?)?\s*(?:/\s*)?(?:&(?:gt?)?)?"
)
_OPEN_KEY = re.compile(r"[\"'](?:[Ss][0-9]+(?!\S))?")
_OWN_ID = re.compile(r"\sid\s*=\s*[\"']?S[0-9]+[\"']?(?![^\s/>])", re.IGNORECASE)

_TAIL_NAMES = sorted({name[cut:] for name in _NAMES for cut in range(len(name) - 2)}, reverse=True)
_TAIL_LABELS = ("id", "index", "title", "section", "updated")
_TAIL_MORE = rf"(?:\s+{_NAME}={_QUOTED})"
_TAIL = re.compile(
    rf"(?:/?(?:{'|'.join(_TAIL_NAMES)})(?:/?>|{_TAIL_MORE}+\s*/?>)"
    rf"|(?:{'|'.join(_TAIL_LABELS)})={_QUOTED}{_TAIL_MORE}*\s*/?>)",
    re.IGNORECASE,
)
_TAIL_BEGUN = re.compile(
    rf"/?([A-Za-z]*)(?:={_QUOTED})?{_TAIL_MORE}*"
    rf"(?:={_OPEN_QUOTE}?|\s+(?:{_NAME}(?:={_OPEN_QUOTE}?)?)?)?\s*/?"
)
_SPECIAL = re.compile(r"[\[【［`~$\\<]")

_AUTOLINK = re.compile(r"<https?:[^\s<>]*>", re.IGNORECASE)
_AUTOLINK_BEGUN = re.compile(r"<(?:h(?:t(?:t(?:p(?:s?(?::[^\s<>]*)?)?)?)?)?)?", re.IGNORECASE)


def match_tag(view: View, start: int) -> Hit:
    """Look whether a tag stands at `start`, where the text has a ``<``."""
    view = view.clip(start)
    head = _HEAD.match(view.text, start, view.stop)
    if head is None:
        return NONE
    closing, name, at = bool(head[1]), head[2].lower(), head.end()
    if name not in _BEGUN_NAMES:
        return NONE
    if at == view.stop and (view.more or view.last):
        return _at_the_end(view, certain=closing or len(name) > 1)
    if name not in _NAMES:
        return view.broken_at(at)
    if view.text[at : at + 1].isalnum() or view.text[at : at + 1] in ("_", "-"):
        return NONE
    return _attributes(view, at, closing=closing, name=name)


def match_tail(view: View, start: int) -> Hit:
    """Look whether the tail of a cut tag stands at `start`, the start of the answer."""
    view = view.clip(start)
    tail = _TAIL.match(view.text, start, view.stop)
    if tail is not None:
        return Hit(Outcome.FOUND, tail.end())
    begun = _TAIL_BEGUN.match(view.text, start, view.stop)
    if begun is None or begun.end() == start:
        return NONE
    name, at = begun[1].lower(), begun.end()
    known = (*_TAIL_NAMES, *_TAIL_LABELS)
    if name not in known and not (at == begun.end(1) and any(full.startswith(name) for full in known)):
        return NONE
    if at == view.stop and view.more:
        return MORE
    # Where it can't go on, what a value holds must be read as text.
    return NONE if _SPECIAL.search(begun[0]) else view.broken_at(at)


def match_autolink(view: View, start: int) -> Hit:
    """Look whether an autolink stands at `start`, where the text has a ``<``."""
    view = view.clip(start)
    link = _AUTOLINK.match(view.text, start, view.stop)
    if link is not None:
        return Hit(Outcome.FOUND, link.end())
    at = _end(_AUTOLINK_BEGUN, view.text, start, view.stop)
    return MORE if at == view.stop and view.more else NONE


def begins_autolink(text: str, end: int) -> bool:
    """Return whether the text that ends at `end` could go on to be an autolink."""
    start = text.rfind("<", max(0, end - LIMIT), end)
    return 0 <= start < end - 1 and _AUTOLINK_BEGUN.fullmatch(text, start, end) is not None


def _attributes(view: View, at: int, *, closing: bool, name: str) -> Hit:
    """Judge what follows a tag's name."""
    text, stop = view.text, view.stop
    end = _end(_ATTRIBUTES, text, at, stop)
    own = name == "source" and not closing and _OWN_ID.search(text, at, end) is not None
    close = _CLOSE.match(text, end, stop)
    if close is not None:
        return Hit(Outcome.FOUND, close.end(), own)
    unfinished = _UNFINISHED.match(text, end, stop)
    reach, quote = (end, -1) if unfinished is None else (unfinished.end(), unfinished.start(1))
    if reach == stop and view.more:
        return MORE
    if quote >= 0:
        return _open_quote(view, quote, reach, own=own)
    if reach == stop and view.last:
        return Hit(Outcome.FOUND, stop, own)
    if closing or "=" in text[at:end]:
        return Hit(Outcome.FOUND, end if closing else view.blanks_end(end), own)
    return view.broken_at(reach)


def _open_quote(view: View, quote: int, reach: int, *, own: bool) -> Hit:
    """Cut a tag in whose last value the quote never closes."""
    end = _end(_OPEN_KEY, view.text, quote, view.stop)
    if reach == view.stop and view.last and end == quote + 1:
        return Hit(Outcome.FOUND, view.stop, own)
    return Hit(Outcome.FOUND, view.blanks_end(end), own)


def _at_the_end(view: View, *, certain: bool) -> Hit:
    """Judge the beginning of a tag that reaches the end of the text."""
    if view.more:
        return MORE
    return Hit(Outcome.FOUND, view.stop) if certain else NONE


def _end(pattern: re.Pattern[str], text: str, at: int, stop: int) -> int:
    found = pattern.match(text, at, stop)
    return at if found is None else found.end()
