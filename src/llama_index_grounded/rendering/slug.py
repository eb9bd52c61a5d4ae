"""Turn a heading into the anchor of a link."""

from __future__ import annotations

import unicodedata

from llama_index_grounded.text.case import lower

__all__ = ["slug"]


def slug(text: str) -> str:
    """Lower-case a text, keep its Unicode letters and digits, and turn every other run into one ``-``.

    Example:
        >>> slug("Return window (21 days)")
        'return-window-21-days'
        >>> slug("İade Koşulları")
        'iade-koşulları'
    """
    # Composed first, so that both spellings of "İ" are found; and after, since lower case can decompose.
    composed = unicodedata.normalize("NFC", text)
    lowered = unicodedata.normalize("NFC", lower(composed))
    # Combining marks belong to the letter before them.
    kept = "".join(ch if ch.isalnum() or unicodedata.category(ch).startswith("M") else "-" for ch in lowered)
    return "-".join(part for part in kept.split("-") if part)
