"""Texts as runs of three words, and which of many texts can be near to another one at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from llama_index_grounded.selection.paragraphs import may_be_unspaced
from llama_index_grounded.text.scripts import UNSPACED

__all__ = ["ROUNDING", "Hashes", "hashes", "may_be_near", "shingles"]

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
"""The usual ones that are no ASCII: most English texts hold no other letters or marks that are none."""
_FEW_MARKS = 16
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
"""Odd numbers whose bits are in no order."""
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


def hashes(text: str) -> Hashes:
    """Return a 64-bit hash of each of a text's shingles, in the order of the text."""
    words = _words(text)
    if len(words) < _WORDS:
        return np.array([hash(tuple(words))] if words else [], dtype=np.int64)
    return _runs(_hashed(words))


def may_be_near(texts: Sequence[str], threshold: float) -> list[bool]:
    """Tell of each text whether it may be near to another one, with a look at all of them together.

    Most texts are near to none. One that is near to an earlier one has at most ``1 - threshold`` of its shingles first,
    and the earlier one shares ``threshold`` of its own with such a late one. Shingles are told apart by their places in
    a table; two that have one place count as the same, so that some texts that are near to none pass, and none is
    missed.

    Args:
        texts: In the order in which they are compared.
        threshold: Least Jaccard index of near texts, above 0 to 1.
    """
    words = [_hashed(_words(text)) for text in texts]
    sizes = np.array([each.size for each in words], dtype=np.int64)
    total = int(sizes.sum())
    if total < _WORDS:
        return [True] * len(texts)
    # Two to four places for each shingle. The last two runs of a text go on in the next one, and are not looked at.
    slots = 1 << (2 * total).bit_length()
    places = _runs(np.concatenate(words)) & (slots - 1)
    starts = np.minimum(np.cumsum(sizes) - sizes, places.size)
    stops = np.maximum(np.cumsum(sizes) - _WORDS + 1, starts)

    def count(flags: _Flags) -> Hashes:
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(flags)])
        counted: Hashes = before[stops] - before[starts]
        return counted

    runs = stops - starts
    late = (runs > 0) & (count(_first(places, slots)) <= runs - threshold * runs + ROUNDING)
    may_be: _Flags = late | ((sizes > 0) & (sizes < _WORDS))
    if late.any():
        of_late = np.zeros(slots, dtype=np.bool_)
        for number in np.flatnonzero(late):
            of_late[places[starts[number] : stops[number]]] = True
        shared = count(of_late[places])
        for number in np.flatnonzero(shared):
            different = np.unique(places[starts[number] : stops[number]]).size
            may_be[number] |= bool(shared[number] >= threshold * different - ROUNDING)
    found: list[bool] = may_be.tolist()
    return found


def _first(places: Hashes, slots: int) -> _Flags:
    """Tell which numbers are the first of their kind: of several values for one place, NumPy keeps the last."""
    order = np.arange(places.size, dtype=np.int32)
    first = np.empty(slots, dtype=np.int32)
    first[places[::-1]] = order[::-1]
    are_first: _Flags = first[places] == order
    return are_first


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
    marks = {ch for word in words if not word.isalnum() for ch in word if not (ch.isalnum() or ch == "_")}
    if len(marks) > _FEW_MARKS:
        return _SPACED_WORD.findall(plain)
    for mark in marks:
        plain = plain.replace(mark, " ")
    return plain.split() if marks else words
