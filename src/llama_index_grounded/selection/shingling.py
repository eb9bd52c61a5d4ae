"""Texts as runs of three words, and which of many texts can be near to another one at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from llama_index_grounded.selection.paragraphs import may_be_unspaced
from llama_index_grounded.text.scripts import UNSPACED

__all__ = ["ROUNDING", "Hashes", "may_be_near", "shingle_hashes", "shingles"]

Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
_Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

ROUNDING = 1e-6
"""By how much a likeness may miss the threshold: both come from floats."""
_WORDS = 3
"""Words in a shingle."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_ANY_UNSPACED, _SPACED_WORD = re.compile(f"[{UNSPACED}]"), re.compile(r"\w+")
# In UTF-8: capitals become small letters, and what belongs to no word a blank.
_PLAIN = re.sub(rb"[^\w\x80-\xff]", b" ", bytes(range(256)).lower())
_MARKS = "–—’‘“”…•"
"""The usual marks that are no ASCII: without them, most English texts are ASCII."""
_FEW_MARKS = 16
"""Kinds of marks that are taken out one after the other; more of them in one look at each character."""
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
"""The constants of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators")."""
_HALF = np.uint64(32)


def shingles(text: str) -> frozenset[str]:
    """Return every three neighbouring words; a shorter text is one shingle, one without words has none.

    Case and punctuation do not matter. Characters of scripts without spaces are words.

    Example:
        >>> sorted(shingles("Return it, within days."))
        ['it within days', 'return it within']
    """
    words = _words(text)
    if len(words) < _WORDS:
        return frozenset([" ".join(words)] if words else [])
    return frozenset(map(" ".join, zip(*(words[start:] for start in range(_WORDS)), strict=False)))


def shingle_hashes(text: str) -> Hashes:
    """Return a 64-bit hash of each of a text's shingles, in the order of the text."""
    words = _words(text)
    if len(words) < _WORDS:
        return np.array([hash(tuple(words))] if words else [], dtype=np.int64)
    return _runs(_hashed(words))


def may_be_near(texts: Sequence[str], threshold: float) -> list[bool]:
    """Tell of each text whether it may be near to another one, with a look at all of them together.

    Most texts are near to none. Shingles are told apart by their places in a table; two that have one place count as
    the same, so that some texts that are near to none pass, and none is missed.

    Args:
        texts: In the order in which they are compared.
        threshold: Least Jaccard index of near texts, above 0 to 1.

    Returns:
        One value for each text.

    Example:
        >>> may_be_near(["return it within days", "call us any time", "return it within days!"], 0.8)
        [True, False, True]
    """
    table = _Table.of([_hashed(_words(text)) for text in texts])
    if table.places.size == 0:
        return [True] * len(texts)
    late = _late(table, threshold)
    found: list[bool] = (late | table.short | _share_with(late, table, threshold)).tolist()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The shingles of several texts, each by its place in a table with two to four places for each of them."""

    slots: int
    places: Hashes
    """Of all texts in a row. The last two of each text go on in the next one, and are not looked at."""
    starts: Hashes
    stops: Hashes
    """Where the places of each text begin and end."""
    short: _Flags
    """Texts that are one shingle, of fewer words."""

    @classmethod
    def of(cls, texts: Sequence[Hashes]) -> _Table:
        """Make it of the hashed words of each text; without places if there are hardly any words."""
        sizes = np.array([words.size for words in texts], dtype=np.int64)
        total = int(sizes.sum())
        slots = 1 << (2 * total).bit_length()
        places = _runs(np.concatenate(texts)) & (slots - 1) if total >= _WORDS else sizes[:0]
        starts = np.minimum(np.cumsum(sizes) - sizes, places.size)
        stops = np.maximum(np.cumsum(sizes) - _WORDS + 1, starts)
        short = (sizes > 0) & (sizes < _WORDS)
        return cls(slots=slots, places=places, starts=starts, stops=stops, short=short)

    def count(self, flags: _Flags) -> Hashes:
        """Count the places of each text that are flagged."""
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(flags)])
        counted: Hashes = before[self.stops] - before[self.starts]
        return counted

    def of_text(self, number: int) -> Hashes:
        """Return the places of one text."""
        return self.places[self.starts[number] : self.stops[number]]


def _late(table: _Table, threshold: float) -> _Flags:
    """Find the texts that may be near to an earlier one: at most ``1 - threshold`` of their shingles come first."""
    order = np.arange(table.places.size, dtype=np.int32)
    first = np.empty(table.slots, dtype=np.int32)
    # Of several values for one place the last stays (numpy.org, "Assigning values to indexed arrays").
    first[table.places[::-1]] = order[::-1]
    runs = table.stops - table.starts
    late: _Flags = (runs > 0) & (table.count(first[table.places] == order) <= runs - threshold * runs + ROUNDING)
    return late


def _share_with(late: _Flags, table: _Table, threshold: float) -> _Flags:
    """Find the texts that share ``threshold`` of their shingles, which may repeat in them, with the late ones."""
    theirs = np.zeros(table.slots, dtype=np.bool_)
    for number in np.flatnonzero(late).tolist():
        theirs[table.of_text(number)] = True
    shared = table.count(theirs[table.places])
    enough = np.zeros_like(late)
    for number in np.flatnonzero(shared).tolist():
        enough[number] = shared[number] >= threshold * np.unique(table.of_text(number)).size - ROUNDING
    return enough


def _hashed(words: list[str]) -> Hashes:
    return np.fromiter(map(hash, words), dtype=np.int64, count=len(words))


def _runs(words: Hashes) -> Hashes:
    """Hash every three neighbouring words, given as hashes; the order of the three counts."""
    bits = words.view(np.uint64)
    mixed = bits[:-2] * _MIXERS[0]
    for number in (1, 2):
        mixed ^= mixed >> _HALF
        mixed += bits[number : bits.size - 2 + number]
        mixed *= _MIXERS[number]
    mixed ^= mixed >> _HALF
    runs: Hashes = mixed.view(np.int64)
    return runs


def _words(text: str) -> list[str]:
    if not text.isascii():
        for mark in _MARKS:
            if mark in text:
                text = text.replace(mark, " ")
    if text.isascii():
        return text.encode().translate(_PLAIN).decode().split()
    folded = unicodedata.normalize("NFC", text).replace("İ", "i").casefold()
    raw = folded.encode("utf-8", "surrogatepass")
    if may_be_unspaced(raw) and _ANY_UNSPACED.search(folded):
        return _WORD.findall(folded)
    return _split(raw.translate(_PLAIN).decode("utf-8", "surrogatepass"))


def _split(plain: str) -> list[str]:
    """Find the words of a text whose ASCII holds nothing but letters, digits, underscores and blanks."""
    words = plain.split()
    odd = set("".join([word for word in words if not word.isalnum()]))
    marks = [ch for ch in odd if not ch.isalnum() and ch != "_"]
    if len(marks) > _FEW_MARKS:
        return _SPACED_WORD.findall(plain)
    for mark in marks:
        plain = plain.replace(mark, " ")
    return plain.split() if marks else words
