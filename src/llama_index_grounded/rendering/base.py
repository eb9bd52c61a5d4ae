"""What our renderers have in common: their options, and a prompt as the row of its blocks."""

from __future__ import annotations

import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import fields_for_llm, once
from llama_index_grounded.metadata import known
from llama_index_grounded.rendering.escaping import clean
from llama_index_grounded.rendering.renderer import Removed, Rendered, key_at, removed_characters, source_of

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, NodeWithScore

    from llama_index_grounded.schema import SourceRef

__all__ = ["Attribute", "BlockRenderer", "one_line"]

Attribute = Literal["title", "section", "heading", "page", "updated"]


class BlockRenderer(BaseModel):
    """Base of our renderers; a subclass says what one block looks like and how it is found again.

    Args:
        attributes: Which descriptive fields to show, in this order; absent ones are left out.
        show_relevance: Show the score, rounded to two decimals.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).
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

    @abstractmethod
    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""

    @abstractmethod
    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks in a text: (key, included text) in order. The exact inverse of `render`."""

    @abstractmethod
    def escape(self, text: str) -> str:
        """Make a user's text safe to stand beside the blocks."""

    @abstractmethod
    def unescape(self, text: str) -> str:
        """Undo the escapes of this format in what a model copied from a prompt."""

    def included(self, node: BaseNode) -> str:
        """Return the text of a node as this renderer shows it, without key, frame and escapes."""
        return once(node, clean)

    def render(self, nodes: Sequence[NodeWithScore]) -> Rendered:
        """Render nodes in the order given, keyed S1, S2, …."""
        blocks: list[str] = []
        sources: list[SourceRef] = []
        removed: list[Removed] = []
        for place, scored in enumerate(nodes):
            key = key_at(place)
            blocks.append(self.block(scored.node, key, scored.score))
            sources.append(source_of(scored, key))
            if characters := self._removed(scored.node):
                removed.append(Removed(key=key, node_id=scored.node.node_id, characters=characters))
        return Rendered(text="".join(blocks), sources=tuple(sources), removed=tuple(removed))

    def _removed(self, node: BaseNode) -> int:
        """Count the invisible characters in what the included text is made of."""
        return removed_characters(node)

    def _described(self, node: BaseNode) -> dict[str, str]:
        """Return the descriptive fields that are shown and there."""
        return fields_for_llm(node, self.attributes)

    def _relevance(self, score: float | None) -> str | None:
        return f"{found:.2f}" if self.show_relevance and (found := known(score)) is not None else None


def one_line(text: str) -> str:
    r"""Compose a text, take out what can not be seen and turn white space of any kind into single spaces.

    Example:
        >>> one_line("Returns\n  and exchanges")
        'Returns and exchanges'
    """
    return " ".join(unicodedata.normalize("NFC", clean(text)).split())
