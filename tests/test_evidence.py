"""A node's identity, its stamp, its included and its original text."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from pydantic import ValidationError

from llama_index_grounded.evidence import (
    DEFAULT_KEYS,
    STAMP,
    FieldName,
    Identity,
    MetadataKeys,
    field,
    field_for_llm,
    identity,
    included_text,
    mark_of,
    stamp,
    stamp_of,
    strip,
    with_stamp,
    with_text,
)
from tests.hostile import texts

pd: Any = pytest.importorskip("pandas")

SOURCE = NodeRelationship.SOURCE
KINDS: list[type[Any]] = [TextNode, Document, ImageNode]

scalars = st.one_of(texts(max_pieces=3), st.integers(), st.floats(), st.booleans(), st.none(), st.dates())
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner), max_leaves=4
)
keys_of_metadata = st.one_of(st.sampled_from(["title", "section", "document_id", "file_name"]), st.text(max_size=4))
metadata = st.dictionaries(keys_of_metadata, nested, max_size=3)
nodes = st.builds(
    lambda kind, text, fields, excluded, score: NodeWithScore(
        node=kind(text=text, metadata=fields, excluded_llm_metadata_keys=excluded), score=score
    ),
    st.sampled_from(KINDS),
    texts(max_pieces=4),
    metadata,
    st.lists(st.sampled_from(["title", "section", "x"]), max_size=2),
    st.none() | st.floats(allow_nan=False),
)


def marked(scored: NodeWithScore, keys: MetadataKeys = DEFAULT_KEYS, *, rank: int = 0) -> NodeWithScore:
    """Stamp a node as the first stage does."""
    return stamp(scored, keys, run=1, slot=rank, rank=rank)


def node_with(text: str = "x", **fields: Any) -> NodeWithScore:
    """Make a node of the document ``doc`` with some metadata."""
    related = RelatedNodeInfo(node_id="doc")
    return NodeWithScore(node=TextNode(id_="n", text=text, metadata=fields, relationships={SOURCE: related}), score=0.5)


# --- laws -----------------------------------------------------------------------------------------


@given(nodes)
def test_strip_undoes_stamp(scored: NodeWithScore) -> None:
    """A node that was stamped and stripped is the node that was, and so is one that was never stamped."""
    assert repr(strip(marked(scored))) == repr(scored)
    assert strip(scored) is scored


@given(nodes, texts())
def test_nothing_that_was_given_is_changed(scored: NodeWithScore, text: str) -> None:
    """Stamping, shortening and stripping leave the node, its metadata and its lists as they were."""
    before = repr(scored)
    stamped = marked(scored)
    shortened = with_text(stamped, text)
    strip(shortened)
    assert repr(scored) == before
    assert included_text(stamped.node) == included_text(scored.node)


@given(nodes, texts(), texts())
def test_the_first_original_text_stays_reachable(scored: NodeWithScore, first: str, second: str) -> None:
    """However often a text is replaced, the included text is the last and the original is the first."""
    shortened = with_text(with_text(marked(scored), first), second)
    assert included_text(shortened.node) == second
    assert mark_of(shortened).get("original") == included_text(scored.node)
    assert type(shortened.node) is type(scored.node)


@given(nodes, texts())
def test_the_stamp_stays_out_of_every_text_for_a_model(scored: NodeWithScore, text: str) -> None:
    """Neither an LLM nor an embedding model is shown the stamp, and with it no text that was taken out."""
    shortened = with_text(marked(scored), text).node
    assert STAMP in shortened.get_metadata_str(MetadataMode.ALL)
    for mode in (MetadataMode.NONE, MetadataMode.LLM, MetadataMode.EMBED):
        assert STAMP not in shortened.get_content(metadata_mode=mode)


@given(nodes, st.integers(1, 9), st.integers(0, 99))
def test_a_second_stamp_keeps_what_the_first_found(scored: NodeWithScore, run: int, rank: int) -> None:
    """A node that comes back in another run gets a new place, and keeps its identity and field names."""
    keys = MetadataKeys(document_id="file_name", title="section")
    first = marked(scored, keys)
    second = stamp(first, DEFAULT_KEYS, run=run, slot=rank, rank=rank)
    assert identity(second.node) == identity(first.node)
    assert field(second.node, "title") == field(first.node, "title")
    assert mark_of(second)["rank"] == rank


@given(nodes)
def test_an_identity_is_text_that_never_fails(scored: NodeWithScore) -> None:
    """Whatever the metadata holds, a document id and a chunk id exist, and the stamp repeats the identity."""
    who = identity(scored.node)
    assert who.document_id
    assert who.chunk_id
    assert identity(marked(scored).node) == who
    assert all(part is None or (type(part) is str and part.strip()) for part in who)


@given(nodes)
def test_a_stamped_node_survives_copies(scored: NodeWithScore) -> None:
    """Pickle and deep copy keep the stamp; JSON does not fail on it."""
    stamped = with_text(marked(scored), "shorter")
    for copied in (pickle.loads(pickle.dumps(stamped)), copy.deepcopy(stamped)):  # noqa: S301 - our own bytes
        assert mark_of(copied) == mark_of(stamped)
        assert stamp_of(copied.node) is not None
    assert json.loads(json.dumps(stamped.node.metadata[STAMP])) is not None


# --- stamps that are none ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        "text",
        7,
        [],
        {},
        {"rank": 0},
        {"run": 1, "slot": 0, "rank": 0, "identity": ["bank-rules", None, None, "c"], "original": "a lie"},
    ],
)
def test_a_document_can_not_forge_a_stamp(forged: object) -> None:
    """What a document's own metadata holds under our key, from front matter say, is neither read nor left to fail."""
    fields: dict[str, Any] = {"document_id": "blog", STAMP: forged}
    scored = node_with(**fields)
    assert stamp_of(scored.node) is None
    assert identity(scored.node).document_id == "blog"
    stamped = with_text(marked(scored), "shorter")
    assert identity(stamped.node).document_id == "blog"
    assert mark_of(stamped).get("original") == "x"
    assert STAMP not in strip(stamped).node.metadata


def test_a_stamp_does_not_come_back_from_a_store() -> None:
    """A stamped node that was saved as JSON is a new node when it is retrieved."""
    saved = TextNode.from_json(marked(node_with()).node.to_json())
    assert STAMP in saved.metadata
    assert stamp_of(saved) is None


def test_a_node_without_a_stamp_says_so() -> None:
    """Asking for the stamp of a node that no stage saw is an error, not a guess."""
    with pytest.raises(KeyError):
        mark_of(node_with())


# --- identity and fields ------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="a"),
        Document(text="a"),
        IndexNode(text="a", index_id="i", obj=TextNode(text="inner")),
        ImageNode(text="a", image="aGk=", image_path="a.png"),
        Node(),
    ],
    ids=lambda node: type(node).__name__,
)
def test_every_kind_of_node_keeps_its_kind(node: BaseNode) -> None:
    """Stamping and shortening a node of any kind keeps all else about it, and the original object its text."""
    before = repr(node)
    shortened = with_text(marked(NodeWithScore(node=node)), "b").node
    assert (type(shortened), shortened.node_id, included_text(shortened)) == (type(node), node.node_id, "b")
    assert repr(node) == before


def test_a_subclass_of_the_wrapper_survives() -> None:
    """Other packages wrap nodes in classes of their own; the copy is of that class."""

    class Ranked(NodeWithScore):
        place: int = 0

    stamped = with_text(marked(Ranked(node=TextNode(text="x"), score=0.5, place=3)), "y")
    assert isinstance(strip(stamped), Ranked)
    assert strip(stamped).model_dump()["place"] == 3


def test_another_stamp_takes_the_place_of_the_first() -> None:
    """A stage that changes the stamp leaves the one that it was given alone."""
    first = marked(node_with())
    second = with_stamp(first, {**mark_of(first), "also_in": ("d2",)})
    assert mark_of(second).get("also_in") == ("d2",)
    assert "also_in" not in mark_of(first)
    assert second.node.excluded_llm_metadata_keys == [STAMP]
