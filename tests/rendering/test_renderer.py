"""What every renderer shares: keys, source records and sizes in tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys, stamp
from llama_index_grounded.rendering import Renderer, XmlRenderer, clean
from llama_index_grounded.rendering.renderer import key_at, source_of
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.schema import SourceRef
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.hostile import texts

ENCODINGS = ["o200k_base", "cl100k_base"]

sources = st.lists(
    st.tuples(texts(), st.dictionaries(st.sampled_from(["title", "section"]), texts(max_pieces=4))), max_size=3
)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(sources)
def test_the_sizes_add_up_to_the_whole(encoding: str, documents: list[tuple[str, dict[str, str]]]) -> None:
    """The sum over the blocks is the count of the whole text, whatever the texts begin or end with."""
    counter, renderer, sizes = TokenCounter(encoding=encoding), XmlRenderer(), dict[tuple[str, str], int]()
    nodes = make_nodes([text for text, _ in documents], metadata=[fields for _, fields in documents])
    counts = [BlockCounter(renderer, counter, sizes).tokens(scored, place) for place, scored in enumerate(nodes)]
    assert sum(counts) == counter.tokens(renderer.render(nodes).text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "text", ["\n\nx\n\n", "/x/", "\n/", "/\n", " \n ", "</", "\r", ">", ">\n<", "\u3000\n", "</source>\n/"]
)
def test_awkward_ends_do_not_merge_with_the_tags(encoding: str, text: str) -> None:
    """Line ends, slashes and blanks at the ends of a text make no token with the block before or after."""
    counter, renderer = TokenCounter(encoding=encoding), XmlRenderer()
    nodes = make_nodes([text] * 3)
    blocks = [renderer.block(scored.node, f"S{place}") for place, scored in enumerate(nodes, start=1)]
    assert sum(map(counter.tokens, blocks)) == counter.tokens(renderer.render(nodes).text)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_key_to_s999_costs_the_same(encoding: str) -> None:
    """A block's size does not depend on its place among the first 999, so it holds after a reorder."""
    counter, renderer, node = TokenCounter(encoding=encoding), XmlRenderer(), TextNode(text="x")
    sizes = {counter.tokens(renderer.block(node, key_at(place))) for place in range(999)}
    assert len(sizes) == 1
    assert counter.tokens(renderer.block(node, "S1000")) == sizes.pop() + 1


def test_the_thousandth_source_is_counted_as_it_is() -> None:
    """From S1000 on the key costs a token more, and the size says so."""
    counter, renderer = TokenCounter(), XmlRenderer()
    [scored] = make_nodes(["x"])
    assert (
        BlockCounter(renderer, counter, {}).tokens(scored, 999)
        == BlockCounter(renderer, counter, {}).tokens(scored, 998) + 1
    )


def test_a_block_is_encoded_once() -> None:
    """A second look at a size encodes nothing: text, renderer and counter are the same."""
    calls: list[str] = []

    def tokenizer(text: str) -> Sequence[int]:
        calls.append(text)
        return range(len(text))

    counter, sizes = TokenCounter(tokenizer=tokenizer), dict[tuple[str, str], int]()
    [scored] = make_nodes(["x"])
    first = BlockCounter(XmlRenderer(), counter, sizes).tokens(scored, 0)
    assert BlockCounter(XmlRenderer(), counter, sizes).tokens(scored, 0) == first == len(calls[0])
    assert len(calls) == 1


def test_another_tokenizer_counts_each_key() -> None:
    """Where a tokenizer of the user's own counts, no assumption is made about the keys."""
    counter = TokenCounter(tokenizer=list)
    [scored] = make_nodes(["x"])
    places = [BlockCounter(XmlRenderer(), counter, {}).tokens(scored, place) for place in (0, 9, 99)]
    assert places == [places[0], places[0] + 1, places[0] + 2]


def test_two_counters_do_not_share_sizes() -> None:
    """Sizes of one tokenizer are never taken for those of another."""
    sizes: dict[tuple[str, str], int] = {}
    [scored] = make_nodes(["Merhaba dünya"])
    tokenizers: list[Callable[[str], Sequence[str]]] = [list, str.split]
    counts = [BlockCounter(XmlRenderer(), TokenCounter(tokenizer=each), sizes).tokens(scored, 0) for each in tokenizers]
    assert counts == [len(XmlRenderer().block(scored.node, "S1")), 5]


def test_a_source_names_its_node() -> None:
    """The record of a source holds identity, description and score of the node, under the names of the stamp."""
    node = TextNode(
        id_="n1",
        text="x",
        metadata={"doc": 7, "rev": "b", "section": "Window", "titel": "Returns", "page_label": "iv", "url": "/r#w"},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="file-1")},
    )
    [scored] = make_nodes(["x"], scores=[0.5])
    keys = MetadataKeys(document_id="doc", revision="rev", title="titel")
    stamped = stamp(scored.model_copy(update={"node": node}), keys, run=1, slot=0, rank=0)
    assert source_of(stamped, "S3") == SourceRef(
        key="S3",
        node_id="n1",
        document_id="7",
        chunk_id="n1",
        revision="b",
        section="Window",
        title="Returns",
        page="iv",
        url="/r#w",
        score=0.5,
    )


@pytest.mark.parametrize("score", [None, float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_unknown(score: float | None) -> None:
    """Missing scores, not-a-number and infinity are None in the record, so that it can be written as JSON."""
    [scored] = make_nodes(["x"], scores=[score])
    assert source_of(scored, "S1").score is None


@given(texts())
def test_descriptions_are_safe_to_show(text: str) -> None:
    """Title, section and page of a source hold no character that could turn the page around them."""
    [scored] = make_nodes(["x"], metadata={"title": text, "section": text, "page": text})
    source = source_of(stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0), "S1")
    for shown in (source.title, source.section, source.page):
        assert shown is None or (shown and shown == clean(shown))


def test_a_source_without_metadata_names_the_node() -> None:
    """Nothing is invented: without metadata there is no title, and the node stands for its document."""
    [scored] = make_nodes(["x"], ids=["n"])
    source = source_of(scored, "S1")
    assert (source.document_id, source.chunk_id, source.title, source.section, source.url) == (
        "n",
        "n",
        None,
        None,
        None,
    )


def test_the_xml_renderer_is_a_renderer() -> None:
    """`XmlRenderer` keeps the promise of the protocol, which type checkers compare."""
    renderer: Renderer = XmlRenderer()
    assert renderer.recover(renderer.render(make_nodes(["x"])).text) == [("S1", "x")]


@given(texts(), st.none() | st.floats())
def test_a_record_is_what_validation_makes_of_it(text: str, score: float | None) -> None:
    """A source record whose validation was spared is equal to one that was validated, and writes the same JSON."""
    [scored] = make_nodes(["x"], scores=[score], metadata={"title": text, "section": "Window", "url": text, "page": 7})
    source = source_of(stamp(scored, DEFAULT_KEYS, run=1, slot=0, rank=0), "S1")
    validated = SourceRef(**{name: getattr(source, name) for name in source.model_fields_set})
    assert source == validated
    assert source.model_dump_json() == validated.model_dump_json()
    assert source.model_copy(update={"tokens": 3}) == validated.model_copy(update={"tokens": 3})


@pytest.mark.parametrize(
    "score",
    [10**400, -(10**400), float("inf"), float("nan"), None],
    ids=["huge", "huge negative", "infinite", "none of them", "missing"],
)
def test_a_score_that_no_float_can_hold_is_unknown(score: Any) -> None:
    """The source is shown without a relevance, and its record has no score."""
    [scored] = make_nodes(["x"])
    scored.score = score
    for renderer in (XmlRenderer(), XmlRenderer(show_relevance=True)):
        rendered = renderer.render([scored])
        assert rendered.sources[0].score is None
        assert "relevance" not in rendered.text
