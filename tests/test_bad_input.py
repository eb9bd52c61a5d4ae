"""Input that nobody means to send: the whole chain gives a clear error or the documented result, and loses nothing."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from llama_index.core.schema import ImageNode, IndexNode, MediaResource, Node, NodeWithScore, QueryBundle, TextNode

from llama_index_grounded import CitingSynthesizer, GroundedResult, default_postprocessors
from llama_index_grounded.rendering import (
    JsonRenderer,
    KeyValueRenderer,
    MarkdownRenderer,
    Renderer,
    TableRenderer,
    XmlRenderer,
)
from llama_index_grounded.selection import (
    ConflictFlagger,
    NearDuplicateFilter,
    PassageMerger,
    ScoreGate,
    SourceOrder,
)
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.streaming.kinds import OK, QUESTION

RENDERERS: list[Renderer] = [XmlRenderer(), JsonRenderer(), MarkdownRenderer(), TableRenderer(), KeyValueRenderer()]


def whole_chain(synthesizer: CitingSynthesizer, order: Any = None) -> Any:
    """Build every stage that needs no model."""
    return default_postprocessors(
        gate=ScoreGate(min_score=0.05, on_missing_score="pass"),
        passages=PassageMerger(),
        near_duplicates=NearDuplicateFilter(),
        conflicts=ConflictFlagger(confirm=False),
        synthesizer=synthesizer,
        order=order,
    )


def answer(
    nodes: list[NodeWithScore], renderer: Renderer | None = None, order: Any = None, **llm: Any
) -> GroundedResult:
    """Put nodes through every stage and a synthesizer, and see that each is packed or reported."""
    synthesizer = CitingSynthesizer(ScriptedLLM([OK], **llm), renderer=renderer)
    query, left = QueryBundle(QUESTION), nodes
    for stage in whole_chain(synthesizer, order):
        left = stage.postprocess_nodes(left, query)
    response: Any = synthesizer.synthesize(query, left)
    result: GroundedResult = response.grounded
    told = {decision.node_id for decision in result.decisions} | {source.node_id for source in result.sources}
    assert {scored.node.node_id for scored in nodes} <= told
    assert GroundedResult.model_validate_json(result.model_dump_json()) == result
    json.dumps(result.audit())
    return result


def cyclic() -> dict[str, Any]:
    """Make a mapping that holds itself."""
    fields: dict[str, Any] = {"title": "Returns", "document_id": "d"}
    fields["self"] = fields
    return fields


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: type(renderer).__name__)
@pytest.mark.parametrize(
    "fields",
    [
        {"title": {"deep": {"deeper": ["x"] * 9}}, "section": ["a", {"b": 1}], "page": None},
        {"entities": [{"name": {"x": 1}}, "plain", None, 3], "title": b"bytes", "last_updated": object()},
        {"document_id": ["a"], "chunk_id": {"a": 1}, "revision": float("nan"), "section": "\ud800"},
        {"": "", "title": "", "section": " ", 3: 4},
    ],
    ids=["nested", "entities", "identity", "empty"],
)
def test_metadata_of_any_shape(fields: dict[str, Any], renderer: Renderer) -> None:
    """Nested, foreign and empty values are left out or shown as text; nothing that was given is changed."""
    nodes = [
        NodeWithScore(node=TextNode.model_construct(id_=f"n{place}", text=text, metadata=dict(fields)), score=0.5)
        for place, text in enumerate(["Within 21 days.", "Keep the receipt."])
    ]
    before = [dict(scored.node.metadata) for scored in nodes]
    assert answer(nodes, renderer).answerable
    assert [scored.node.metadata for scored in nodes] == before


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: type(renderer).__name__)
def test_metadata_that_holds_itself(renderer: Renderer) -> None:
    """A cycle hangs nothing and overflows nothing."""
    fields = cyclic()
    nodes = [NodeWithScore(node=TextNode.model_construct(id_="a", text="Within 21 days.", metadata=fields), score=0.5)]
    assert answer(nodes, renderer).sources[0].title == "Returns"


def test_ten_megabytes_in_one_node() -> None:
    """It does not fit, which is a decision; the small node behind it is packed; and it takes seconds, not minutes."""
    huge = "Books can be returned within 21 days.\n\n" * 250_000
    nodes = make_nodes([huge, "Within 21 days."], metadata=[{"document_id": "a"}, {"document_id": "b"}])
    started = time.monotonic()
    result = answer(nodes)
    assert time.monotonic() - started < 60
    assert [source.node_id for source in result.sources] == ["n1"]
    assert ("n0", "over_budget") in {(one.node_id, one.reason) for one in result.decisions}


def test_nodes_of_other_types() -> None:
    """Images without text are left out with a decision; index nodes and plain nodes with text are sources."""
    nodes = [
        NodeWithScore(node=ImageNode(id_="image", image_path="x.png"), score=0.9),
        NodeWithScore(node=IndexNode(id_="index", text="Within 21 days.", index_id="other"), score=0.8),
        NodeWithScore(node=Node(id_="node", text_resource=MediaResource(text="Keep the receipt.")), score=0.7),
        NodeWithScore(node=Node(id_="empty"), score=0.6),
    ]
    result = answer(nodes)
    assert {source.node_id for source in result.sources} == {"index", "node"}
    assert {one.node_id for one in result.decisions if one.action == "dropped"} == {"image", "empty"}


def test_one_id_with_two_texts() -> None:
    """Two texts under one node id are two sources; neither is lost to the other."""
    nodes = make_nodes(["Within 21 days.", "Keep the receipt."], ids=["same", "same"])
    result = answer(nodes)
    assert [source.key for source in result.sources] == ["S1", "S2"]


@pytest.mark.parametrize(
    "scores", [[-5.0, -9.0], [1e308, 1e300], [0.0, -0.0], [float("inf"), float("nan")], [None, None]]
)
def test_scores_of_any_size(scores: list[Any]) -> None:
    """Negative, huge and infinite scores are compared as they are, or unknown; the result stays writable."""
    result = answer(make_nodes(["Within 21 days.", "Keep the receipt."], scores=scores))
    assert result.refusal is None or result.refusal.reason == "low_score"


def test_empty_strings_everywhere() -> None:
    """Nodes without text, title, section and ids of their own end in no evidence, and no model is called."""
    fields = {"document_id": "", "section": "", "title": "", "page": "", "last_updated": ""}
    llm = ScriptedLLM([OK])
    result = answer(make_nodes(["", " ", "\n"], metadata=fields))
    assert result.refusal is not None
    assert result.refusal.reason == "no_evidence"
    assert llm.prompts == []


@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: type(renderer).__name__)
@pytest.mark.parametrize("order", [None, SourceOrder(by="date"), SourceOrder(by="position")])
def test_halves_of_surrogate_pairs(renderer: Renderer, order: Any) -> None:
    """PDF readers write them; texts, titles and questions with them go through every stage and every format."""
    nodes = make_nodes(
        ["Within \ud83d 21 days.", "\udc00", "Keep \ud800\udc00 it."],
        metadata={"title": "\ud800", "document_id": "\udfff", "last_updated": "\ud800"},
    )
    before = copy.deepcopy(nodes)
    assert answer(nodes, renderer, order).answerable
    assert nodes == before
