"""Laws and cases of joining chunks into passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import ImageNode, IndexNode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from pydantic import ValidationError

from llama_index_grounded.evidence import included_text, stamp_of
from llama_index_grounded.selection import AttentionReorder, ScopedDedup
from llama_index_grounded.selection.passages import Origin, PassageMerger, origin_of
from llama_index_grounded.selection.stretches import GAP, Stretch, join
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.cuts import HOME, Range, at, cut, cut_documents, place, text_node, tie
from tests.selection.parts import LONG, bodies, decided, ids, run
from tests.timing import assert_within

TEXT = "Books can be returned within twenty-one days. Gift cards can not be returned. Keep the receipt."
FIRST, SECOND = (0, 60), (46, len(TEXT))


def merged(nodes: Sequence[NodeWithScore], max_gap: int = 0) -> list[NodeWithScore]:
    """Join by hand."""
    return PassageMerger(max_gap=max_gap).postprocess_nodes(list(nodes))


def slices(ranges: Sequence[Range]) -> list[Range]:
    """Find the longest stretches of which every character is in some range."""
    covered = sorted({place for start, end in ranges for place in range(start, end)})
    starts = [place for place in covered if place - 1 not in covered]
    ends = [place + 1 for place in covered if place + 1 not in covered]
    return list(zip(starts, ends, strict=True))


# Laws


@given(cut_documents())
def test_passages_are_the_slices_that_the_chunks_cover(drawn: tuple[str, list[Range]]) -> None:
    """However a document is cut, joining gives exactly its slices that the chunks cover without a hole."""
    document, ranges = drawn
    result = merged(cut(document, ranges))
    passages = sorted((place(scored), included_text(scored.node)) for scored in result)
    assert passages == [((start, end), document[start:end]) for start, end in slices(ranges)]


@given(cut_documents(), st.integers(1, 4))
def test_holes_up_to_the_gap_are_marked(drawn: tuple[str, list[Range]], gap: int) -> None:
    """Slices whose hole is not larger than the gap become one text in which the mark stands for the hole."""
    document, ranges = drawn
    expected: list[str] = []
    reach = -gap - 1
    for start, end in slices(ranges):
        near = start - reach <= gap
        expected[-1:] = [f"{expected[-1]}{GAP}{document[start:end]}"] if near else [*expected[-1:], document[start:end]]
        reach = end
    assert sorted(bodies(merged(cut(document, ranges), gap))) == sorted(expected)


@given(cut_documents(), st.integers(0, 4), st.randoms(use_true_random=False))
def test_the_order_of_the_chunks_does_not_change_the_texts(drawn: tuple[str, list[Range]], gap: int, rng: Any) -> None:
    """Shuffled chunks give the same passages; only ids, ranks and places in the list follow the order."""
    nodes = cut(*drawn)
    shuffled = rng.sample(nodes, len(nodes))
    assert sorted(bodies(merged(nodes, gap))) == sorted(bodies(merged(shuffled, gap)))


@given(cut_documents(), st.integers(0, 4))
def test_every_character_knows_the_best_chunk_that_holds_it(drawn: tuple[str, list[Range]], gap: int) -> None:
    """A character's origin is the first chunk of the list that holds it; a mark comes from no chunk."""
    document, ranges = drawn
    for scored in merged(cut(document, ranges), gap):
        text, (at_, _) = included_text(scored.node), place(scored)
        inside = [r for r in ranges if at_ is not None and at_ <= r[0] and r[1] <= (place(scored)[1] or 0)]
        characters = [p for start, end in slices(inside) for p in range(start, end)]
        origins = [origin_of(scored.node, offset) for offset in range(len(text))]
        named = [origin.node_id for origin in origins if origin]
        holders = [next(k for k, (start, end) in enumerate(ranges) if start <= p < end) for p in characters]
        assert named == [f"n{holder}" for holder in holders]


@st.composite
def wrong_ranges(draw: st.DrawFn) -> list[NodeWithScore]:
    """Draw chunks whose ranges have nothing to do with one document, some of which name neighbours."""
    texts = draw(st.lists(st.text(alphabet="ab", max_size=5), max_size=7))
    nodes = make_nodes(texts, metadata=HOME)
    for scored in nodes:
        at(scored, draw(st.integers(-1, 9)), draw(st.none() | st.integers(0, 6)))
    return tie(nodes) if draw(st.booleans()) else nodes


@given(wrong_ranges(), st.integers(0, 3))
def test_wrong_ranges_lose_and_invent_nothing(nodes: list[NodeWithScore], gap: int) -> None:
    """Whatever the ranges say, each chunk is whole in some result, and each character is that of its chunk."""
    texts = {scored.node.node_id: included_text(scored.node) for scored in nodes}
    result = merged(nodes, gap)
    for text in texts.values():
        assert any(text in body for body in bodies(result))
    for scored in result:
        mark = stamp_of(scored.node)
        assert mark is not None
        body = included_text(scored.node)
        for start, end, node_id, _ in mark.get("spans", ()):
            assert body[start:end] == texts[node_id]


@given(wrong_ranges())
def test_a_second_pass_changes_nothing(nodes: list[NodeWithScore]) -> None:
    """Passages stay as they are when another merger sees them, by way of a plain list too."""
    once = merged(nodes)
    assert bodies(merged(once)) == bodies(merged(list(once))) == bodies(once)


def test_it_keeps_the_laws_of_stages() -> None:
    """Inputs unchanged, sync as async, every node reported, copies behave the same, also where chunks are joined."""
    cases = {
        "overlap": cut(TEXT, [SECOND, FIRST], scores=[None, 0.7]),
        "the same chunk twice": cut(TEXT, [FIRST, FIRST], ids=["a", "a"]),
        "disagreement": [at(scored, 0) for scored in make_nodes(["one text", "other text"], metadata=HOME)],
        "neighbours": tie(cut(TEXT, [FIRST, SECOND])),
    }
    check_postprocessor(PassageMerger, cases=cases)
    check_postprocessor(lambda: PassageMerger(max_gap=3), cases=cases)


# What a passage is


def test_a_passage_has_the_place_of_its_best_chunk() -> None:
    """Id, chunk id and place in the list are the best-ranked chunk's, the score is the best known one."""
    other = make_nodes(["Elsewhere."], ids=["x"])
    fields = [{**HOME, "chunk_id": "c2"}, {**HOME, "chunk_id": "c1"}]
    nodes = cut(TEXT, [SECOND, FIRST], scores=[float("nan"), 0.7], metadata=fields)
    result = run([PassageMerger()], [nodes[0], *other, nodes[1]])
    assert bodies(result) == [TEXT, "Elsewhere."]
    assert (result[0].node.node_id, result[0].score, place(result[0])) == ("n0", 0.7, (0, len(TEXT)))
    assert result[0].node.metadata["chunk_id"] == "c2"
    assert [origin_of(result[0].node, offset) for offset in (0, 46)] == [Origin("n1", "c1"), Origin("n0", "c2")]
    assert decided(result) == [("kept", "merged", "n0"), ("dropped", "merged", "n1")]
    assert [(d.value, d.twin) for d in result.trail.decisions] == [(len(TEXT), None), (60, "n0")]


def test_a_passage_says_only_what_all_its_chunks_say() -> None:
    """Metadata that differs or is missing in one chunk is left out; what one chunk hides stays hidden."""
    fields: list[dict[str, Any]] = [
        {**HOME, "tenant": 7, "window": "one", "lang": "en", "flag": True},
        {**HOME, "tenant": 7, "window": "two", "flag": 1, "extra": "x"},
    ]
    nodes = cut(TEXT, [FIRST, SECOND], metadata=fields)
    nodes[1].node.excluded_llm_metadata_keys = ["tenant"]
    (scored,) = merged(nodes)
    assert {name: scored.node.metadata[name] for name in scored.node.metadata if name in fields[0]} == {
        **HOME,
        "tenant": 7,
    }
    assert "tenant" in scored.node.excluded_llm_metadata_keys


def test_a_passage_has_no_embedding_and_the_neighbours_of_its_ends() -> None:
    """The vector of one chunk is not that of the passage; before and behind it stand other chunks than in it."""
    nodes = tie(cut(TEXT, [(0, 10), FIRST, SECOND, (len(TEXT) - 1, len(TEXT))]))
    nodes[1].node.embedding = [1.0]
    (scored,) = merged(nodes[1:3])
    assert scored.node.embedding is None
    names = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
    related = [scored.node.relationships[name] for name in names]
    assert [info.node_id for info in related if isinstance(info, RelatedNodeInfo)] == ["n0", "n3"]


def test_dedup_works_on_passages_and_their_origins_stay_known() -> None:
    """A paragraph that a better node holds is cut out of a passage; what is left still knows its chunk."""
    document = "\n\n".join(LONG[:3])
    places = [document.index(paragraph) for paragraph in LONG[:3]]
    chunks = cut(document, [(0, places[2]), (places[1], len(document))])
    result = run([PassageMerger(), ScopedDedup()], [*make_nodes([LONG[1]], ids=["x"], metadata=HOME), *chunks])
    assert bodies(result) == [LONG[1], f"{LONG[0]}\n\n{LONG[2]}"]
    node = result[1].node
    origins = [origin_of(node, bodies(result)[1].index(word)) for word in ("Printed", "Damaged", "photographs")]
    assert [origin.node_id if origin else None for origin in origins] == ["n0", "n1", "n1"]
    with pytest.raises(IndexError, match="none at"):
        origin_of(node, len(included_text(node)))


def test_the_origin_of_any_other_node_is_the_node() -> None:
    """Chunks that were not joined, stamped or not, are their own origin."""
    (scored,) = make_nodes(["text"], metadata={"chunk_id": "c"})
    assert origin_of(scored.node, 3) == origin_of(run([AttentionReorder()], [scored])[0].node, 0) == Origin("n0", "c")


# What is not joined


def _different(name: str, one: Any = "1", two: Any = "2") -> list[NodeWithScore]:
    return cut(TEXT, [FIRST, SECOND], metadata=[{**HOME, name: one}, {**HOME, name: two}])


FIELDS = ["document_id", "revision", "chunking_version", "section", "title", "heading", "page", "url", "last_updated"]


@pytest.mark.parametrize("name", FIELDS)
def test_nothing_is_joined_across_documents_versions_and_sections(name: str) -> None:
    """Chunks that a citation would tell apart stay apart, also where one of them does not say."""
    assert ids(merged(_different(name))) == ids(merged(_different(name, two=None))) == ["n0", "n1"]
    assert ids(merged(_different(name, two="1"))) == ["n0"]


@pytest.mark.parametrize("other", [("page-2", "h"), ("page-1", "h2")], ids=str)
def test_nothing_is_joined_across_sources(other: tuple[str, str]) -> None:
    """Positions count from the source: from another page of a PDF, or its earlier text, they mean nothing."""
    nodes = cut(TEXT, [FIRST, SECOND])
    for scored, (name, digest) in zip(nodes, [("page-1", "h"), other], strict=True):
        scored.node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=name, hash=digest)
    assert ids(merged(nodes)) == ["n0", "n1"]


def test_chunks_that_name_other_neighbours_stay_apart() -> None:
    """Two sections with the same beginning, each counted from its own start: fitting ranges are no proof."""
    nodes = cut(TEXT, [FIRST, SECOND])
    between = cut(TEXT, [(0, 5)], ids=["between"])
    tie([nodes[0], *between, nodes[1]])
    assert ids(merged(nodes)) == ["n0", "n1"]


def test_a_sentence_that_was_found_too_early_is_not_swallowed() -> None:
    """A neighbour whose range lies within the chunk before it has the place of an earlier, equal text: it stays."""
    document = "Is it allowed? No. Not even once? No. No."
    nodes = tie(cut(document, [(0, 37), (15, 18)]))
    assert bodies(merged(nodes)) == [document[:37], "No."]


def test_chunks_that_disagree_all_stay() -> None:
    """Where one chunk tells another text for the same place, nobody knows which ranges are right."""
    nodes = [*cut(TEXT, [FIRST, SECOND]), at(make_nodes(["Another text altogether."], ids=["x"], metadata=HOME)[0], 50)]
    assert ids(merged(nodes)) == ["n0", "n1", "x"]


def _as_kind(kind: type[ImageNode | IndexNode]) -> list[NodeWithScore]:
    fields = [text_node(scored).model_dump(exclude={"class_name"}) for scored in cut(TEXT, [FIRST, SECOND])]
    return [NodeWithScore(node=kind.model_validate({**values, "index_id": "i"})) for values in fields]


LEFT_ALONE = {
    "images": _as_kind(ImageNode),
    "links to other indexes": _as_kind(IndexNode),
    "blank": cut(TEXT[:60] + " \n ", [(0, 60), (60, 63)]),
    "no ranges": make_nodes([TEXT, TEXT], metadata=HOME),
    "ranges longer than the text": [at(scored, 0, 90) for scored in make_nodes([TEXT[:60], TEXT[46:]], metadata=HOME)],
    "a hole": cut(TEXT, [(0, 45), (46, len(TEXT))]),
    "no document": cut(TEXT, [FIRST, SECOND], metadata={"section": "s"}),
    "one id for two chunks": tie(cut(TEXT, [FIRST, SECOND, (50, 70)], ids=["n0", "n1", "n1"])),
}


@pytest.mark.parametrize("nodes", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_can_not_be_joined_is_left_alone(nodes: list[NodeWithScore]) -> None:
    """Nodes without a range that fits a text of their own pass unchanged and unreported."""
    result = run([PassageMerger()], nodes)
    assert (bodies(result), decided(result)) == (bodies(nodes), [])


def test_a_shortened_chunk_is_not_joined() -> None:
    """Behind a stage that cut a paragraph out, the rest is no contiguous part of the document any more."""
    document = f"{LONG[0]}\n\n{LONG[1]}\n\n{LONG[2]}"
    whole = make_nodes([LONG[1]], ids=["x"], metadata=HOME)
    chunks = cut(document, [(0, 150), (80, len(document))])
    result = run([ScopedDedup(), PassageMerger()], [*whole, *chunks])
    assert ids(result) == ["x", "n0", "n1"]


@pytest.mark.parametrize("gap", [-1, True, 1.0, "1", None, float("nan")])
def test_impossible_gaps_are_refused(gap: Any) -> None:
    """A gap is a whole number of characters."""
    with pytest.raises(ValidationError):
        PassageMerger(max_gap=gap)


# Cost


def test_long_texts_and_long_lists_take_linear_time() -> None:
    """Ten million characters in one chunk, and two thousand chunks that all lie in it, are joined in seconds."""
    long = "x" * 10_000_000
    inner = [Stretch(start=at_, end=at_ + 1000, text=long[:1000]) for at_ in range(2000)]
    stretches = [Stretch(start=0, end=len(long), text=long), *inner]
    joined = join(stretches)
    assert joined is not None
    assert joined.text == long
    chunks = cut(long[:100_000], [(at_, at_ + 200) for at_ in range(0, 99_801, 100)])
    (scored,) = merged(chunks)
    assert text_node(scored).text == long[:100_000]
    assert_within(5, lambda: (join(stretches), merged(chunks)))
