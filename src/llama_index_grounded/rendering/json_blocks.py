"""Sources as JSON Lines: one object per source, on a line of its own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from llama_index_grounded.rendering.base import BlockRenderer, one_line
from llama_index_grounded.rendering.escaping import clean

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = ["JsonRenderer"]

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# No anchors: no string and no escaped text holds a bare quote, and a template may put the sources behind a word.
_BLOCK = re.compile(
    rf'\{{"id": "(S[0-9]+)"(?:, "(?!text")[a-z]+": (?:{_STRING}|-?[0-9.]+))*, "text": ({_STRING})\}}', re.DOTALL
)
# JSON allows these line ends in a string, but a reader of lines would stop at them.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
# All that a cleaned text can hold; other escapes are not ours.
_MEANING = {json.dumps(each)[1:-1]: each for each in '"\\\n\r\t\x0b\x0c\x85\u2028\u2029'}
_ESCAPED = re.compile("|".join(map(re.escape, _MEANING)))


class JsonRenderer(BlockRenderer):
    r"""Renders each node as one line, ``{"id": "S1", "title": "…", "text": "…"}``, letters of every script as they are.

    For models and teams whose other data is JSON. Quotes, backslashes and line ends of a text are shown as ``\"``,
    ``\\`` and ``\n``: code and tables cost more tokens than elsewhere. No text can leave its string.

    Args:
        attributes: Which descriptive fields to show, in this order; absent ones are left out.
        show_relevance: Show the score, rounded to two decimals, as ``relevance``.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = make_nodes(['Within "21 days".'], metadata=[{"title": "Returns"}])
        >>> print(JsonRenderer().render(nodes).text)
        {"id": "S1", "title": "Returns", "text": "Within \"21 days\"."}
        <BLANKLINE>
    """

    kind: Literal["json"] = Field(default="json", repr=False)

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        flat = ((name, one_line(value)) for name, value in self._described(node).items())
        shown = [f', "{name}": {_quoted(value)}' for name, value in flat if value]
        if relevance := self._relevance(score):
            shown.append(f', "relevance": {relevance}')
        return f'{{"id": "{key}"{"".join(shown)}, "text": {_quoted(self.included(node))}}}\n'

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order. The exact inverse of `render`."""
        return [(key, self.unescape(body[1:-1])) for key, body in _BLOCK.findall(text)]

    def escape(self, text: str) -> str:
        r"""Make a user's text safe to stand beside the blocks: quotes and backslashes become ``\"`` and ``\\``."""
        return clean(text).replace("\\", "\\\\").replace('"', '\\"')

    def unescape(self, text: str) -> str:
        r"""Turn ``\"``, ``\\``, ``\n`` and the other escapes that a block holds back into what they stand for."""
        return _ESCAPED.sub(lambda found: _MEANING[found[0]], text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).translate(_LINE_ENDS)
