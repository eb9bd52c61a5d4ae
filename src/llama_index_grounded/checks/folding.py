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
from itertools import accumulate, takewhile
from types import MappingProxyType

__all__ = ["Folded", "Wrap", "agree", "fold", "in_word"]

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
# White space beside Han and kana is a matter of setting: lines break anywhere, "30 天" is "30天", quote marks apart.
_HAN = "\u3001-\u300b\u3010\u3011\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_HAN = re.compile(f"[{_HAN}]")
_LOOSE = re.compile(rf"{_ANY}(?:(?<=[{_HAN}]{_ANY}){_ANY}*|(?<!{_ANY}{_ANY}){_ANY}*(?=[{_HAN}]))")
_LINES = r"\n\r\x0b\x0c\x85\u2028\u2029"
_LINE_END = re.compile(f"[{_LINES}]")
# Full-width punctuation takes no space at a line's end, so none is there to fold.
_STOPS = "，．；：！？（）％"
_AT_STOP = re.compile(
    rf"\s(?:(?<=[{_STOPS}][{_LINES}])\s*|(?<=[{_STOPS}]\s)[^\S{_LINES}]*[{_LINES}]\s*"
    rf"|(?<!\s\s)(?:(?<=[{_LINES}])|[^\S{_LINES}]*[{_LINES}])\s*(?=[{_STOPS}]))"
)
# Where a text may be taken apart: nothing joins an ASCII letter or an ideograph to what stands in front of it.
_BLOCK = re.compile(r"(?s:.{400}.*?)(?=[!-~]|(?<=[\u4e00-\u9fff])[\u4e00-\u9fff]|\Z)|(?s:.+)")
_SIGNS = {"…": "...", "≤": "<=", "≥": ">="}
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
    _composed: _Composed | None = field(default=None, repr=False)
    seen: dict[str, bool] = field(default_factory=dict[str, bool], repr=False, compare=False)
    """Whether a cut goes through a quantity, by the text around it: kept here, `cuts` forgets it with the text."""

    def came_from(self, index: int) -> tuple[int, int]:
        """Return start and end of the original characters that became one folded character.

        Example:
            >>> folded = fold("oﬃce")
            >>> folded.text, folded.came_from(2)
            ('office', (1, 2))
        """
        run = bisect_right(self._at, index) - 1
        start, end = self._start[run], self._end[run]
        if end < 0:
            start += index - self._at[run]
            end = start + 1
        if self._composed is None:
            return start, end
        return self._composed.came_from(start)[0], self._composed.came_from(end - 1)[1]

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
    plain, pattern, composed = _prepared(text)
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
    return Folded(text, "".join(pieces), frozenset(broken), at, start, end, composed)


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


def in_word(char: str) -> bool:
    """Say whether a character can be part of a word: a letter, digit, low line, mark or ZWNJ."""
    return char.isalnum() or char in "_\u200c" or unicodedata.category(char)[0] == "M"


class _Composed:
    """A text in NFC, without the white space that Han and kana do not need; where it came from is found when asked.

    Whole texts are composed in blocks, which is quick; the places of the characters are worked out block by block.
    """

    def __init__(self, text: str, *, han: bool) -> None:
        self._han = han
        self._blocks = _BLOCK.findall(text)
        composed = [self._compose(block) for block in self._blocks]
        self.text = "".join(composed)
        self._at = [0, *accumulate(map(len, composed))]
        self._from = [0, *accumulate(map(len, self._blocks))]
        self._places: dict[int, list[tuple[int, int]]] = {}

    def came_from(self, index: int) -> tuple[int, int]:
        """Return start and end of the original characters that became one."""
        block = bisect_right(self._at, index) - 1
        if block not in self._places:
            self._places[block] = self._placed(self._blocks[block])
        start, end = self._places[block][index - self._at[block]]
        return self._from[block] + start, self._from[block] + end

    def _compose(self, block: str) -> str:
        block = unicodedata.normalize("NFC", block)
        if not self._han:
            return block
        return _LOOSE.sub("", _AT_STOP.sub("", block) if _LINE_END.search(block) else block)

    def _placed(self, block: str) -> list[tuple[int, int]]:
        places, new, start = list[tuple[int, int]](), list[str](), 0
        while start < len(block):
            end = start + 1
            while end < len(block) and _extends(block[end]):
                end += 1
            cluster = block[start:end]
            composed = unicodedata.normalize("NFC", cluster)
            kept = composed == cluster
            places += [(start + at, start + at + 1) if kept else (start, end) for at in range(len(composed))]
            new.append(composed)
            start = end
        text = "".join(new)
        for pattern in (_AT_STOP, _LOOSE) if self._han else ():
            for found in reversed(list(pattern.finditer(text))):
                del places[found.start() : found.end()]
            text = pattern.sub("", text)
        return places


def _prepared(text: str) -> tuple[str, re.Pattern[str], _Composed | None]:
    """Compose, replace what is one to one, and choose the pattern that finds the rest."""
    if text.isascii():
        return text, _GAP, None
    han = _IS_HAN.search(text) is not None
    composed = _Composed(text, han=han) if han or not unicodedata.is_normalized("NFC", text) else None
    if composed is not None:
        text = composed.text
    alphabet = set(text)
    for char in alphabet & _ONE_TO_ONE.keys():
        text = text.replace(char, _ONE_TO_ONE[char])
    others = [char for char in alphabet - _ONE_TO_ONE.keys() if char > "\x7f" and not char.isspace()]
    shapes = "".join(sorted(char for char in others if _shape(char) != char))
    marks = "".join(sorted(filter(_extends, others))) if shapes else ""
    return text, _pattern(shapes, marks) if shapes else _GAP, composed


@lru_cache(maxsize=64)
def _pattern(shapes: str, marks: str) -> re.Pattern[str]:
    """Find characters of another shape too, with their marks."""
    return re.compile(f"{_GAP.pattern}|[{re.escape(shapes)}]{marks and f'[{re.escape(marks)}]*'}")


def _replacement(found: re.Match[str], wraps: Mapping[Wrap, str]) -> tuple[str, Wrap | None]:
    old = found[0]
    if found.lastgroup != "gap":
        return (_usual if len(old) <= _SHORT else _usual.__wrapped__)(old), None
    if old[0] in "-\u00ad" and _LINE_END.search(old) and (wrap := _halves(found)):
        number = wrap[0][-1].isnumeric() or wrap[1][0].isnumeric()
        return wraps.get(wrap, "-" if old[0] == "-" and number else ""), wrap
    return ("-" if old[0] == "-" else "") + (" " if any(map(str.isspace, old)) else ""), None


def _halves(found: re.Match[str]) -> Wrap | None:
    """Return what stands on both sides of a hyphen at a line's end, if both are words."""
    text, start, end = found.string, found.start(), found.end()
    left = "".join(takewhile(in_word, reversed(text[max(0, start - _HALF) : start])))[::-1]
    right = "".join(takewhile(in_word, text[end : end + _HALF]))
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
