"""A preview by the engine: what a query would send, from retrieval to the last stage, without the answering model."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_grounded import (
    AttentionReorder,
    CitingSynthesizer,
    GroundedQueryEngine,
    ScopedDedup,
    ScoreGate,
    default_postprocessors,
)
from llama_index_grounded.selection import SufficiencyGate
from llama_index_grounded.synthesis import Plan
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes
from tests.synthesis.test_query_engine import OK, QUESTION, WordEmbedding, make_index


class Rebuilding(BaseNodePostprocessor):
    """Somebody else's stage: it makes new nodes of the two best."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=each.node.node_id, text=each.node.get_content()), score=each.score)
            for each in nodes[:2]
        ]


class Emptying(BaseNodePostprocessor):
    """Somebody else's stage: it drops everything."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return []


CHAINS: dict[str, list[Any]] = {
    "usual": [ScopedDedup(), AttentionReorder()],
    "refusing": [ScoreGate(min_score=9.0)],
    "rebuilt": [ScoreGate(min_score=0.1, drop_below=0.5), Rebuilding(), ScopedDedup()],
    "rebuilt last": [ScoreGate(min_score=0.1), Rebuilding()],
    "emptied": [ScoreGate(min_score=0.1), Emptying()],
    "no stage": [],
}


def make_engine(llm: ScriptedLLM, **options: Any) -> GroundedQueryEngine:
    """Build an engine that finds all four texts."""
    return GroundedQueryEngine.from_args(make_index(), llm, similarity_top_k=4, **options)


def preview(engine: GroundedQueryEngine, query: str | QueryBundle, in_async: bool) -> Plan:
    """Preview in one of both ways."""
    return asyncio.run(engine.apreview(query)) if in_async else engine.preview(query)


def told(plan: Plan) -> Plan:
    """Leave out the nodes, whose stamps number the runs."""
    return dataclasses.replace(plan, nodes=())


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("chain", CHAINS)
def test_a_preview_tells_what_the_query_then_does(chain: str, in_async: bool) -> None:
    """Prompt, sources, decisions, refusal, score and tokens are those of the query, also where a bundle is reused."""
    llm = ScriptedLLM([OK])
    engine = make_engine(llm, node_postprocessors=CHAINS[chain])
    for query in (QUESTION, QueryBundle(QUESTION)):
        plan = preview(engine, query, in_async)
        asked = len(llm.prompts)
        result = (asyncio.run(engine.aquery(query)) if in_async else engine.query(query)).grounded
        assert llm.prompts[asked:] == ["\n\n".join(each.content or "" for each in plan.messages)] * bool(plan.messages)
        assert [source.node_id for source in plan.sources] == [source.node_id for source in result.sources]
        assert (plan.decisions, plan.refusal, plan.top_score) == (result.decisions, result.refusal, result.top_score)
        assert plan.tokens == result.usage.estimated_prompt_tokens
        assert told(preview(engine, query, in_async)) == told(plan)


@pytest.mark.parametrize("in_async", [False, True])
def test_a_preview_asks_no_model(in_async: bool) -> None:
    """The answering model gets no request; a stage that has a judge asks it, and the plan counts that."""
    llm, judge = ScriptedLLM([RuntimeError("not to be called")]), ScriptedLLM(['{"reason": "-", "sufficient": true}'])
    plan = preview(make_engine(llm, node_postprocessors=[SufficiencyGate(llm=judge)]), QUESTION, in_async)
    assert (llm.prompts, len(judge.prompts), plan.calls, len(plan.sources)) == ([], 1, 1, 4)


@pytest.mark.parametrize("in_async", [False, True])
def test_a_blank_question_has_no_preview(in_async: bool) -> None:
    """It is refused before it is embedded, as by a query."""
    embedding = WordEmbedding()
    engine = GroundedQueryEngine.from_args(make_index(embedding), ScriptedLLM([OK]))
    with pytest.raises(ValueError, match="blank"):
        preview(engine, " \n", in_async)
    assert embedding.asked == []


async def test_previews_at_a_time_do_not_mix() -> None:
    """Twenty previews over one bundle at once are each the same as one alone."""
    engine, bundle = make_engine(ScriptedLLM([OK]), node_postprocessors=CHAINS["rebuilt"]), QueryBundle(QUESTION)
    alone = told(await engine.apreview(QUESTION))
    for plan in await asyncio.gather(*(engine.apreview(bundle) for _ in range(20))):
        assert told(plan) == alone


class SlowWindow(CitingSynthesizer):
    """A synthesizer that must not look its window up in a thread that runs a loop."""

    def context_window(self) -> int:
        """See that nobody else has to wait for this."""
        assert not _runs_a_loop(), "a request in the loop's own thread holds up all other queries"
        return super().context_window()


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_an_async_preview_does_not_hold_up_the_loop() -> None:
    """The window, which a server may have to be asked for, is looked up outside of the loop's thread."""
    engine = make_engine(None, response_synthesizer=SlowWindow(ScriptedLLM([OK])))  # type: ignore[arg-type]
    assert len(asyncio.run(engine.apreview(QUESTION)).sources) == 4


def test_an_engine_with_another_retriever_is_one_of_ours() -> None:
    """It keeps its stages and its synthesizer, its preview, and its refusal of a blank question."""
    stages = default_postprocessors(top_n=1)
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]))
    engine = GroundedQueryEngine(FixedRetriever(make_nodes(["Here."])), synthesizer, stages)
    other = engine.with_retriever(FixedRetriever(make_nodes(["There.", "And there."])))
    assert isinstance(other, GroundedQueryEngine)
    assert [scored.text for scored in other.preview("Where?").nodes] == ["There."]
    assert [scored.text for scored in engine.preview("Where?").nodes] == ["Here."]
    with pytest.raises(ValueError, match="blank"):
        other.query(" ")
