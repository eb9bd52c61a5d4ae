"""Sources as XML blocks with server-made keys."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import field_for_llm, included_text
from llama_index_grounded.rendering.escaping import clean, escape, escape_attribute, unescape
from llama_index_grounded.rendering.renderer import Rendered, key_at, removed_from, source_of

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

__all__ = ["XmlRenderer"]

# No anchors: every other "<" of a prompt is escaped, and a template may put the sources behind a word.
_BLOCK = re.compile(r'<source id="(S[0-9]+)"[^<>]*>\n([^<]*)\n</source>')

Attribute = Literal["title", "section", "heading", "page", "updated"]


class XmlRenderer(BaseModel):
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    attributes: tuple[Attribute, ...] = ("title", "section", "updated")
    show_relevance: bool = False

    @field_validator("attributes")
    @classmethod
    def _each_once(cls, names: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
        if len(set(names)) < len(names):
            msg = f"attributes must name each field once, not {names}"
            raise ConfigurationError(msg)
        return names

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        shown = [f' {name}="{value}"' for name in self.attributes if (value := self._value(node, name))]
        if self.show_relevance and score is not None and math.isfinite(score):
            shown.append(f' relevance="{score:.2f}"')
        return f'<source id="{key}"{"".join(shown)}>\n{escape(clean(included_text(node)))}\n</source>\n'

    def render(self, nodes: Sequence[NodeWithScore]) -> Rendered:
        """Render nodes in the order given, keyed S1, S2, …."""
        keyed = [(key_at(place), scored) for place, scored in enumerate(nodes)]
        removed = (removed_from(scored, key) for key, scored in keyed)
        return Rendered(
            text="".join(self.block(scored.node, key, scored.score) for key, scored in keyed),
            sources=tuple(source_of(scored, key) for key, scored in keyed),
            removed=tuple(record for record in removed if record),
        )

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order. The exact inverse of `render`."""
        return [(key, unescape(body)) for key, body in _BLOCK.findall(text)]

    def escape(self, text: str) -> str:
        """Make a user's text safe to stand beside the blocks."""
        return escape(clean(text))

    def _value(self, node: BaseNode, name: Attribute) -> str | None:
        value = field_for_llm(node, name)
        return None if value is None else escape_attribute(value)
