"""The stages inside LlamaIndex's own query engines, between its own postprocessors, sync, async and concurrent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.postprocessor import LongContextReorder, PrevNextNodePostprocessor, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index_grounded import CitingSynthesizer, GroundedResponse
from llama_index_grounded.selection import AttentionReorder, ScopedDedup, ScoreGate, TokenBudget, default_postprocessors
from llama_index_grounded.selection.trail import FOREIGN
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.selection.parts import (
    Foreign,
    WordEmbedding,
    bodies,
    drop_all,
    ids,
    look_and_pass,
    rebuild,
    redact_in_place,
    rewrap,
)

QUESTION = "What happens to remaining items when the shutdown deadline expires?"
DEADLINE = "Remaining items are drained only while the shutdown deadline allows it."
CANCELLATION = "When it expires, active I/O is cancelled and unfinished work stays on the durable retry path."
TOKEN = "The deadline token is passed to each asynchronous operation by the worker pool."
RUNBOOK = [f"{DEADLINE}\n\n{CANCELLATION}", f"{DEADLINE}\n\n{CANCELLATION}\n\n{TOKEN}"]
OTHER = "The cafeteria opens at eight and closes at six from Monday to Friday."
REPLY = {"verdict": "answered", "sources": ["S1"], "answer": "It is cancelled [S1]."}


def runbook() -> VectorStoreIndex:
    """Index two overlapping chunks of a runbook and a chunk of something else."""
    nodes = [
        TextNode(id_=name, text=text, metadata={"document_id": document, "nested": {"tags": ["a"]}})
        for name, text, document in zip(("first", "second", "other"), [*RUNBOOK, OTHER], ("r", "r", "c"), strict=True)
    ]
    nodes[0].relationships[NodeRelationship.NEXT] = nodes[1].as_related_node_info()
    nodes[1].relationships[NodeRelationship.PREVIOUS] = nodes[0].as_related_node_info()
    return VectorStoreIndex(nodes, embed_model=WordEmbedding())


class Holds(BaseRetriever):
    """A retriever that hands out the very nodes that it holds."""

    def __init__(self, nodes: Sequence[NodeWithScore]) -> None:
        self.nodes = list(nodes)
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(self.nodes)


def answer(engine: Any, query: QueryBundle | str, *, in_async: bool) -> GroundedResponse:
    """Ask an engine, sync or async."""
    response = asyncio.run(engine.aquery(query)) if in_async else engine.query(query)
    assert isinstance(response, GroundedResponse)
    return response


def decided(response: GroundedResponse) -> list[tuple[str, str, str]]:
    """Return who decided what about which node, moves left out."""
    return [(d.stage, d.reason, d.node_id) for d in response.grounded.decisions if d.action != "moved"]


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("question, best", [(CANCELLATION, "first"), (TOKEN, "second")])
def test_overlapping_chunks_are_paid_for_once(question: str, best: str, in_async: bool) -> None:
    """Of the two runbook chunks, each paragraph stands in the prompt once, whichever of them ranks better."""
    llm = ScriptedLLM(replies=[REPLY])
    engine = runbook().as_query_engine(
        llm=llm,
        similarity_top_k=3,
        node_postprocessors=default_postprocessors(min_score=0.1, max_tokens=400),
        response_synthesizer=CitingSynthesizer(llm),
    )
    response = answer(engine, question, in_async=in_async)
    (prompt,) = llm.prompts
    sources = "\n\n".join(bodies(response.source_nodes))
    for paragraph in (DEADLINE, CANCELLATION, TOKEN):
        assert sources.count(paragraph) == 1
        assert prompt.count(paragraph) - question.count(paragraph) == 1
    assert decided(response)[0] == ("ScoreGate", "best_score", best)
    assert ids(response.source_nodes)[0] == best
    # The first chunk says nothing that the second does not.
    assert len(response.source_nodes) == (3 if best == "first" else 2)


@pytest.mark.parametrize("in_async", [False, True])
def test_asking_twice_leaves_the_docstore_as_it_was(in_async: bool) -> None:
    """Neither texts nor metadata, nested ones included, nor the second answer differ."""
    index = runbook()
    before = {name: node.to_dict() for name, node in index.docstore.docs.items()}
    llm = ScriptedLLM(replies=[REPLY])
    engine = index.as_query_engine(
        llm=llm,
        similarity_top_k=3,
        node_postprocessors=default_postprocessors(max_tokens=400),
        response_synthesizer=CitingSynthesizer(llm),
    )
    one, two = (answer(engine, QUESTION, in_async=in_async) for _ in range(2))
    assert {name: node.to_dict() for name, node in index.docstore.docs.items()} == before
    assert one.grounded.decisions == two.grounded.decisions
    assert one.source_nodes == two.source_nodes


def between(postprocessor: Any, retriever: Any) -> RetrieverQueryEngine:
    """Build an engine with a foreign postprocessor between our stages."""
    return RetrieverQueryEngine(
        retriever=retriever,
        node_postprocessors=[
            ScoreGate(min_score=0.1),
            ScopedDedup(),
            postprocessor,
            TokenBudget(max_tokens=500, top_n=2),
            AttentionReorder(),
        ],
        response_synthesizer=CitingSynthesizer(ScriptedLLM(replies=[REPLY])),
    )


NODES = make_nodes([*RUNBOOK, OTHER], ids=["first", "second", "other"], metadata={"document_id": "r"})
OURS = [("ScoreGate", "best_score", "first"), ("ScopedDedup", "duplicate", "second")]


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize(
    "postprocessor, packed, later",
    [
        (SimilarityPostprocessor(similarity_cutoff=0.75), ["first", "second"], [(FOREIGN, "not_returned", "other")]),
        (LongContextReorder(), None, []),
        (Foreign(act=rewrap), ["first", "second"], [("TokenBudget", "top_n", "other")]),
        (Foreign(act=redact_in_place), ["first", "second"], [("TokenBudget", "top_n", "other")]),
        (Foreign(act=look_and_pass), ["first", "second"], [("TokenBudget", "top_n", "other")]),
    ],
    ids=["similarity", "long context", "rewrap", "in place", "look"],
)
def test_foreign_postprocessors_in_between(postprocessor: Any, packed: Any, later: Any, in_async: bool) -> None:
    """The answer knows every decision, and the right nodes are packed, whoever stands between our stages."""
    response = answer(between(postprocessor, Holds(NODES)), QUESTION, in_async=in_async)
    assert response.answerable
    assert decided(response)[:2] == OURS
    if packed is not None:
        assert ids(response.source_nodes) == packed
        assert decided(response)[2:] == later


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_a_postprocessor_that_rebuilds_every_node(last: bool, in_async: bool) -> None:
    """A prompt compressor between our stages or after the last one loses our marks, and not the decisions."""
    engine = between(Foreign(act=rebuild), Holds(NODES))
    if last:
        engine = RetrieverQueryEngine(
            retriever=Holds(NODES),
            node_postprocessors=[ScoreGate(min_score=0.1), ScopedDedup(), Foreign(act=rebuild)],
            response_synthesizer=CitingSynthesizer(ScriptedLLM(replies=[REPLY])),
        )
    response = answer(engine, QUESTION, in_async=in_async)
    assert response.answerable
    assert decided(response)[:2] == OURS


@pytest.mark.parametrize("in_async", [False, True])
def test_a_postprocessor_that_drops_everything(in_async: bool) -> None:
    """Nothing is left: the answer is a refusal without a call, and still knows what our stages had decided."""
    response = answer(between(Foreign(act=drop_all), Holds(NODES)), QUESTION, in_async=in_async)
    assert (response.grounded.llm_calls, str(response.refusal and response.refusal.reason)) == (0, "no_evidence")
    assert decided(response) == [*OURS, *((FOREIGN, "not_returned", name) for name in ("first", "second", "other"))]


@pytest.mark.parametrize("in_async", [False, True])
def test_neighbours_that_are_added_in_between(in_async: bool) -> None:
    """A neighbour without a score comes in after the gate, takes part in dedup and budget, and is a source."""
    index = runbook()
    added = PrevNextNodePostprocessor(docstore=index.docstore, num_nodes=1, mode="both")
    llm = ScriptedLLM(replies=[REPLY])
    engine = RetrieverQueryEngine(
        retriever=index.as_retriever(similarity_top_k=1),
        node_postprocessors=[ScoreGate(min_score=0.1), added, *default_postprocessors(max_tokens=500)],
        response_synthesizer=CitingSynthesizer(llm),
    )
    response = answer(engine, QUESTION, in_async=in_async)
    assert sorted(ids(response.source_nodes)) == ["first", "second"]
    assert llm.prompts[0].count(CANCELLATION) == 1
    assert decided(response)[0][:2] == ("ScoreGate", "best_score")
    assert [scored.score is None for scored in response.source_nodes].count(True) == 1


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("nodes, reason", [([], "no_evidence"), (NODES[2:], "low_score")], ids=["nothing", "weak"])
def test_nothing_found_is_not_the_same_as_something_weak(nodes: Any, reason: str, in_async: bool) -> None:
    """An empty retrieval and a weak one refuse for different reasons, both without a call."""
    llm = ScriptedLLM(replies=[REPLY])
    engine = RetrieverQueryEngine(
        retriever=Holds(nodes),
        node_postprocessors=default_postprocessors(min_score=0.8, max_tokens=400),
        response_synthesizer=CitingSynthesizer(llm),
    )
    response = answer(engine, QUESTION, in_async=in_async)
    assert (str(response.refusal and response.refusal.reason), llm.prompts) == (reason, [])
    assert [d.value for d in response.grounded.decisions] == [scored.score for scored in nodes]


@pytest.mark.parametrize("shared", [True, False], ids=["one bundle", "own bundles"])
def test_fifty_concurrent_queries(shared: bool) -> None:
    """Fifty async queries, over one bundle or their own, answer alike, each with its own decisions, once."""
    engine, emptied = between(Foreign(act=rewrap), Holds(NODES)), between(Foreign(act=drop_all), Holds(NODES))
    alone = decided(answer(engine, QUESTION, in_async=True))

    async def ask() -> list[Any]:
        bundle = QueryBundle(QUESTION)
        bundles = [bundle if shared else QueryBundle(QUESTION) for _ in range(50)]
        return await asyncio.gather(*(engines[n % 2].aquery(bundles[n]) for n in range(50)))

    engines = (engine, emptied)
    for number, response in enumerate(asyncio.run(ask())):
        assert response.answerable == (number % 2 == 0)
        assert decided(response) == alone if number % 2 == 0 else decided(response)[:2] == OURS


def test_tenants_in_threads_do_not_meet() -> None:
    """Two tenants' engines share their stages and synthesizer: in 100 queries no id and no text crosses over."""
    stages = default_postprocessors(min_score=0.1, max_tokens=300)
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=[REPLY]))
    engines = {
        tenant: RetrieverQueryEngine(
            retriever=Holds(make_nodes([f"{tenant} {text}" for text in RUNBOOK], ids=[f"{tenant}1", f"{tenant}2"])),
            node_postprocessors=list(stages),
            response_synthesizer=synthesizer,
        )
        for tenant in ("acme", "umbrella")
    }
    responses: dict[str, list[Any]] = {tenant: [] for tenant in engines}

    def ask(tenant: str) -> None:
        for _ in range(50):
            responses[tenant].append(engines[tenant].query(QUESTION))

    threads = [threading.Thread(target=ask, args=(tenant,)) for tenant in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for tenant, found in responses.items():
        assert len(found) == 50
        names = {name for response in found for name in ids(response.source_nodes)}
        names |= {decision.node_id for response in found for decision in response.grounded.decisions}
        assert names == {f"{tenant}1", f"{tenant}2"}
        assert all(text.startswith(tenant) for response in found for text in bodies(response.source_nodes))


def test_a_budget_for_the_synthesizer_keeps_the_prompt_inside_the_window() -> None:
    """What is sent, with the reply, stays under the model's window, and the answer counts what was packed."""
    llm = ScriptedLLM(replies=[REPLY], context_window=2_000)
    synthesizer = CitingSynthesizer(llm, num_output=200)
    nodes = make_nodes([f"Passage {n} says this. " + "word " * 150 for n in range(20)])
    engine = RetrieverQueryEngine(
        retriever=Holds(nodes),
        node_postprocessors=default_postprocessors(synthesizer=synthesizer),
        response_synthesizer=synthesizer,
    )
    response = engine.query(QUESTION)
    assert isinstance(response, GroundedResponse)
    assert 2 <= len(response.source_nodes) < 20
    assert synthesizer.counter.count(llm.prompts[0]) <= 2_000 - 200 - 256
    dropped = [d.node_id for d in response.grounded.decisions if d.reason == "over_budget"]
    assert sorted(dropped + ids(response.source_nodes)) == sorted(ids(nodes))


def test_retrieving_by_hand_then_synthesizing() -> None:
    """An engine's ``retrieve`` and ``synthesize`` can be called one after the other, with the same bundle."""
    engine, bundle = between(Foreign(act=rewrap), Holds(NODES)), QueryBundle(QUESTION)
    nodes = engine.retrieve(bundle)
    response = engine.synthesize(bundle, list(nodes))
    assert isinstance(response, GroundedResponse)
    assert decided(response)[:2] == OURS
    assert all("llama_index_grounded" not in scored.node.metadata for scored in response.source_nodes)


def test_nodes_in_a_document_store_stay_clean() -> None:
    """Nodes that came through the stages and are stored afterwards carry nothing that confuses a later query."""
    store = SimpleDocumentStore()
    packed = between(Foreign(act=rewrap), Holds(NODES)).retrieve(QueryBundle(QUESTION))
    store.add_documents([scored.node for scored in packed])
    loaded = SimpleDocumentStore.from_dict(store.to_dict()).docs.values()
    stored = [NodeWithScore(node=node, score=0.9) for node in loaded]
    response = answer(between(Foreign(act=rewrap), Holds(stored)), QUESTION, in_async=False)
    assert response.answerable
    assert set(ids(response.source_nodes)) <= {"first", "second", "other"}
