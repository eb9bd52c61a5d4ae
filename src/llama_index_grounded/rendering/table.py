"""Entities and attributes of a node as a Markdown table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from llama_index_grounded.rendering.base import one_line
from llama_index_grounded.rendering.entities import LINE_END, EntityRenderer, Record
from llama_index_grounded.rendering.escaping import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llama_index.core.schema import BaseNode

__all__ = ["TableRenderer"]


class TableRenderer(EntityRenderer):
    r"""Renders the metadata of each node as a table: a row per entity, a column per attribute, the node's text below.

    For questions that compare entities. The table, and the text below it, is the included text. A cell stays one line:
    its bars become ``\|`` and its line ends ``<br>``. A cell whose entity lacks the attribute is empty.

    Args:
        attributes: Which descriptive fields to show in the heading, in this order; absent ones are left out.
        fields: Which metadata fields, and which attributes of entities, to show, in this order; by default all that the
            user lets a model see, save what identifies the node or describes its file.
        entities: The metadata field that holds entities: a mapping from names to attributes, a list of mappings with a
            ``name``, or a list of names.
        show_text: Show the node's own text below the table.
        show_relevance: Show the score, rounded to two decimals, as ``Relevance``.

    Raises:
        ValidationError: If a field is named twice or is none that describes a node (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> cards = {"Adult card": {"loans": 10, "fee": "12 €"}, "Child card": {"loans": 5}}
        >>> nodes = make_nodes([""], metadata={"title": "Cards", "entities": cards})
        >>> print(TableRenderer().render(nodes).text)
        [S1 | Document: Cards]
        |  | loans | fee |
        |---|---|---|
        | Adult card | 10 | 12 € |
        | Child card | 5 |  |
        [/S1]
        <BLANKLINE>
    """

    kind: Literal["table"] = Field(default="table", repr=False)

    def included(self, node: BaseNode) -> str:
        """Write the table of a node, and its own text below."""
        parts = [_table(self._records(node)), self._own_text(node)]
        return "\n\n".join(part for part in parts if part)


def _table(records: list[Record]) -> str:
    """Write records as rows; the first column holds names where there are any."""
    if not records:
        return ""
    columns = list(dict.fromkeys(name for record in records for name, _ in record.attributes))
    named = any(record.entity for record in records)
    head = [*([""] if named else []), *(one_line(name) for name in columns)]
    lines = [_row(head), "|" + "---|" * len(head)]
    for record in records:
        values = dict(record.attributes)
        lines.append(_row([*([record.entity or ""] if named else []), *(values.get(name, "") for name in columns)]))
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return LINE_END.sub("<br>", clean(text).strip()).replace("|", "\\|")
