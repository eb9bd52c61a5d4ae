"""Metadata as a table: cells stay cells, and rows of different fields share their columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.rendering import TableRenderer
from llama_index_grounded.testing import make_nodes
from tests.rendering.parts import hostile

names = hostile(max_pieces=3)
entities = st.dictionaries(names, st.dictionaries(names, hostile(max_pieces=4), max_size=3), max_size=3)


def table(metadata: dict[str, Any], text: str = "", renderer: TableRenderer | None = None) -> list[str]:
    """Render one node and return the lines of its included text."""
    return (renderer or TableRenderer()).included(make_nodes([text], metadata=metadata)[0].node).split("\n")


def cells(line: str) -> list[str]:
    """Read a row as Markdown does: a bar that no backslash precedes ends a cell."""
    return [cell.strip(" ") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@given(entities)
def test_every_row_has_every_column(entities: dict[str, Any]) -> None:
    """Whatever names and values hold, a row per entity, and as many cells as there are columns."""
    lines = table({"entities": entities}, renderer=TableRenderer())
    if lines == [""]:
        return
    head, rule, *rows = lines
    assert len(rows) <= len(entities)
    assert set(rule) == {"|", "-"}
    assert {len(cells(line)) for line in lines} == {len(cells(head))}


def test_rows_of_different_fields() -> None:
    """Columns come in the order in which they are met; what an entity lacks is an empty cell."""
    assert table({"entities": {"A|B": {"price": 1}, "C": {"colour": "red\r\nblue", "price": ""}}}) == [
        "|  | price | colour |",
        "|---|---|---|",
        "| A\\|B | 1 |  |",
        "| C |  | red<br>blue |",
    ]


def test_a_node_is_a_row_too() -> None:
    """A node's own fields make a row without a name; where no row has one, there is no column for it."""
    assert table({"price": 1, "in_stock": True}) == ["| price | in_stock |", "|---|---|", "| 1 | true |"]
    both = {"price": 1, "entities": {"A": {"price": 2}}}
    assert table(both) == ["|  | price |", "|---|---|", "|  | 1 |", "| A | 2 |"]


def test_the_text_stands_below() -> None:
    """The node's own text follows the table as it is, or stays out where the user says so."""
    assert table({"price": 1}, " a | b\n") == ["| price |", "|---|", "| 1 |", "", " a | b", ""]
    assert table({"price": 1}, "a", TableRenderer(show_text=False)) == ["| price |", "|---|", "| 1 |"]
    assert table({}, "a") == ["a"]


@pytest.mark.parametrize("value", ["\n", "\x0b", "\x85", "\u2028", "\r"])
def test_line_ends_of_every_kind_stay_in_the_cell(value: str) -> None:
    """No line end breaks a row, in a value or in a name."""
    assert table({f"a{value}b": f"c{value}d"}) == ["| a b |", "|---|", "| c<br>d |"]
