"""What metadata says about a node and about the entities in it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from pydantic import ValidationError

from llama_index_grounded.evidence import MetadataKeys, stamp
from llama_index_grounded.rendering import KeyValueRenderer, TableRenderer
from llama_index_grounded.rendering.entities import records_of
from llama_index_grounded.testing import make_nodes


def read(metadata: dict[str, Any], fields: tuple[str, ...] | None = None) -> list[tuple[str | None, dict[str, str]]]:
    """Return the records of a node as plain values."""
    found = records_of(TextNode(text="x", metadata=metadata), fields=fields, entities="entities", shown=("title",))
    return [(record.entity, dict(record.attributes)) for record in found]


@pytest.mark.parametrize(
    "entities, records",
    [
        ({"A": {"x": 1}, "B": {}}, [("A", {"x": "1"}), ("B", {})]),
        ({"A": 5, "B": ["u", "v"]}, [("A", {"value": "5"}), ("B", {"value": "u, v"})]),
        ([{"name": "A", "x": 1}, {"entity": "B"}, {"x": 2}], [("A", {"x": "1"}), ("B", {}), (None, {"x": "2"})]),
        (["A", "B"], [("A", {}), ("B", {})]),
        ("A", [("A", {})]),
        ([None, [], {}, "", float("nan"), object()], []),
        (None, []),
    ],
)
def test_shapes_of_entities(entities: object, records: list[Any]) -> None:
    """Mappings, lists of mappings and lists of names are read; what says nothing makes no record."""
    assert read({"entities": entities}) == records


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"),
        (12.5, "12.5"),
        (date(2026, 3, 1), "2026-03-01"),
        (["a", 1, None, ["b"], {"c": 1}], "a, 1"),
        (" a ", " a "),
    ],
)
def test_values_that_are_shown(value: object, text: str) -> None:
    """Numbers, dates, truth values and flat lists are shown as text."""
    assert read({"x": value}) == [(None, {"x": text})]


@pytest.mark.parametrize(
    "value", [None, "", "\u200b", {"a": 1}, float("inf"), b"x", [], "HTTPS://x", "www.x", " ftp://x"]
)
def test_values_that_are_not(value: object) -> None:
    """Blank, nested and not-a-number values and addresses are left out."""
    assert read({"x": value}) == []


def test_what_describes_the_file_is_no_attribute() -> None:
    """What readers say about a file, and what the heading shows, is no attribute, unless it is asked for."""
    fields = {"file_name": "a.md", "file_path": "/srv/a.md", "title": "T", "price": 1, "file_size": 7}
    assert read(fields) == [(None, {"price": "1"})]
    assert read(fields, ("file_size", "price", "title", "none")) == [(None, {"file_size": "7", "price": "1"})]


def test_fields_choose_and_order() -> None:
    """Named fields come in their order, for the node and for each entity; ids stay out whatever is named."""
    metadata = {"a": 1, "b": 2, "document_id": "d", "entities": {"E": {"c": 3, "b": 4, "a": 5}}}
    assert read(metadata, ("b", "a", "document_id")) == [(None, {"b": "2", "a": "1"}), ("E", {"b": "4", "a": "5"})]


def test_ids_under_other_names_stay_out() -> None:
    """Fields that the user named as ids are no attributes."""
    [scored] = make_nodes(["x"], metadata={"sku": "secret", "rev": "secret", "price": 1})
    stamped = stamp(scored, MetadataKeys(document_id="sku", revision="rev"), run=1, slot=0, rank=0)
    assert [record.attributes for record in records_of(stamped.node, fields=None, entities="entities")] == [
        (("price", "1"),)
    ]


@pytest.mark.parametrize("cls", [TableRenderer, KeyValueRenderer])
def test_what_is_removed_from_metadata_is_reported(cls: type[TableRenderer | KeyValueRenderer]) -> None:
    """Invisible characters in names, values and the text are counted, each where it is shown."""
    nodes = make_nodes(["x\u200b"], metadata={"a\u202e": "b\u200b\u200b", "entities": {"E\ufeff": {}}, "url": "\u200b"})
    assert [record.characters for record in cls().render(nodes).removed] == [5]
    assert [record.characters for record in cls(show_text=False).render(nodes).removed] == [4]


@pytest.mark.parametrize("options", [{"fields": ("a", "a")}, {"fields": ("",)}, {"entities": ""}, {"fields": "ab"}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A field named twice, a nameless one, and a text in place of a list of names are refused."""
    with pytest.raises(ValidationError):
        TableRenderer(**options)
