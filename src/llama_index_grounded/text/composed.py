"""The composed form of a text (NFC), and where its characters stood."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["composed"]


def composed(text: str) -> tuple[str, Sequence[int]]:
    """Return a text in NFC, and the place in the text of each of its characters and of its end.

    Where characters compose that are no letter and its marks, such as the parts of a Korean syllable, the text stays
    as it is.

    Example:
        >>> composed("u\u0308c\u0327 21")
        ('üç 21', [0, 2, 4, 5, 6, 7])
    """
    same = text, range(len(text) + 1)
    if unicodedata.is_normalized("NFC", text):
        return same
    parts: list[str] = []
    places: list[int] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or not unicodedata.combining(text[end]):
            part = unicodedata.normalize("NFC", text[start:end])
            parts.append(part)
            places += [start] * len(part)
            start = end
    whole = "".join(parts)
    return (whole, [*places, len(text)]) if whole == unicodedata.normalize("NFC", text) else same
