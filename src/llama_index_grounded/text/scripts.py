"""Characters of scripts without spaces between words, for character classes of regular expressions."""

from __future__ import annotations

__all__ = ["CJK", "UNSPACED"]

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Han."""
UNSPACED = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{CJK}"
"""Thai, Lao, Burmese and Khmer, too."""
