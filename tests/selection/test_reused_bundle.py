"""One query bundle in several engines: nothing of a former query reaches a later answer, and no running one is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded import CitingSynthesizer, GroundedResponse
from llama_index_grounded.selection import ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.selection.trail import FOREIGN, collect
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.selection.parts import Foreign, drop_all, in_span, rebuild, rewrap, run
from tests.selection.test_engine import Holds, answer, decided

REPLY = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
THEIRS = make_nodes(["Theirs, one.", "Theirs, two."], ids=["theirs#1", "theirs#2"])
OURS = make_nodes(["Within 21 days."], ids=["ours#1"])
RUNS = 300


def boom(_: Any) -> Any:
    """Fail as a reranker without a connection does."""
    raise RuntimeError("boom")


def engine(nodes: list[NodeWithScore], *stages: Any, cites: bool = True) -> RetrieverQueryEngine:
    """Build an engine with our synthesizer or with LlamaIndex's own."""
    synthesizer = CitingSynthesizer(ScriptedLLM([REPLY])) if cites else get_response_synthesizer(llm=MockLLM())
    return RetrieverQueryEngine(Holds(nodes), response_synthesizer=synthesizer, node_postprocessors=list(stages))


def ask(one: Any, bundle: QueryBundle, *, in_async: bool) -> None:
    """Ask an engine whose answer does not matter."""
    if in_async:
        asyncio.run(one.aquery(bundle))
    else:
        one.query(bundle)


FORMER = {
    "answered by another synthesizer": engine(THEIRS, TokenBudget(top_n=1), cites=False),
    "refused by another synthesizer": engine(THEIRS, ScoreGate(min_score=99), cites=False),
    "emptied at last": engine(THEIRS, TokenBudget(top_n=1), Foreign(act=drop_all), cites=False),
    "failed": engine(THEIRS, TokenBudget(top_n=1), Foreign(act=boom)),
}


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("found", [OURS, []], ids=["found", "nothing"])
@pytest.mark.parametrize("former", FORMER)
def test_an_engine_without_stages_knows_nothing_of_another_one(
    former: str, found: list[NodeWithScore], in_async: bool
) -> None:
    """After a query that our synthesizer did not answer, the next engine's answer has no decision and no id of it."""
    bundle = QueryBundle("How long?")
    try:
        ask(FORMER[former], bundle, in_async=in_async)
    except RuntimeError:
        assert former == "failed"
    response = answer(engine(found), bundle, in_async=in_async)
    assert response.grounded.decisions == ()
    assert "theirs" not in response.grounded.model_dump_json()
    assert (response.refusal and response.refusal.reason) == (None if found else "no_evidence")


def test_by_hand_and_in_an_engine_are_two_queries() -> None:
    """An engine takes nothing over from stages by hand, and the synthesizer by hand nothing from an engine."""
    bundle = QueryBundle("How long?")
    ScoreGate(min_score=99).postprocess_nodes(THEIRS, bundle)
    assert answer(engine([]), bundle, in_async=False).grounded.decisions == ()
    ask(FORMER["refused by another synthesizer"], bundle, in_async=False)
    response = CitingSynthesizer(ScriptedLLM([REPLY])).synthesize(bundle, [])
    assert isinstance(response, GroundedResponse)
    assert response.grounded.decisions == ()


def test_a_span_of_the_application_may_hold_several_queries() -> None:
    """In a function that LlamaIndex traces, the first stage over new nodes begins anew, as it does outside of it."""

    async def both() -> list[Any]:
        bundle, gate = QueryBundle("How long?"), ScoreGate(min_score=0.1)
        gate.postprocess_nodes(THEIRS, bundle)
        return [run([gate], nodes, bundle).trail.decisions for nodes in (list[NodeWithScore](), OURS)]

    nothing, ours = asyncio.run(in_span(both()))
    assert nothing == ()
    assert [decision.node_id for decision in ours] == ["ours#1"]


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("act", [drop_all, rebuild])
@pytest.mark.parametrize("kind", [RetrieverQueryEngine, CitationQueryEngine])
def test_the_last_word_of_somebody_else_keeps_the_decisions(kind: Any, act: Any, in_async: bool) -> None:
    """Inside of one query, also in an engine that puts an event around its stages, no node needs to be left."""
    stages = [TokenBudget(top_n=1), Foreign(act=act)]
    synthesizer = CitingSynthesizer(ScriptedLLM([REPLY]))
    options: dict[str, Any] = {"response_synthesizer": synthesizer, "node_postprocessors": stages}
    one = kind(retriever=Holds(THEIRS), **options, **({"llm": MockLLM()} if kind is CitationQueryEngine else {}))
    response = answer(one, QueryBundle("How long?"), in_async=in_async)
    assert decided(response) == [("TokenBudget", "top_n", "theirs#2"), (FOREIGN, "not_returned", "theirs#1")]


def test_a_running_query_is_never_forgotten() -> None:
    """Of three hundred queries at a time over one bundle, each finds its decisions though no node is left."""

    async def one(number: int, bundle: QueryBundle) -> list[str]:
        nodes = await TokenBudget(top_n=1).apostprocess_nodes(
            make_nodes(["a", "b"], ids=[f"{number}a", f"{number}b"]), bundle
        )
        await asyncio.sleep(0)
        everybody.set() if number == RUNS - 1 else await everybody.wait()
        return [decision.node_id for decision in collect(drop_all(rewrap(nodes)), bundle).trail.decisions]

    async def ask_all() -> list[list[str]]:
        bundle = QueryBundle("q")
        return await asyncio.gather(*(one(number, bundle) for number in range(RUNS)))

    everybody = asyncio.Event()
    assert asyncio.run(ask_all()) == [[f"{number}b", f"{number}a"] for number in range(RUNS)]


def test_ended_queries_are_forgotten_first() -> None:
    """Tasks that ended without an answer leave a bounded number of trails, and the one that still runs keeps its."""

    async def lost(bundle: QueryBundle) -> None:
        await ScopedDedup().apostprocess_nodes(make_nodes(["text"]), bundle)

    async def main() -> tuple[int, list[str]]:
        bundle = QueryBundle("q")
        nodes = await TokenBudget(top_n=1).apostprocess_nodes(make_nodes(["a", "b"]), bundle)
        for _ in range(RUNS):
            await asyncio.create_task(lost(bundle))
        (mirror,) = [value for value in vars(bundle).values() if hasattr(value, "_entries")]
        decisions = collect(drop_all(rewrap(nodes)), bundle).trail.decisions
        return len(mirror._entries), [decision.node_id for decision in decisions]

    kept, decisions = asyncio.run(main())
    assert kept <= 256
    assert decisions == ["n1", "n0"]
