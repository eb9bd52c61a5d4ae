r"""Split an answer into sentences, with their places, and say which of them claim something.

The rules, for English, Turkish, Chinese, Japanese, Arabic and Urdu:

1. A blank line, a list item, a heading, a quoted line (``>``) and a table row begin a new part; a fenced block is one
   part. Other line ends do not split: texts are wrapped.
2. ``.``, ``!``, ``?``, ``…`` and ``؟ ۔ ؛ ।`` end a sentence where white space follows, ``。！？`` anywhere. Closing
   quote marks and brackets belong to the sentence that they close, and so do citation markers ("… 14 days. [S1]").
3. A full stop does not end a sentence behind an abbreviation ("Dr.", "e.g.", "örn."), an initial, or one or two digits
   in front of a month or a small letter ("1. Mart", "3. gün"). "etc." and "vb." may end one, in front of a capital.
   After ``…``, and after a quoted question, a small letter goes on with the sentence.
4. Nothing splits within a code span.

Parts do not overlap, and every character that is not white space is in one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from llama_index_grounded.checks.empty_talk import (
    is_attribution,
    is_bare_heading,
    is_empty_talk,
    is_lead_in,
    is_question,
    says_number_or_no,
)
from llama_index_grounded.synthesis.lookahead import Outcome, View
from llama_index_grounded.synthesis.markers import CLOSERS, match_marker
from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_words import MONTH_NAMES

__all__ = ["Part", "claims_something", "sentences", "wording"]

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_ITEM = r"[ \t]*(?:[-*+•·–][ \t]+|\(?[0-9]{1,3}[.)](?:[ \t]+|$)|\(?[A-Za-z]\)[ \t]+)"
_HEADING = r"[ \t]{0,3}\#{1,6}(?:[ \t]|$)"
_ROW = r"[ \t]*\|"
_BEGINS = re.compile(rf"{_ITEM}|{_ROW}|{_HEADING}|[ \t]*>")
_ALONE = re.compile(rf"{_ROW}|{_HEADING}")
_PREFIX = re.compile(rf"(?:[ \t]*>)*(?:{_ITEM}|{_HEADING})?[ \t]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STOPS = ".!?…؟۔؛।"
# Looking behind keeps a long run of stops or backticks from being tried from each of its characters.
_END = re.compile(
    rf"(?P<code>(?<!`)`+[^`]+`+)"
    rf"|(?P<wide>(?:[。！？｡]|(?<=[\u3040-\u9fff])[!?]))"
    rf"|(?<![{_STOPS}])(?P<stop>[{_STOPS}]+)(?P<closing>[\"'”’»›)\]*_]*)(?=[\s\[【［]|\Z)"
)
_AFTER_WIDE = re.compile(r"[。！？｡!?\"'”’»›)\]*_」』）】]*")
_OPENER = re.compile("[" + re.escape("".join(CLOSERS)) + "]")
_BEFORE = re.compile(r"[\w.]*\Z")
_REACH = 24
_SPACE = re.compile(r"\s*")
_OPENING = re.compile(r"[\s\"'“‘«(\[*_]*")
_WORD = re.compile(r"\w*")
_DAY = re.compile(r"[0-9]{1,2}")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TITLES = _set(
    "dr mr mrs ms prof st sr jr e.g i.e cf approx dept inc ltd co corp col sgt capt rev hon viz vs"
    " örn bkz sn doç yrd av öğr gör arş uzm hz şti"
)
_BEFORE_NUMBERS = _set(
    "no nos nr fig figs art sec ch vol p pp s jan feb mar apr jun jul aug sep sept oct nov dec mad md cad sok tel"
)
_AT_TIMES_LAST = _set("etc al vb vd v.b a.m p.m m.ö m.s")


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, or what stands for one: a list item, a heading, a table row, a fenced block."""

    start: int
    """First character in the text."""
    end: int
    """One past its last character."""
    text: str
    """The characters in between; neither the first nor the last is white space."""


def sentences(text: str) -> list[Part]:
    """Split a text into sentences, in linear time; nothing in it makes this raise.

    Example:
        >>> [part.text for part in sentences("Dr. Kaya waits 2.5 days. [S1] Örn. 1. Mart günü [S2]. Bitti.")]
        ['Dr. Kaya waits 2.5 days. [S1]', 'Örn. 1. Mart günü [S2].', 'Bitti.']
    """
    return [part for start, end in _blocks(text) for part in _parts(text, start, end)]


def wording(sentence: str) -> str:
    """Return what a sentence says: without its list sign, its heading sign and its citation markers.

    Example:
        >>> wording("2. Books are due after 14 days [S1].")
        'Books are due after 14 days .'
    """
    kept, done = list[str](), _prefix_end(sentence, 0, len(sentence))
    for start, end in _markers(sentence, done):
        kept.append(sentence[done:start])
        done = end
    return "".join([*kept, sentence[done:]]).strip()


def _markers(sentence: str, done: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the citation markers behind a place; they do not overlap."""
    for opener in _OPENER.finditer(sentence, done):
        end = _marker_end(sentence, opener.start(), len(sentence))
        if opener.start() >= done and end > opener.start():
            yield opener.start(), end
            done = end


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of what no sentence crosses: paragraphs, list items, headings, table rows, fenced blocks."""
    begun, fence = 0, ""
    for line in _LINE.finditer(text):
        start, end = line.span()
        ruler = _FENCE.match(text, start, end)
        if fence:
            if ruler is not None and ruler[1].startswith(fence) and not text[ruler.end() : end].strip():
                yield begun, end
                begun, fence = end, ""
            continue
        if ruler is not None or not line[0].strip() or _BEGINS.match(text, start, end):
            yield begun, start
            begun, fence = start, "" if ruler is None else ruler[1]
        if _ALONE.match(text, start, end):
            yield start, end
            begun = end
    yield begun, len(text)


def _parts(text: str, start: int, end: int) -> Iterator[Part]:
    """Yield the sentences of one block."""
    for stop in (*_stops(text, start, end), end):
        inner = text[start:stop].strip()
        if inner:
            first = text.index(inner[0], start, stop)
            yield Part(first, first + len(inner), inner)
        start = stop


def _stops(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where the sentences of one block end, the last one perhaps left out."""
    at = end if _FENCE.match(text, start, end) else _prefix_end(text, start, end)
    while at < end:
        found = _END.search(text, at, end)
        if found is None:
            return
        at = found.end()
        if found["code"]:
            continue
        if found["wide"]:
            at = _span_end(_AFTER_WIDE, text, at, end)
        stop = _behind_markers(text, at, end)
        if found["wide"] or stop == end or ((stop > at or text[at].isspace()) and _ends(text, found, stop, end)):
            yield stop
            at = stop


def _ends(text: str, found: re.Match[str], stop: int, end: int) -> bool:
    """Say whether a sentence ends at stops that white space or a marker follows."""
    at = _span_end(_OPENING, text, stop, end)
    if at == end:
        return True
    small = text[at].islower()
    if found["stop"] == ".":
        return not _goes_on(text, found.start(), at, small=small)
    if found["stop"][-1] in ".…":
        return not small
    return not (small and found["closing"])


def _goes_on(text: str, dot: int, at: int, *, small: bool) -> bool:
    """Say whether the word in front of a full stop is an abbreviation or an ordinal that the text goes on from."""
    before = _BEFORE.search(text[max(0, dot - _REACH) : dot])
    written = "" if before is None else before[0]
    word, following = lower(written), lower(text[at : _span_end(_WORD, text, at, at + _REACH)])
    if _DAY.fullmatch(word):
        return small or following in MONTH_NAMES
    if word in _BEFORE_NUMBERS and following[:1].isdecimal():
        return True
    if word in _AT_TIMES_LAST:
        return not text[at].isupper()
    single = len(written) == 1 and written.isupper()
    return word in _TITLES or single or _INITIALS.fullmatch(word) is not None


def _span_end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    found = pattern.match(text, start, end)
    return start if found is None else found.end()


def _prefix_end(text: str, start: int, end: int) -> int:
    return _span_end(_PREFIX, text, start, end)


def _behind_markers(text: str, at: int, end: int) -> int:
    """Return where the citation markers that follow a place end; the place itself without any."""
    while True:
        opener = _span_end(_SPACE, text, at, end)
        close = _marker_end(text, opener, end)
        if close == opener:
            return at
        at = close


def _marker_end(text: str, at: int, end: int) -> int:
    if text[at : at + 1] not in CLOSERS or at >= end:
        return at
    hit = match_marker(View(text, end, more=False, last=True, openers=""), at)
    return hit.end if hit.outcome is Outcome.FOUND else at


# --- which sentences claim something ---------------------------------------------------------------

_EDGES = " \t\n\"'”’»›)]*_」』）】“‘«([「『（【"


def claims_something(sentence: str) -> bool:
    """Say whether a sentence states something that a source could support; when in doubt it does.

    False for headings and bold lines of one to four words without a verb, questions that only ask, greetings,
    pleasantries ("I hope this helps"), "Based on the sources:", a lead-in that ends with a colon, and what has no
    letter or digit beside its markers. None of these may hold a number, a negation or a citation marker, "Sources:
    [S1]" apart. By rules for English and Turkish, in `empty_talk`; in another language only the signs count.

    Example:
        >>> claims_something("Umarım yardımcı olur!"), claims_something("Books are due after 14 days.")
        (False, True)
        >>> claims_something("I hope this helps: the refund is free."), claims_something("I hope this helps [S1].")
        (True, True)
    """
    said = wording(sentence)
    bare = said.strip(_EDGES)
    if not any(map(str.isalnum, bare)):
        return False
    if any(_markers(sentence, 0)):
        # Who cites a source says that it says so, in whatever words.
        return not is_attribution(bare)
    if bare[-1] in "?？؟":
        return not is_question(bare)
    if _is_title(sentence, said, bare):
        return not is_bare_heading(bare)
    if says_number_or_no(bare):
        return True
    return not (is_empty_talk(bare) or (bare[-1] in ":：" and is_lead_in(bare)))


def _is_title(sentence: str, said: str, bare: str) -> bool:
    """Say whether a sentence is a heading, or a bold line that is no sentence."""
    if sentence.lstrip().startswith("|"):
        return False
    bold = said.startswith("**") and said.endswith("**") and not bare.endswith((".", "!", ":"))
    return bold or _span_end(_ALONE, sentence, 0, len(sentence)) > 0
