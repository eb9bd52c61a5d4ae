"""Sources between a line ``[S1 | Document: … | Section: …]`` and a line ``[/S1]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from llama_index_grounded.rendering.base import BlockRenderer, one_line
from llama_index_grounded.rendering.escaping import clean

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = ["FramedRenderer", "MarkdownRenderer", "escape_brackets", "unescape_brackets"]

_LABELS = {
    "title": "Document",
    "section": "Section",
    "heading": "Heading",
    "page": "Page",
    "updated": "Updated",
}
# White space and characters without a width, which would make "[ S9" look like a key of ours.
_GAP = r"[\s\u00ad\u034f\u061c\u200c-\u200f\u2060-\u2064\ufe00-\ufe0f]*"
_DIGIT = r"[\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u24ff]"
_LIKE_A_KEY = rf"(?=\\*{_GAP}(?:[/／]{_GAP})?[SsｓＳ]{_GAP}{_DIGIT})"
_OPENER = re.compile(rf"([\[【［]){_LIKE_A_KEY}")
_ESCAPED = re.compile(rf"([\[【［])\\{_LIKE_A_KEY}")
# No anchors: no escaped text holds "[S1" or "[/S1", and a template may put the sources behind a word.
_BLOCK = re.compile(
    r"\[(S[0-9]+)(?: \| [^\[\]\n]*)?\]\n"
    r"([^\[]*(?:\[(?!/?S[0-9])[^\[]*)*)"
    r"\n\[/\1\]"
)
# What holds a heading together; a title shows the nearest other sign for them.
_IN_A_LABEL = str.maketrans("[]|【】［］｜", "()/()()/")


class FramedRenderer(BlockRenderer):
    r"""Base of the renderers whose blocks stand between ``[S1 | …]`` and ``[/S1]``.

    Wherever a text has a bracket in front of what looks like a key, ``[S9``, ``[/S9`` or ``【s 9``, a backslash is put
    behind the bracket: ``[\S9``. Every other character stays as it is. A title shows ``(``, ``)`` and ``/`` for the
    brackets and bars in it.
    """

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        return "".join(self.frame(node, key, score))

    def frame(self, node: BaseNode, key: str, score: float | None = None) -> tuple[str, str, str]:
        """Render one source in three parts: what stands above its text, the text, and what stands below."""
        flat = ((name, one_line(value).translate(_IN_A_LABEL)) for name, value in self._described(node).items())
        shown = [f" | {_LABELS[name]}: {value}" for name, value in flat if value]
        if relevance := self._relevance(score):
            shown.append(f" | Relevance: {relevance}")
        return f"[{key}{''.join(shown)}]\n", escape_brackets(self.included(node)), f"\n[/{key}]\n"

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order. The exact inverse of `render`."""
        return [(key, unescape_brackets(body)) for key, body in _BLOCK.findall(text)]

    def escape(self, text: str) -> str:
        """Make a user's text safe to stand beside the blocks."""
        return escape_brackets(clean(text))

    def unescape(self, text: str) -> str:
        r"""Turn ``[\S9`` back into ``[S9`` in what a model copied from a prompt."""
        return unescape_brackets(text)


class MarkdownRenderer(FramedRenderer):
    """Renders each node under a heading ``[S1 | Document: … | Section: …]``, with ``[/S1]`` behind its text.

    For models that see few tags, and for texts full of them: HTML and XML stay as they are. No text can leave its
    block.

    Args:
        attributes: Which descriptive fields to show, in this order; absent ones are left out.
        show_relevance: Show the score, rounded to two decimals, as ``Relevance``.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = make_nodes(["Within 21 days."], metadata=[{"title": "Returns", "section": "Window"}])
        >>> print(MarkdownRenderer().render(nodes).text)
        [S1 | Document: Returns | Section: Window]
        Within 21 days.
        [/S1]
        <BLANKLINE>
    """

    kind: Literal["markdown"] = Field(default="markdown", repr=False)


def escape_brackets(text: str) -> str:
    r"""Put a backslash behind each bracket that opens what looks like a key; `unescape_brackets` is the inverse.

    Example:
        >>> print(escape_brackets("a[0], see [S9 | Document: x]"))
        a[0], see [\S9 | Document: x]
    """
    return _OPENER.sub(r"\1\\", text)


def unescape_brackets(text: str) -> str:
    r"""Undo `escape_brackets`.

    Example:
        >>> print(unescape_brackets(r"see [\S9]"))
        see [S9]
    """
    return _ESCAPED.sub(r"\1", text)
