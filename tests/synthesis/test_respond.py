"""The response: everything about the answer, JSON-ready, over the very nodes that were packed."""

from __future__ import annotations

import copy
import json
import pickle
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from llama_index_grounded import (
    AttentionReorder,
    CitingSynthesizer,
    GroundedResponse,
    GroundedResult,
    ScopedDedup,
    TokenBudget,
)
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter

OK = {"verdict": "answered", "sources": ["S2", "S1"], "answer": "Within 21 days [S2]."}
QUESTION = "How long can I return a book?"
NOTHING = {"verdict": "not_in_sources", "sources": [], "answer": "No."}


def ask(nodes: list[NodeWithScore], reply: dict[str, Any] = OK, **more: Any) -> GroundedResponse:
    """Answer from these nodes."""
    response = CitingSynthesizer(ScriptedLLM([reply])).synthesize(QUESTION, nodes, **more)
    assert isinstance(response, GroundedResponse)
    return response


def as_json(response: GroundedResponse) -> str:
    """Write the part of the metadata that is promised to be JSON-ready as strict JSON."""
    assert response.metadata is not None
    return json.dumps(response.metadata["grounded"], allow_nan=False)


scores = st.none() | st.floats() | st.floats(width=32).map(np.float32)


@settings(max_examples=40)
@given(
    texts=st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=3),
    title=st.text(st.characters(), max_size=10),
    score=scores,
    answer=st.text(st.characters(), max_size=20),
    identifier=st.text(st.characters(), max_size=5),
)
@example(texts=["x"], title="a\ud800b", score=None, answer="y", identifier="S\ud800")
@example(texts=["x"], title="", score=float("nan"), answer="\ud83d", identifier="\udc00")
def test_a_result_round_trips_through_json(
    texts: list[str], title: str, score: Any, answer: str, identifier: str
) -> None:
    """Any titles, scores and words, halves of surrogate pairs included, can be written to JSON and read back."""
    nodes = make_nodes(texts, metadata={"title": title})
    nodes[0].score = score
    reply = {"verdict": "answered", "sources": ["S1", identifier], "answer": answer}
    response = ask(nodes, reply)
    assert GroundedResult.model_validate_json(response.grounded.model_dump_json()) == response.grounded
    assert GroundedResult.model_validate(json.loads(as_json(response))) == response.grounded


def test_the_shortcuts_are_the_result() -> None:
    """Text, verdict, citations, refusal and answerable of the response are those of `grounded`."""
    for reply in (OK, NOTHING):
        response = ask(make_nodes(["One.", "Two."]), reply)
        grounded = response.grounded
        assert isinstance(response, Response)
        assert str(response) == response.response == grounded.answer
        assert response.citations == grounded.citations
        assert response.refusal == grounded.refusal
        assert response.verdict == grounded.verdict
        assert response.answerable is grounded.answerable is (response.refusal is None)


def test_source_nodes_are_all_packed_nodes_in_prompt_order() -> None:
    """Cited or not, every node that was shown comes back, in the order of the keys, with the text that was shown."""
    query = QueryBundle(QUESTION)
    nodes = make_nodes(["One.", "Two.", "Three.", "word " * 300], ids=["a", "b", "c", "d"])
    for stage in (TokenBudget(max_tokens=100), AttentionReorder()):
        nodes = stage.postprocess_nodes(nodes, query)
    llm = ScriptedLLM([OK])
    response = CitingSynthesizer(llm).synthesize(query, nodes)
    assert isinstance(response, GroundedResponse)
    assert [scored.node.node_id for scored in response.source_nodes] == ["a", "c", "b"]
    assert [source.node_id for source in response.grounded.sources] == ["a", "c", "b"]
    for scored in response.source_nodes:
        assert scored.node.get_content() in llm.prompts[0]
    assert [source.cited for source in response.grounded.sources] == [True, True, False]


def test_a_shortened_node_comes_back_as_it_was_shown() -> None:
    """Where a stage took a repeated paragraph out, prompt and source node hold the rest, and the given node all."""
    deadline = "Remaining items are drained only while the shutdown deadline still allows for it."
    token = "The deadline token is passed on to each asynchronous operation that is started."
    nodes = make_nodes([deadline, f"{deadline}\n\n{token}"], metadata={"document_id": "runbook"})
    query, llm = QueryBundle(QUESTION), ScriptedLLM([OK])
    response = CitingSynthesizer(llm).synthesize(query, ScopedDedup().postprocess_nodes(nodes, query))
    assert [scored.node.get_content() for scored in response.source_nodes] == [deadline, token]
    assert llm.prompts[0].count(deadline) == 1
    assert nodes[1].node.get_content() == f"{deadline}\n\n{token}"


@pytest.mark.parametrize(
    "node",
    [
        Document(text="Within 21\u200b days."),
        IndexNode(text="Within 21\u200b days.", index_id="other"),
        Node(text_resource=MediaResource(text="Within 21\u200b days.")),
    ],
    ids=lambda node: type(node).__name__,
)
def test_every_kind_of_text_node_is_a_source(node: BaseNode) -> None:
    """Documents, index nodes and plain nodes keep their class and come back with the text that was shown."""
    response = ask([NodeWithScore(node=node, score=0.5)], {**OK, "sources": ["S1"]})
    (scored,) = response.source_nodes
    assert type(scored.node) is type(node)
    assert scored.node.get_content() == "Within 21 days."
    assert response.citations[0].node_id == node.node_id


def test_a_refusal_shows_what_was_looked_at() -> None:
    """A model's "not in the sources" keeps the packed nodes, none of them cited."""
    response = ask(make_nodes(["One.", "Two."]), NOTHING)
    assert [scored.node.node_id for scored in response.source_nodes] == ["n0", "n1"]
    assert [source.cited for source in response.grounded.sources] == [False, False]


def test_additional_source_nodes_follow() -> None:
    """Nodes that an engine adds stand behind the packed ones and are no source of the answer."""
    extra = make_nodes(["Sub-answer."], ids=["extra"])
    response = ask(make_nodes(["One.", "Two."]), additional_source_nodes=extra)
    assert [scored.node.node_id for scored in response.source_nodes] == ["n0", "n1", "extra"]
    assert [source.node_id for source in response.grounded.sources] == ["n0", "n1"]
    assert [scored.node.node_id for scored in ask([], additional_source_nodes=extra).source_nodes] == ["extra"]


def test_nothing_of_ours_stays_on_the_nodes() -> None:
    """Metadata, excluded keys, relations and hash of a node that went through all stages are the given ones."""
    node = TextNode(
        id_="a",
        text="Return a book within 21 days.",
        metadata={"title": "Returns", "tags": ["x"]},
        excluded_llm_metadata_keys=["tags"],
        excluded_embed_metadata_keys=["title"],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")},
        embedding=[0.1, 0.2],
    )
    given_nodes = [NodeWithScore(node=node, score=0.5)]
    before = copy.deepcopy(given_nodes)
    query, nodes = QueryBundle(QUESTION), list(given_nodes)
    for stage in (ScopedDedup(), TokenBudget(max_tokens=100), AttentionReorder()):
        nodes = stage.postprocess_nodes(nodes, query)
    response = ask(nodes)
    assert given_nodes == before
    assert response.source_nodes == before
    assert response.source_nodes[0].node.hash == node.hash
    assert response.source_nodes[0].get_content(MetadataMode.ALL) == node.get_content(MetadataMode.ALL)
    assert response.metadata is not None
    assert response.metadata["a"] == {"title": "Returns", "tags": ["x"]}
    assert set(response.metadata) == {"a", "grounded"}


def test_a_citation_resolves_to_chunk_document_and_metadata() -> None:
    """A citation names the chunk and the document, and its node's metadata can be looked up by the node id."""
    metadata = {
        "document_id": "returns",
        "chunk_id": "returns-3",
        "revision": 4,
        "chunking_version": "v2",
        "section": "Return window",
        "title": "Returns",
        "page": 2,
        "url": "/help/returns#return-window",
        "shelf": "B",
    }
    response = ask(make_nodes(["Within 21 days."], scores=[0.75], metadata=metadata))
    (citation,) = response.citations
    assert citation.model_dump(exclude={"quote", "start", "end"}) == {
        "key": "S1",
        "node_id": "n0",
        "document_id": "returns",
        "chunk_id": "returns-3",
        "revision": "4",
        "version": "v2",
        "section": "Return window",
        "title": "Returns",
        "page": "2",
        "url": "/help/returns#return-window",
        "score": 0.75,
    }
    assert response.metadata is not None
    assert response.metadata[citation.node_id]["shelf"] == "B"


def test_a_node_without_metadata_is_citable() -> None:
    """Without metadata the ids fall back to the node id, and what is unknown is None, never the text "None"."""
    (citation,) = ask(make_nodes(["Within 21 days."], scores=[None], metadata={})).citations
    assert (citation.document_id, citation.chunk_id, citation.node_id) == ("n0", "n0", "n0")
    assert (citation.title, citation.section, citation.page, citation.url, citation.score) == (None,) * 5


def test_a_stored_result_needs_no_list_positions() -> None:
    """After a round trip that loses an uncited source, the citations still say where they point."""
    nodes = make_nodes(["One.", "Two.", "Three."], metadata=[{"document_id": f"d{n}"} for n in range(3)])
    stored = json.loads(as_json(ask(nodes, {**OK, "sources": ["S3"], "answer": "Words [S3]."})))
    del stored["sources"][0]
    loaded = GroundedResult.model_validate(stored)
    assert [(citation.key, citation.document_id) for citation in loaded.citations] == [("S3", "d2")]


def test_the_audit_log_names_keys_and_holds_no_text() -> None:
    """The log record has keys, ids, decisions and counts, and no word of documents, titles, answer or reply."""
    nodes = make_nodes(["Documentwords.", "Documentwords."], metadata={"title": "Titlewords", "url": "/urlwords"})
    query = QueryBundle("Questionwords?")
    packed = ScopedDedup().postprocess_nodes(nodes, query)
    reply = {"verdict": "answered", "sources": ["S1", "idwords"], "answer": "Answerwords [S9]."}
    response = CitingSynthesizer(ScriptedLLM([reply])).synthesize(query, packed)
    audit = response.grounded.audit()
    written = json.dumps(audit)
    assert "words" not in written
    assert audit["cited"] == ["S1"]
    assert [source["key"] for source in audit["sources"]] == [s.key for s in response.grounded.sources]
    assert audit["invalid_source_ids"] == ["(no key)", "S9"]
    assert len(audit["decisions"]) == len(response.grounded.decisions)


def test_the_elapsed_time_is_that_of_the_whole_synthesis() -> None:
    """Counting and rendering belong to it, not the calls alone."""

    def slow(text: str) -> list[str]:
        time.sleep(0.03)
        return text.split()

    synthesizer = CitingSynthesizer(ScriptedLLM([OK], delay=0.01), counter=TokenCounter(tokenizer=slow))
    response = synthesizer.synthesize(QUESTION, make_nodes(["One.", "Two."]))
    assert isinstance(response, GroundedResponse)
    assert 40 <= response.grounded.elapsed_ms < 5000


def test_a_response_can_be_copied_and_pickled() -> None:
    """Caches and queues get an equal response back."""
    response = ask(make_nodes(["One.", "Two."]))
    for other in (copy.deepcopy(response), pickle.loads(pickle.dumps(response))):  # noqa: S301 - our own bytes
        assert other.grounded == response.grounded
        assert str(other) == str(response)


@pytest.mark.parametrize("reply, passing", [("YES", True), ("NO", False)])
async def test_llamaindex_evaluators_read_the_response(reply: str, passing: bool) -> None:
    """FaithfulnessEvaluator takes the response as it takes LlamaIndex's own."""
    evaluator = FaithfulnessEvaluator(llm=ScriptedLLM([reply]))
    result = await evaluator.aevaluate_response(QUESTION, response=ask(make_nodes(["One.", "Two."])))
    assert result.passing is passing
