"""Fold a text for comparison, and know where each folded character came from.

Folded: white space runs (all of it beside Han and kana); what can not be seen (soft hyphens, zero-width spaces, bidi
marks); kinds of quote marks and of dashes; "…", "≥", "≤" and "...", ">=", "<="; NFC and NFD; ligatures, full-width,
mathematical and positional forms. A hyphen at a line's end is dropped ("re-⏎turn" is "return") unless `agree` sees that
the other text has it.

Kept, because they change what is said: case, digits, signs, punctuation, ZWJ and ZWNJ, dotted and dotless i, single
against double quote marks (5' is not 5"), and forms that only look like others: "10²" is not "102", "½" is not "1/2",
"①", "№" and "™" are no "1", "No" and "TM".
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType

__all__ = ["Folded", "Wrap", "agree", "fold", "joined"]

Wrap = tuple[str, str]
"""The two halves of a word around a hyphen at a line's end."""

_AS_WRITTEN: Mapping[Wrap, str] = MappingProxyType({})
_DOUBLE = "“”„‟«»″〝〞❝❞「」『』"
_SINGLE = "‘’‚‛‹›′´ʼ"
_DASHES = "‐‑‒–—―−﹘﹣"
_FULL_WIDTH = {chr(wide): chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)}
_ONE_TO_ONE = _FULL_WIDTH | dict.fromkeys(_DOUBLE, '"') | dict.fromkeys(_SINGLE, "'") | dict.fromkeys(_DASHES, "-")
_TABLE = str.maketrans(_ONE_TO_ONE)
_INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
    r"\U000e0000-\U000e007f"
)
# A single plain space stays as it is, which leaves little to do in most texts, and so does a hyphen in front of one.
# Everything begins with one set of characters, because `re` then skips the others four times as fast.
_ANY = rf"[\s{_INVISIBLE}]"
_GAP = re.compile(
    rf"(?P<gap>[-\s{_INVISIBLE}](?:(?<=[^- ]){_ANY}*|(?<= ){_ANY}+|(?<=-)(?:{_ANY}{{2,}}|[^\S ]|[{_INVISIBLE}])))"
)
# White space beside Han and kana is a matter of setting: lines break anywhere, "30 天" is "30天".
_HAN = "\u3001-\u3011\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAS_HAN = re.compile(f"[{_HAN}]")
_LOOSE = rf"(?P<loose>(?<=[{_HAN}]){_ANY}+|{_ANY}+(?=[{_HAN}]))"
_FULL_STOPS = frozenset("，．；：！？（）％")
_SPACES = re.compile(r"\s+")
# Han, kana, and Thai to Myanmar: words are written without a space between them.
_UNSPACED = re.compile(rf"[{_HAN}\u0e00-\u109f\u1780-\u17ff]")
_SIGNS = {"…": "...", "≤": "<=", "≥": ">="}
_LINE_END = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]")
_HALF = 20
_SHORT = 8
# Tags of the Unicode database for the same letter or digit in another shape; <super>, <sub>, <circle>, <fraction> and
# <square> are left out, for they say something else.
_SAME = {"<font>", "<wide>", "<narrow>", "<small>", "<initial>", "<medial>", "<final>", "<isolated>", "<vertical>"}


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text that can say where it came from."""

    original: str
    text: str
    """The folded text."""
    wraps: frozenset[Wrap] = frozenset()
    """Words that a line's end broke at a hyphen."""
    # Runs of folded characters by their first one: where the run begins in the original, and where it ends if all its
    # characters came from the same place, else -1 for a run that is one to one.
    _at: list[int] = field(default_factory=list[int], repr=False)
    _start: list[int] = field(default_factory=list[int], repr=False)
    _end: list[int] = field(default_factory=list[int], repr=False)

    def came_from(self, index: int) -> tuple[int, int]:
        """Return start and end of the original characters that became one folded character.

        Example:
            >>> folded = fold("oﬃce")
            >>> folded.text, folded.came_from(2)
            ('office', (1, 2))
        """
        run = bisect_right(self._at, index) - 1
        if self._end[run] >= 0:
            return self._start[run], self._end[run]
        start = self._start[run] + index - self._at[run]
        return start, start + 1

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return start and end in the original of the folded characters from ``first`` up to, not with, ``last``."""
        return self.came_from(first)[0], self.came_from(last - 1)[1]

    def parts(self, index: int) -> bool:
        """Say whether two different original characters meet in front of a folded one."""
        return not 0 < index < len(self.text) or self.came_from(index - 1)[1] <= self.came_from(index)[0]


def fold(text: str, wraps: Mapping[Wrap, str] = _AS_WRITTEN) -> Folded:
    """Fold a text; linear in its length, and nothing in it makes this raise.

    Args:
        text: Any text.
        wraps: What stands between the halves of words that a line's end broke, where it is not to be dropped.

    Example:
        >>> fold("“21\u00a0days”\u2014not …").text
        '"21 days"-not ...'
    """
    plain, pattern = _prepared(text)
    pieces, at, start, end = list[str](), list[int](), list[int](), list[int]()
    broken, done, length = set[Wrap](), 0, 0
    for found in pattern.finditer(plain):
        new, wrap = _replacement(found, wraps)
        if wrap:
            broken.add(wrap)
        if new == found[0]:
            continue
        # A hyphen that stays comes from itself alone.
        first = found.start() + new.startswith("-")
        if first > done:
            pieces.append(plain[done:first])
            at.append(length)
            start.append(done)
            end.append(-1)
            length += first - done
        if new := new.removeprefix("-"):
            pieces.append(new)
            at.append(length)
            start.append(first)
            end.append(found.end())
            length += len(new)
        done = found.end()
    pieces.append(plain[done:])
    at.append(length)
    start.append(done)
    end.append(-1)
    return Folded(text, "".join(pieces), frozenset(broken), at, start, end)


def agree(one: Folded, other: Folded) -> tuple[Folded, Folded]:
    r"""Fold two texts again where one shows what belongs at a line's end of the other: a hyphen, or one and a space.

    Example:
        >>> source, quote = agree(fold("a non-\nbreaking space"), fold("non-breaking space"))
        >>> source.text
        'a non-breaking space'
    """
    wraps = dict(_shown(one, other)) | dict(_shown(other, one))
    return (fold(one.original, wraps), fold(other.original, wraps)) if wraps else (one, other)


def _shown(broken: Folded, other: Folded) -> Iterator[tuple[Wrap, str]]:
    for left, right in broken.wraps:
        for between in ("-", "- "):
            if f"{left}{between}{right}" in other.text:
                yield (left, right), between


def joined(before: str, after: str) -> bool:
    """Say whether two neighbours belong to one word, number or grapheme.

    Example:
        >>> joined("2", "1"), joined("退", "货"), joined("e", "\u0301")
        (True, False, True)
    """
    if before.isascii() and after.isascii():
        return (before.isalnum() or before == "_") and (after.isalnum() or after == "_")
    if after == "\u200d" or before == "\u200d" or unicodedata.category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or all("\U0001f1e6" <= char <= "\U0001f1ff" for char in (before, after)):
        return True
    if not (_in_word(before) and _in_word(after)):
        return False
    return (before.isnumeric() and after.isnumeric()) or not (_UNSPACED.match(before) or _UNSPACED.match(after))


def _in_word(char: str) -> bool:
    return char.isalnum() or char in "_\u200c" or unicodedata.category(char)[0] == "M"


def _prepared(text: str) -> tuple[str, re.Pattern[str]]:
    """Replace what is one to one, and choose the pattern that finds the rest."""
    if text.isascii():
        return text, _GAP
    alphabet = set(text)
    han = _HAS_HAN.search(text) is not None
    if han and not alphabet.isdisjoint(_FULL_STOPS):
        text = _SPACES.sub(_within_line, text)
    for char in alphabet & _ONE_TO_ONE.keys():
        text = text.replace(char, _ONE_TO_ONE[char])
    others = [char for char in alphabet - _ONE_TO_ONE.keys() if char > "\x7f" and not char.isspace()]
    shapes = "".join(sorted(char for char in others if _shape(char) != char))
    composed = unicodedata.is_normalized("NFC", text)
    if composed and not shapes:
        return text, _pattern("", "", composed=True, han=True) if han else _GAP
    return text, _pattern(shapes, "".join(sorted(filter(_extends, others))), composed=composed, han=han)


def _within_line(found: re.Match[str]) -> str:
    """Make a line's end beside full-width punctuation invisible: that takes no space, so none is there to fold."""
    text, start, end = found.string, found.start(), found.end()
    beside = text[max(0, start - 1) : start] + text[end : end + 1]
    free = _LINE_END.search(found[0]) and not _FULL_STOPS.isdisjoint(beside)
    return "\u200b" * len(found[0]) if free else found[0]


@lru_cache(maxsize=64)
def _pattern(shapes: str, marks: str, *, composed: bool, han: bool) -> re.Pattern[str]:
    """Find clusters too: a character of another shape with its marks and, in a text that is not in NFC, any other."""
    tail = f"[{re.escape(marks)}]" if marks else ""
    clusters = [f"[{re.escape(shapes)}]{tail and tail + '*'}"] if shapes else []
    clusters += [f"(?s:.){tail}+"] if marks and not composed else []
    return re.compile("|".join([*([_LOOSE] if han else []), _GAP.pattern, *clusters]))


def _replacement(found: re.Match[str], wraps: Mapping[Wrap, str]) -> tuple[str, Wrap | None]:
    old = found[0]
    if found.lastgroup == "loose":
        return "", None
    if found.lastgroup != "gap":
        return (_usual if len(old) <= _SHORT else _usual.__wrapped__)(old), None
    if old[0] in "-\u00ad" and _LINE_END.search(old) and (wrap := _halves(found)):
        number = wrap[0][-1].isnumeric() or wrap[1][0].isnumeric()
        return wraps.get(wrap, "-" if old[0] == "-" and number else ""), wrap
    return ("-" if old[0] == "-" else "") + (" " if any(map(str.isspace, old)) else ""), None


def _halves(found: re.Match[str]) -> Wrap | None:
    """Return what stands on both sides of a hyphen at a line's end, if both are words."""
    text, start, end = found.string, found.start(), found.end()
    left = "".join(takewhile(_in_word, reversed(text[max(0, start - _HALF) : start])))[::-1]
    right = "".join(takewhile(_in_word, text[end : end + _HALF]))
    return (unicodedata.normalize("NFC", left), unicodedata.normalize("NFC", right)) if left and right else None


@lru_cache(maxsize=8192)
def _usual(cluster: str) -> str:
    composed = unicodedata.normalize("NFC", cluster)
    return unicodedata.normalize("NFC", "".join(map(_shape, composed)))


@lru_cache(maxsize=8192)
def _extends(char: str) -> bool:
    """Say whether a character can join the one before it: marks, Hangul vowels and finals, kana voice marks."""
    return unicodedata.category(char)[0] == "M" or "\u1160" <= char <= "\u11ff" or char in "\uff9e\uff9f"


@lru_cache(maxsize=8192)
def _shape(char: str) -> str:
    """Return the usual form of a character, or the character where another form would say something else."""
    if char in _SIGNS:
        return _SIGNS[char]
    tag = unicodedata.decomposition(char).partition(" ")[0]
    if not tag.startswith("<"):
        return unicodedata.normalize("NFC", char).translate(_TABLE)
    usual = unicodedata.normalize("NFKC", char).translate(_TABLE)
    letters = tag == "<compat>" and char != "№" and usual.replace("°", "a").isalpha()
    return usual if (tag in _SAME and not any(map(str.isspace, usual))) or letters else char
