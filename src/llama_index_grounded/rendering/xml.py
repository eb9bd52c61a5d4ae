"""Sources as XML blocks with server-made keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from llama_index_grounded.rendering.base import BlockRenderer
from llama_index_grounded.rendering.escaping import clean, escape, escape_attribute, unescape

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = ["XmlRenderer"]

# No anchors: every other "<" of a prompt is escaped, and a template may put the sources behind a word.
_BLOCK = re.compile(r'<source id="(S[0-9]+)"[^<>]*>\n([^<]*)\n</source>')


class XmlRenderer(BlockRenderer):
    """Renders each node as ``<source id="S1" title="…">``, its text on lines of its own, ``</source>``.

    The model sees the key, the chosen attributes and the text; never a node id, a document id or a URL. Metadata that
    the user excludes from LLM text stays out. No text can leave its block, and `recover` returns it exactly, apart
    from invisible characters, which are removed and reported.

    Args:
        attributes: Which descriptive fields to show, in this order; absent ones are left out.
        show_relevance: Show the score, rounded to two decimals, as ``relevance``.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = make_nodes(["Within 21 days."], metadata=[{"title": "Returns"}])
        >>> print(XmlRenderer().render(nodes).text)
        <source id="S1" title="Returns">
        Within 21 days.
        </source>
        <BLANKLINE>
    """

    kind: Literal["xml"] = Field(default="xml", repr=False)

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        return "".join(self.frame(node, key, score))

    def frame(self, node: BaseNode, key: str, score: float | None = None) -> tuple[str, str, str]:
        """Render one source in three parts: what stands above its text, the text, and what stands below."""
        shown = [
            f' {name}="{value}"' for name, text in self._described(node).items() if (value := escape_attribute(text))
        ]
        if relevance := self._relevance(score):
            shown.append(f' relevance="{relevance}"')
        return f'<source id="{key}"{"".join(shown)}>\n', escape(self.included(node)), "\n</source>\n"

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order. The exact inverse of `render`."""
        return [(key, unescape(body)) for key, body in _BLOCK.findall(text)]

    def escape(self, text: str) -> str:
        """Make a user's text safe to stand beside the blocks."""
        return escape(clean(text))

    def unescape(self, text: str) -> str:
        """Turn ``&lt;`` back into ``<`` in what a model copied from a prompt."""
        return unescape(text)
