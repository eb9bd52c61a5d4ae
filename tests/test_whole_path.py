"""From stored pages to a cited answer: pgvector, real embeddings, the usual stages and LlamaIndex's Ollama class."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.llms.ollama import Ollama

from llama_index_grounded import (
    AttentionReorder,
    CitingSynthesizer,
    GroundedQueryEngine,
    GroundedResponse,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
)
from support.corpus import chunk, load_documents
from tests.ollama_server import OllamaServer
from tests.postgres import PgStore, WordLlamaEmbedding

COPIES = "What discount do I get for 120 copies?"
CASH = "Can I turn my gift card into cash?"
CAFE = "Is there a café in the store?"


@pytest.fixture
def index(pg_store: PgStore, wordllama_embed: WordLlamaEmbedding) -> VectorStoreIndex:
    """The bookstore's pages in PostgreSQL."""
    storage = StorageContext.from_defaults(vector_store=pg_store("whole_path", 256))
    return VectorStoreIndex(chunk(load_documents()), storage_context=storage, embed_model=wordllama_embed)


@pytest.fixture
def llm(ollama_server: OllamaServer) -> Iterator[Ollama]:
    """LlamaIndex's client for the scripted server."""
    llm = Ollama(model="gemma3:4b", base_url=ollama_server.url, context_window=8192)
    yield llm
    client: Any = llm.client
    client.close()


def engine_over(index: VectorStoreIndex, llm: Ollama, **options: Any) -> GroundedQueryEngine:
    """Build the engine of the documentation."""
    options = {"similarity_top_k": 10, "min_score": 0.35, "max_tokens": 1200, **options}
    return GroundedQueryEngine.from_args(index, llm=llm, **options)


def shown(server: OllamaServer, engine: GroundedQueryEngine, question: str) -> list[tuple[str, str, str]]:
    """Return key, document and text of each source that a question brings into the prompt, without asking a model."""
    query, before = QueryBundle(question), len(server.requests)
    synthesizer = engine._response_synthesizer
    assert isinstance(synthesizer, CitingSynthesizer)
    plan = synthesizer.preview(query, engine.retrieve(query))
    assert len(server.requests) == before
    texts = [scored.node.get_content() for scored in plan.nodes]
    return [(s.key, s.document_id, text) for s, text in zip(plan.sources, texts, strict=True)]


def key_of(server: OllamaServer, engine: GroundedQueryEngine, question: str, document: str, words: str) -> str:
    """Return the key under which the model sees the chunk of a document that holds certain words."""
    keys = [key for key, found, text in shown(server, engine, question) if found == document and words in text]
    assert len(keys) == 1
    return keys[0]


def grounded_response(response: object) -> GroundedResponse:
    """See that a response is ours."""
    assert isinstance(response, GroundedResponse)
    return response


@pytest.mark.parametrize("in_async", [False, True])
def test_the_question_about_120_copies_cites_the_contract(
    index: VectorStoreIndex, llm: Ollama, ollama_server: OllamaServer, in_async: bool
) -> None:
    """The contract's chunk is among the sources, becomes a valid citation with its link, and the log names its key."""
    engine = engine_over(index, llm)
    key = key_of(ollama_server, engine, COPIES, "corporate-orders", "15 %")
    answer = {"verdict": "answered", "sources": [key, "S99"], "answer": f"15 % for 50 to 199 copies [{key}][S99]."}
    ollama_server.script(answer)
    asked = asyncio.run(engine.aquery(COPIES)) if in_async else engine.query(COPIES)
    response = grounded_response(asked)
    (citation,) = response.citations
    assert (citation.key, citation.document_id) == (key, "corporate-orders")
    assert citation.url is not None
    assert "corporate-orders" in citation.node_id
    assert "#" in citation.url
    assert str(response) == f"15 % for 50 to 199 copies [{key}]."
    audit = json.loads(json.dumps(response.grounded.audit()))
    assert audit["cited"] == [key]
    assert {"key": key, "document_id": "corporate-orders"}.items() <= next(
        source.items() for source in audit["sources"] if source["key"] == key
    )
    assert audit["invalid_source_ids"] == ["S99"]
    assert response.grounded.usage.prompt_tokens == pytest.approx(
        response.grounded.usage.estimated_prompt_tokens, abs=16
    )
    assert f'<source id="{key}"' in ollama_server.chats[0]["messages"][-1]["content"]


def test_a_no_about_gift_cards_is_an_answer(index: VectorStoreIndex, llm: Ollama, ollama_server: OllamaServer) -> None:
    """The verdict "no" with the gift-card page as its source is an answer."""
    engine = engine_over(index, llm)
    key = key_of(ollama_server, engine, CASH, "gift-cards", "cannot be turned into cash")
    ollama_server.script({"verdict": "no", "sources": [key], "answer": f"No, it can not [{key}]."})
    response = grounded_response(engine.query(CASH))
    assert (response.answerable, response.verdict, response.refusal) == (True, "no", None)
    assert [citation.document_id for citation in response.citations] == ["gift-cards"]


def test_a_cafe_below_the_threshold_costs_no_call(
    index: VectorStoreIndex, llm: Ollama, ollama_server: OllamaServer
) -> None:
    """A question whose best score is under `min_score` is refused before anything is sent."""
    open_gate = engine_over(index, llm, min_score=None)
    best = max(scored.score or 0.0 for scored in open_gate.retrieve(QueryBundle(CAFE)))
    response = grounded_response(engine_over(index, llm, min_score=best + 0.01).query(CAFE))
    assert response.refusal is not None
    assert response.refusal.reason == "low_score"
    assert response.grounded.top_score == pytest.approx(best)
    assert (ollama_server.requests, response.grounded.llm_calls, response.source_nodes) == ([], 0, [])
    assert len(response.grounded.decisions) == 10


def test_a_filter_keeps_other_readers_pages_out(
    index: VectorStoreIndex, llm: Ollama, ollama_server: OllamaServer
) -> None:
    """With the audience filtered where pages are looked up, no page for the staff reaches prompt or log."""
    filters = MetadataFilters(filters=[MetadataFilter(key="audience", value="customer")])
    ollama_server.script({"verdict": "not_in_sources", "sources": [], "answer": "No."})
    response = grounded_response(
        engine_over(index, llm, filters=filters, min_score=None).query("When do suppliers get damaged books back?")
    )
    documents = {source.document_id for source in response.grounded.sources}
    assert documents
    assert "supplier-returns" not in documents
    assert "supplier-returns" not in json.dumps(response.grounded.audit())
    assert "pallet" not in json.dumps(ollama_server.chats)


def test_the_engine_of_the_documentation(index: VectorStoreIndex, llm: Ollama, ollama_server: OllamaServer) -> None:
    """`as_query_engine` with the stages and the synthesizer spelt out answers with everything in the response."""
    ollama_server.script({"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."})
    query_engine = index.as_query_engine(
        llm=llm,
        similarity_top_k=10,
        node_postprocessors=[
            ScoreGate(min_score=0.35),
            ScopedDedup(),
            TokenBudget(max_tokens=1200, top_n=4),
            AttentionReorder(),
        ],
        response_synthesizer=CitingSynthesizer(llm, url_for="/help/{document_id}#{section_slug}"),
    )
    response = grounded_response(query_engine.query("How many days do I have to return a book?"))
    assert str(response) == "21 days [S1]."
    (citation,) = response.citations
    assert citation.node_id == response.source_nodes[0].node.node_id
    assert citation.url is not None
    assert citation.url.startswith(f"/help/{citation.document_id}")
    assert len(response.grounded.sources) <= 4
    assert sum(source.tokens or 0 for source in response.grounded.sources) <= 1200
    assert {decision.stage for decision in response.grounded.decisions} >= {"ScoreGate", "TokenBudget"}


def test_an_empty_table_is_no_evidence(
    pg_store: PgStore, wordllama_embed: WordLlamaEmbedding, llm: Ollama, ollama_server: OllamaServer
) -> None:
    """A store without a row gives the refusal no_evidence and no call."""
    empty = VectorStoreIndex.from_vector_store(pg_store("empty_path", 256), embed_model=wordllama_embed)
    response = grounded_response(engine_over(empty, llm).query(CAFE))
    assert response.refusal is not None
    assert (response.refusal.reason, ollama_server.requests) == ("no_evidence", [])
