"""A node's identity and the fields that describe it, from metadata of every kind."""

from __future__ import annotations

import enum
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from llama_index.core.schema import BaseNode, Document, Node, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from pydantic import ValidationError

from llama_index_grounded.evidence import (
    DEFAULT_KEYS,
    FieldName,
    Identity,
    MetadataKeys,
    field,
    field_for_llm,
    identity,
    stamp,
    strip,
    with_text,
)

pd: Any = pytest.importorskip("pandas")


def marked(scored: NodeWithScore, keys: MetadataKeys = DEFAULT_KEYS) -> NodeWithScore:
    """Stamp a node as the first stage does."""
    return stamp(scored, keys, run=1, slot=0, rank=0)


def node_with(text: str = "x", **fields: Any) -> NodeWithScore:
    """Make a node of the document ``doc`` with some metadata."""
    related = RelatedNodeInfo(node_id="doc")
    return NodeWithScore(
        node=TextNode(id_="n", text=text, metadata=fields, relationships={NodeRelationship.SOURCE: related}), score=0.5
    )


@pytest.mark.parametrize(
    "fields, who",
    [
        ({}, Identity("doc", None, None, "n")),
        ({"document_id": "d", "chunk_id": "c"}, Identity("d", None, None, "c")),
        ({"document_id": 7, "revision": 2, "chunking_version": 1.5}, Identity("7", "2", "1.5", "n")),
        ({"document_id": " ", "chunk_id": "", "revision": "\n"}, Identity("doc", None, None, "n")),
        ({"document_id": ["d"], "chunk_id": {"a": 1}, "revision": True}, Identity("doc", None, None, "n")),
        ({"document_id": float("nan"), "chunk_id": float("inf")}, Identity("doc", None, None, "n")),
        ({"document_id": "007"}, Identity("007", None, None, "n")),
    ],
)
def test_identity_falls_back_to_llama_index(fields: dict[str, Any], who: Identity) -> None:
    """Ids come from the metadata where they are plain values, else from LlamaIndex's own."""
    assert identity(node_with(**fields).node) == who


def test_nodes_without_a_document_stand_alone() -> None:
    """Nodes that belong to no document are each their own document, never one group."""
    alone: list[BaseNode] = [TextNode(text="x"), TextNode(text="x"), Document(text="x"), Node()]
    assert len({identity(node).document_id for node in alone}) == 4


@pytest.mark.parametrize(
    "name, own, fallback",
    [
        ("title", "title", "file_name"),
        ("section", "section", "header_path"),
        ("page", "page", "page_label"),
        ("updated", "last_updated", "last_modified_date"),
        ("heading", "heading", None),
        ("url", "url", None),
    ],
)
def test_each_field_has_its_fallback(name: FieldName, own: str, fallback: str | None) -> None:
    """The own name wins where it holds a plain value; else what LlamaIndex's readers write takes its place."""
    assert field(node_with().node, name) is None
    assert field(node_with(**{own: "mine"}).node, name) == "mine"
    if fallback:
        assert field(node_with(**{fallback: "theirs"}).node, name) == "theirs"
        assert field(node_with(**{own: "mine", fallback: "theirs"}).node, name) == "mine"
        in_vain: dict[str, Any] = {own: [], fallback: "theirs"}
        assert field(node_with(**in_vain).node, name) == "theirs"


class Kind(str, enum.Enum):
    """An enumeration as metadata value."""

    manual = "the manual"


class Version(enum.Enum):
    """An enumeration that is no text itself."""

    second = 2.5


class Shouting(str):
    """Text that prints otherwise than it is."""

    __slots__ = ()

    def __str__(self) -> str:
        """Shout."""
        return self.upper()


class Level(enum.IntEnum):
    """A number with a name."""

    two = 2


@pytest.mark.parametrize(
    "value, text",
    [
        (date(2026, 3, 1), "2026-03-01"),
        (datetime(2026, 3, 1, 9, 30, tzinfo=timezone.utc), "2026-03-01T09:30:00+00:00"),
        (pd.Timestamp("2026-03-01"), "2026-03-01T00:00:00"),
        (pd.NaT, None),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Path("a/b.md"), "a/b.md"),
        (Kind.manual, "the manual"),
        (Level.two, "2"),
        (Version.second, "2.5"),
        (Shouting("quiet"), "quiet"),
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), None),
        (np.array([1, 2]), None),
        (np.float64("nan"), None),
        (Decimal("1.10"), "1.10"),
        (Decimal("sNaN"), None),
        (Fraction(1, 2), "1/2"),
        (10**400, "1" + "0" * 400),
        (b"bytes", None),
        (1 + 2j, None),
        (object(), None),
    ],
)
def test_values_of_many_types_read_as_text(value: object, text: str | None) -> None:
    """Dates, numbers, paths and enumerations read the same on every Python; what is no plain value is absent."""
    assert field(node_with(title=value).node, "title") == text


def test_metadata_that_holds_itself() -> None:
    """Cyclic metadata is carried along and never followed."""
    cyclic: dict[str, Any] = {"title": "T"}
    cyclic["self"] = cyclic
    node = TextNode(text="x")
    node.metadata = {"title": cyclic, "more": cyclic, "file_name": "f"}
    stamped = with_text(marked(NodeWithScore(node=node)), "y")
    assert field(stamped.node, "title") == "f"
    assert strip(stamped).node.metadata["more"] is cyclic


def test_own_names_travel_with_the_stamp() -> None:
    """The names are given to the first stage; every later reader finds them in the stamp."""
    keys = MetadataKeys(document_id="doc_no", title="titel", page="seite")
    scored = node_with(doc_no="D1", titel="Rückgabe", seite=3, title="other", page_label="9")
    stamped = marked(scored, keys)
    assert identity(stamped.node).document_id == "D1"
    assert (field(stamped.node, "title"), field(stamped.node, "page")) == ("Rückgabe", "3")
    assert (field(scored.node, "title"), field(scored.node, "page")) == ("other", "9")


def test_metadata_kept_from_the_model() -> None:
    """A field whose source is excluded from LLM text is there for people and not for the model."""
    scored = node_with(file_name="f.md", section="S")
    scored.node.excluded_llm_metadata_keys = ["file_name"]
    for node in (scored.node, marked(scored).node):
        assert (field(node, "title"), field_for_llm(node, "title")) == ("f.md", None)
        assert field_for_llm(node, "section") == "S"


@pytest.mark.parametrize("options", [{"titel": "x"}, {"title": ""}, {"title": 3}, {"title": None}])
def test_impossible_names_are_refused(options: dict[str, Any]) -> None:
    """Misspelt fields and names that are no text are refused at construction."""
    with pytest.raises(ValidationError):
        MetadataKeys(**options)
