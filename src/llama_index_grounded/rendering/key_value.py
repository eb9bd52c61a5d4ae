"""Entities and attributes of a node as lines ``name: value``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from llama_index_grounded.rendering.base import one_line
from llama_index_grounded.rendering.entities import LINE_END, EntityRenderer, Record
from llama_index_grounded.rendering.escaping import clean

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = ["KeyValueRenderer"]

_ENTITY, _TEXT = "entity", "text"


class KeyValueRenderer(EntityRenderer):
    """Renders the metadata of each node as lines ``name: value``, a group of lines per entity.

    For records with many or long attributes, where a table would be wide. The lines are the included text. A value of
    several lines is indented by two spaces, so that no part of it can pose as an attribute; a name that holds a colon,
    or is ``entity`` or ``text``, is quoted.

    Args:
        attributes: Which descriptive fields to show in the heading, in this order; absent ones are left out.
        fields: Which metadata fields, and which attributes of entities, to show, in this order; by default all that the
            user lets a model see, save what identifies the node or describes its file.
        entities: The metadata field that holds entities: a mapping from names to attributes, a list of mappings with a
            ``name``, or a list of names.
        show_text: Show the node's own text, as ``text``, behind its entities.
        show_relevance: Show the score, rounded to two decimals, as ``Relevance``.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> cards = {"Adult card": {"loans": 10, "fee": "12 €"}, "Child card": {"loans": 5}}
        >>> nodes = make_nodes([""], metadata={"title": "Cards", "entities": cards})
        >>> print(KeyValueRenderer().render(nodes).text)
        [S1 | Document: Cards]
        entity: Adult card
        loans: 10
        fee: 12 €
        <BLANKLINE>
        entity: Child card
        loans: 5
        [/S1]
        <BLANKLINE>
    """

    kind: Literal["key_value"] = Field(default="key_value", repr=False)

    def included(self, node: BaseNode) -> str:
        """Write a node down as groups of lines, its own text last."""
        groups = [_group(record) for record in self._records(node)]
        if text := self._own_text(node):
            groups.append(_line(_TEXT, text))
        return "\n\n".join(groups)


def _group(record: Record) -> str:
    lines = [] if record.entity is None else [_line(_ENTITY, one_line(record.entity))]
    return "\n".join([*lines, *(_line(_name(name), value) for name, value in record.attributes)])


def _line(name: str, value: str) -> str:
    return f"{name}: " + LINE_END.sub("\n  ", clean(value).strip())


def _name(text: str) -> str:
    """Quote a name that could be taken for another one, or be cut in two."""
    flat = one_line(text)
    plain = flat and ":" not in flat and not flat.startswith('"') and flat not in (_ENTITY, _TEXT)
    return flat if plain else json.dumps(flat, ensure_ascii=False)
