"""Texts without their case, where ``İ`` and ``ı`` make a difference that Python's own methods do not know."""

from __future__ import annotations

import unicodedata

__all__ = ["any_case", "bare", "lower"]

_ALIKE = str.maketrans("ıſμ", "isµ")
_KANA = "\u3099\u309a"
"""Voicing marks make other letters of kana."""


def lower(text: str) -> str:
    """Return a text in lower case, ``İ`` as ``i``; ``str.lower`` alone makes two characters of it.

    Example:
        >>> lower("İADE"), len("İ".lower())
        ('iade', 2)
    """
    return text.replace("İ", "i").lower()


def any_case(text: str) -> str:
    """Return the same for all texts that a pattern which ignores case takes for one: ``ı`` is ``i`` for it.

    Example:
        >>> any_case("YIL") == any_case("yıl"), lower("YIL") == lower("yıl")
        (True, False)
    """
    return lower(text).translate(_ALIKE)


def bare(text: str) -> str:
    """Return the same for all texts that any language or store may take for one when it ignores case.

    ``ı`` is ``i``, ``ß`` is ``ss``, and marks on letters are left out, as capitals often are without them. Syllables of
    Hangul and voiced kana stay.

    Example:
        >>> bare("GİZLİ") == bare("gızlı"), bare("STRASSE") == bare("straße"), bare("ΑΠΌΡΡΗΤΟ") == bare("ΑΠΟΡΡΗΤΟ")
        (True, True, True)
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold()).casefold()
    letters = "".join(letter for letter in decomposed if letter in _KANA or not unicodedata.combining(letter))
    return unicodedata.normalize("NFC", letters.translate(_ALIKE))
