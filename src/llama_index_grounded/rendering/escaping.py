"""Keep a document inside its block, and get its text back exactly.

Every ``<`` of a document becomes ``&lt;``, so no text can open or close a block. An ``&`` becomes ``&amp;`` only where
it stands before ``lt;`` or ``amp;…lt;``, since only there could the way back mistake it; ``a && b`` and most code stay
as they are. Characters that a reader can not see, and that can carry orders or turn text around, are removed first.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "escape", "escape_attribute", "unescape"]

_AMPERSAND = re.compile(r"&(?=(?:amp;)*lt;)")
_ESCAPED = re.compile(r"&(?:lt;|amp;(?=(?:amp;)*lt;))")
# Controls other than tab and line ends, zero-width space and byte order mark, bidi embeddings, overrides and isolates,
# tag characters, and halves of surrogate pairs, which no encoder can send. ZWJ and ZWNJ stay: scripts need them.
# Line ends are those of Unicode (UAX 14): presentations hold U+000B between lines and PDFs U+000C between pages, and
# words would run together without them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff]"
)


_LONG = 100


class _Last:
    """The last long text that was cleaned: a block is tested, counted and rendered in one go, each from its text."""

    found: tuple[str, str] = "", ""
    """The text and what it became, in one tuple, so that threads see both or none."""


def clean(text: str) -> str:
    """Remove the characters that never reach a prompt; the rest stays byte for byte.

    Example:
        >>> clean("pass\u200bword\u202e!")
        'password!'
    """
    if text.isprintable():
        return text
    if len(text) < _LONG:
        return _INVISIBLE.sub("", text)
    before, after = _Last.found
    if before is not text:
        after = text if text.replace("\n", "").isprintable() else _INVISIBLE.sub("", text)
        _Last.found = text, after
    return after


def escape(text: str) -> str:
    """Make a text safe to stand between tags; `unescape` is the exact inverse.

    Example:
        >>> escape("if a < b && c:")
        'if a &lt; b && c:'
    """
    if "lt;" in text:
        text = _AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;")


def unescape(text: str) -> str:
    """Undo `escape`.

    Example:
        >>> unescape("a &lt; b &amp;lt; c")
        'a < b &lt; c'
    """
    return _ESCAPED.sub(lambda found: "<" if found[0] == "&lt;" else "&", text) if "&" in text else text


def escape_attribute(text: str) -> str:
    """Make a text safe as a quoted attribute value: one line, no quote, no angle bracket.

    White space of any kind, line separators included, becomes one space, so a title can not fake a line of its own.

    Example:
        >>> escape_attribute('R&D  "news"')
        'R&amp;D &quot;news&quot;'
    """
    plain = text.isascii() and text.isprintable()
    flat = " ".join((text if plain else unicodedata.normalize("NFC", clean(text))).split())
    if plain and flat.replace(" ", "").replace("-", "").isalnum():
        return flat
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
