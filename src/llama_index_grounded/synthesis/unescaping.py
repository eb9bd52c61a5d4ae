r"""The escapes of a prompt, as a model copies them into its answer, and the way back.

Each renderer escapes what could pose as one of its blocks. What it undoes itself (its method ``unescape``) tells which
way of writing it uses:

* **xml**: ``&lt;`` and ``&amp;``, undone in the whole answer, code included.
* **brackets**: ``[\S9]`` of the renderers with bracketed headings; `markers` says what becomes of it.
* **none**: whatever else. An answer stays as it is: in JSON's way ``C:\new`` would break.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, cast

from llama_index_grounded.rendering import unescape

if TYPE_CHECKING:
    from llama_index_grounded.rendering import Renderer

__all__ = ["Escapes", "Unescaper", "escapes_of", "unescape_of"]

Escapes = Literal["xml", "brackets", "none"]
"""How a prompt writes what could pose as a block."""

_CHAIN = re.compile(r"(?:amp;)*")
_UNFINISHED = re.compile(r"&(?:l|lt|a|am|amp|amp;(?:amp;)*(?:l|lt|a|am|amp)?)?\Z")
_LINKS_BEGUN = ("", "l", "lt", "a", "am", "amp")


def unescape_of(renderer: Renderer) -> Callable[[str], str]:
    """Return how a renderer undoes its escapes; a renderer that has no ``unescape`` leaves a text as it is."""
    found = getattr(renderer, "unescape", None)
    return cast("Callable[[str], str]", found) if callable(found) else _as_it_is


def escapes_of(renderer: Renderer) -> Escapes:
    """Tell how a renderer escapes, by what it undoes.

    Example:
        >>> from llama_index_grounded.rendering import JsonRenderer, TableRenderer, XmlRenderer
        >>> [escapes_of(renderer) for renderer in (XmlRenderer(), TableRenderer(), JsonRenderer())]
        ['xml', 'brackets', 'none']
    """
    undo = unescape_of(renderer)
    if undo("&lt;&amp;lt;") == "<&lt;":
        return "xml"
    return "brackets" if undo(r"[\S1][\\S1]") == r"[S1][\S1]" else "none"


def _as_it_is(text: str) -> str:
    return text


class Unescaper:
    """Undoes ``&lt;`` and ``&amp;`` of `XmlRenderer` in text that arrives in pieces."""

    def __init__(self) -> None:
        """Start in front of the first character."""
        self._held = ""
        # In "&amp;amp;…" all is certain but one "amp;", which falls out if the chain ends in "lt;".
        self._owed = False

    def feed(self, text: str, *, final: bool = False) -> str:
        """Return what is certain now; with `final` the rest too."""
        text = self._held + text
        certain = ""
        if self._owed:
            certain, text = self._chain(text, final=final)
        unfinished = None if final or self._owed else _UNFINISHED.search(text)
        if unfinished is not None:
            certain, text = certain + unescape(text[: unfinished.start()]), unfinished[0]
            if text.startswith("&amp;"):
                self._owed = True
                links, text = self._chain(text[len("&amp;") :], final=False)
                certain += f"&{links}"
        elif not self._owed:
            certain, text = certain + unescape(text), ""
        self._held = text
        return certain

    def _chain(self, text: str, *, final: bool) -> tuple[str, str]:
        """Return what is certain of a chain's further links, and the text behind them."""
        end = _end(_CHAIN, text)
        links, rest = text[:end], text[end:]
        if rest in _LINKS_BEGUN and not final:
            return links, rest
        self._owed = False
        return links if rest.startswith("lt;") else f"{links}amp;", rest


def _end(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return 0 if found is None else found.end()
