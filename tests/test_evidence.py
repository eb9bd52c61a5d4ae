"""A node's identity, its stamp, its included and its original text."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import date
from decimal import Decimal
from typing import Any

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

from llama_index_grounded.evidence import (
    DEFAULT_KEYS,
    STAMP,
    FieldName,
    MetadataKeys,
    field,
    field_for_llm,
    fields,
    fields_for_llm,
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


@pytest.mark.parametrize("cls", KINDS)
def test_a_stamped_copy_is_a_copy_as_pydantic_makes_it(cls: type[Any]) -> None:
    """A stamped copy has the class, values and set fields that ``model_copy`` gives, and metadata of its own."""
    scored = NodeWithScore(node=cls(text="x", metadata={"title": "t"}, embedding=[1.0, 2.0]), score=0.5)
    ours = stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0)
    names = ("metadata", "excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    update = {name: getattr(ours.node, name) for name in names}
    theirs = scored.model_copy(update={"node": scored.node.model_copy(update=update)})
    assert ours == theirs
    assert (type(ours.node), ours.node.model_fields_set) == (cls, theirs.node.model_fields_set)
    ours.node.metadata["new"] = ours.score = 1
    assert (scored.node.metadata, scored.score) == ({"title": "t"}, 0.5)


@pytest.mark.parametrize(
    "metadata, expected",
    [
        ({"title": " ", "file_name": "f.md"}, {"title": "f.md"}),
        ({"title": None, "page": 3, "url": True}, {"page": "3"}),
        ({"header_path": "/", "title": "T"}, {"title": "T"}),
        ({"header_path": "/a/", "page_label": "iv"}, {"section": "/a/", "page": "iv"}),
        ({"section": ["nested"], "updated": "x", "last_updated": date(2026, 1, 2)}, {"updated": "2026-01-02"}),
        ({}, {}),
    ],
)
def test_fields_are_those_that_are_there(metadata: dict[str, Any], expected: dict[str, str]) -> None:
    """Only what is there is returned, in the order that was asked for, with what takes the place of an absent field."""
    names: list[FieldName] = ["title", "section", "page", "url", "updated"]
    scored = node_with(**metadata)
    for node in (scored.node, stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0).node):
        assert fields(node, names) == expected
        assert list(fields(node, names)) == [name for name in names if name in expected]
        assert {name: value for name in names if (value := field(node, name))} == expected


def test_a_field_that_is_kept_from_the_model_has_no_stand_in() -> None:
    """Where the user hides the title, the file's name is not shown in its place; the others are."""
    scored = node_with(title="Secret", file_name="secret.md", section="S")
    scored.node.excluded_llm_metadata_keys = ["title"]
    assert fields_for_llm(scored.node, ["title", "section"]) == {"section": "S"}
    assert field_for_llm(scored.node, "title") is None
    scored.node.excluded_llm_metadata_keys = ["file_name"]
    assert fields_for_llm(scored.node, ["title", "section"]) == {"title": "Secret", "section": "S"}


@pytest.mark.parametrize(
    "score", [np.float16(0.5), np.float32(0.5), np.int64(1), Decimal("0.5"), 1, None, float("nan")]
)
def test_scores_of_any_number_can_be_written_as_json(score: Any) -> None:
    """Rerankers assign NumPy's numbers, which JSON knows nothing of; the node that came in keeps its own."""
    scored = node_with()
    scored.score = score
    copy_ = stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0)
    assert scored.score is score
    assert type(copy_.score) in (float, type(None))
    assert score is None or copy_.score == pytest.approx(float(score), nan_ok=True)
    json.loads(copy_.model_dump_json())
    json.loads(copy_.to_json())


@pytest.mark.parametrize("score", [10**400, "high", object()])
def test_a_score_that_is_no_number_stays_as_it_is(score: Any) -> None:
    """It is for a gate to say so, which names the node."""
    scored = node_with()
    scored.score = score
    assert stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0).score is score
