"""Lower case in which a dotted capital ``İ`` is one plain letter."""

from __future__ import annotations

__all__ = ["lower"]


def lower(text: str) -> str:
    """Return a text in lower case, ``İ`` as ``i``; ``str.lower`` alone makes two characters of it.

    Example:
        >>> lower("İADE"), len("İ".lower())
        ('iade', 2)
    """
    return text.replace("İ", "i").lower()
