"""Whether a text says anything: a word, a number, a sign that stands for something. Markup and keys alone do not."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["WordFinder", "has_words"]

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0\ufffc\U0001d159"
"""Letters and symbols by their category that show nothing."""


def has_words(text: str, keys: Iterable[str] = ()) -> bool:
    """Tell whether a text holds anything besides keys, punctuation, markup and white space.

    Letters and numbers of every script count, and so do symbols such as emoji, but those of ASCII: they are the markup
    of tables, code and mathematics.

    Example:
        >>> has_words("14"), has_words("| S1 |"), has_words("| S1 |", ["S1"])
        (True, True, False)
    """
    known = frozenset(keys)
    return any(word not in known for word in _words(text))


class WordFinder:
    """Tells of a text that arrives in pieces what `has_words` tells of the whole, as soon as it is certain."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = frozenset(keys)
        self._begun = {key[:end] for key in self._keys for end in range(1, len(key) + 1)}
        self._last = ""
        """A word at the end that may become a key."""
        self.found = False

    def feed(self, piece: str) -> bool:
        """Take the next piece and tell whether there is a word by now."""
        text, self._last = self._last + piece, ""
        words = [] if self.found else [*_words(text)]
        if words and text.endswith(words[-1]) and words[-1] in self._begun:
            self._last = words.pop()
        self.found = self.found or any(word not in self._keys for word in words)
        return self.found


def _words(text: str) -> Iterator[str]:
    """Yield the runs of characters that count."""
    start = 0
    for place, ch in enumerate(text):
        if not _counts(ch):
            if start < place:
                yield text[start:place]
            start = place + 1
    if start < len(text):
        yield text[start:]


def _counts(ch: str) -> bool:
    category = unicodedata.category(ch)
    if category[0] in "LN":
        return ch not in _FILLERS
    return category in ("So", "Sm", "Sc") and not ch.isascii() and ch not in _FILLERS
