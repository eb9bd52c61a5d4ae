"""Lower case in which a dotted capital ``İ`` is one plain letter."""

from __future__ import annotations

__all__ = ["any_case", "lower"]

_ALIKE = str.maketrans("ıſμ", "isµ")


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
