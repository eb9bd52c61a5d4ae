"""Engines that answer in steps or ask again: what they wrote themselves is marked, and the result survives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import EvaluationResult
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import MultiStepQueryEngine, RetryQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, GroundedResponse
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.synthesis.streaming import GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM
from tests.evaluators import Promptless

PART = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
WHOLE = {"verdict": "answered", "sources": ["S1", "S2"], "answer": "21 days [S1], and 90 for suppliers [S2]."}
QUESTION = "How long do customers and suppliers have?"


class TwoQuestions(BaseQuestionGenerator):
    """Splits every question into the same two."""

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Ask the tool both."""
        return [SubQuestion(sub_question=text, tool_name="help") for text in ("Customers?", "Suppliers?")]

    async def agenerate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Ask the tool both."""
        return self.generate(tools, query)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Have none."""


@pytest.fixture(autouse=True)
def default_llm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default model, which LlamaIndex's own engines look up. It answers nothing."""
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM([RuntimeError("not to be called")]))


def help_pages(llm: ScriptedLLM) -> GroundedQueryEngine:
    """An engine over one page."""
    nodes = [TextNode(id_="returns", text="Return within 21 days.", metadata={"document_id": "returns"})]
    return GroundedQueryEngine.from_args(VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4)), llm=llm)


def in_parts(last: ScriptedLLM, **options: Any) -> SubQuestionQueryEngine:
    """Answer two sub-questions, then the question from both answers."""
    tool = QueryEngineTool.from_defaults(help_pages(ScriptedLLM([PART])), name="help", description="Help pages.")
    return SubQuestionQueryEngine(
        question_gen=TwoQuestions(),
        response_synthesizer=CitingSynthesizer(last, **options),
        query_engine_tools=[tool],
        use_async=False,
        verbose=False,
    )


def in_steps(last: ScriptedLLM, **options: Any) -> MultiStepQueryEngine:
    """Answer two questions one after the other, then the question from both answers."""
    return MultiStepQueryEngine(
        help_pages(ScriptedLLM([PART])),
        StepDecomposeQueryTransform(llm=ScriptedLLM(["Customers?", "Suppliers?"])),
        response_synthesizer=CitingSynthesizer(last, **options),
        num_steps=2,
    )


@pytest.mark.parametrize("build", [in_parts, in_steps])
def test_answers_to_partial_questions_are_marked_as_no_documents(build: Any) -> None:
    """The two sub-answers are S1 and S2, synthetic and in the prompt; the real source follows in source_nodes."""
    llm = ScriptedLLM([WHOLE])
    response = build(llm).query(QUESTION)
    assert isinstance(response, GroundedResponse)
    assert [source.synthetic for source in response.grounded.sources] == [True, True]
    assert [citation.key for citation in response.citations] == ["S1", "S2"]
    assert llm.prompts[0].count("Within 21 days.") == 2
    assert [scored.node.node_id for scored in response.source_nodes][2:] == ["returns", "returns"]


@pytest.mark.parametrize("build", [in_parts, in_steps])
def test_keys_of_a_sub_answer_are_no_keys_of_the_answer(build: Any) -> None:
    """A model that copies a sub-answer can not cite by its markers: they name sources of another query."""
    copied = {"verdict": "answered", "sources": ["S2"], "answer": "Within 21 days."}
    llm = ScriptedLLM([copied])
    response = build(llm).query(QUESTION)
    blocks = XmlRenderer().recover(llm.prompts[0])
    assert len(blocks) == 2
    assert not any("[S" in text for _, text in blocks)
    assert [text for _, text in blocks] == [scored.node.text for scored in response.source_nodes[:2]]
    assert [citation.key for citation in response.citations] == ["S2"]
    shortened = [(each.reason, each.value) for each in response.grounded.decisions if each.action == "shortened"]
    assert shortened == [("old_keys", 5)] * 2


@pytest.mark.parametrize("build", [in_parts, in_steps])
def test_engines_in_steps_stream(build: Any) -> None:
    """The last answer streams, also where the engine writes metadata of its own onto the response."""
    response = build(ScriptedLLM([WHOLE], chunk_size=3), streaming=True).query(QUESTION)
    assert isinstance(response, GroundedStreamingResponse)
    assert len(list(response.response_gen)) > 2
    assert response.grounded.answer == WHOLE["answer"]
    if build is in_steps:
        assert response.metadata is not None
        assert len(response.metadata["sub_qa"]) == 2


def test_a_retrieved_node_is_a_document() -> None:
    """What came from a retriever is no engine's text, whether or not it has metadata."""
    nodes = [TextNode(id_="bare", text="Return within 21 days.")]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    response = GroundedQueryEngine.from_args(index, llm=ScriptedLLM([PART])).query(QUESTION)
    assert isinstance(response, GroundedResponse)
    assert [source.synthetic for source in response.grounded.sources] == [False]


class Strict(Promptless):
    """Passes what has an answer."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Look for a number."""
        return EvaluationResult(query=query, response=response, passing="21" in (response or ""), feedback="no number")


@pytest.fixture
def own_loop() -> Iterator[None]:
    """An event loop of the thread: LlamaIndex's evaluators make one where there is none, and leave it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_that_asks_again_keeps_our_result(streaming: bool) -> None:
    """RetryQueryEngine reads the refusal, asks a second time and hands on the answer with its citation."""
    llm = ScriptedLLM([{"verdict": "not_in_sources", "sources": [], "answer": ""}, PART], chunk_size=4)
    engine: BaseQueryEngine = help_pages(llm)
    engine._response_synthesizer._streaming = streaming  # type: ignore[attr-defined]
    response: Any = RetryQueryEngine(engine, Strict(), max_retries=1).query(QUESTION)
    assert isinstance(response, GroundedStreamingResponse if streaming else GroundedResponse)
    assert [citation.node_id for citation in response.citations] == ["returns"]
    assert len(llm.prompts) == 2


def test_a_sub_answer_of_markers_alone_is_no_source() -> None:
    """Without its markers it says nothing, and what shows no text is not shown."""
    bare = [NodeWithScore(node=TextNode(text="[S1]"))]
    result: Any = CitingSynthesizer(ScriptedLLM([PART])).synthesize(QUESTION, bare, additional_source_nodes=[])
    assert result.refusal.reason == "no_evidence"
    assert result.grounded.llm_calls == 0
    assert [each.reason for each in result.grounded.decisions] == ["old_keys", "empty_text"]


NO = {"verdict": "not_in_sources", "sources": [], "answer": ""}


def _over(replies: list[Any], last: ScriptedLLM, **options: Any) -> Any:
    tool = QueryEngineTool.from_defaults(help_pages(ScriptedLLM(replies)), name="help", description="Help pages.")
    engine = SubQuestionQueryEngine(
        question_gen=TwoQuestions(),
        response_synthesizer=CitingSynthesizer(last, **options),
        query_engine_tools=[tool],
        use_async=False,
        verbose=False,
    )
    return engine.query(QUESTION)


@pytest.mark.parametrize("streaming", [False, True])
def test_where_every_step_was_refused_there_is_no_evidence(streaming: bool) -> None:
    """The text of a refusal backs nothing: no model is asked to answer from it."""
    last = ScriptedLLM([WHOLE])
    response = _over([NO], last, streaming=streaming)
    assert (response.refusal.reason, last.prompts) == ("no_evidence", [])
    assert response.refusal.detail == "every step of the engine was refused"


def test_one_answer_among_refusals_is_something_to_answer_from() -> None:
    """The model sees what could not be answered beside what could."""
    last = ScriptedLLM([{**PART, "sources": ["S2"], "answer": "Suppliers: within 21 days [S2]."}])
    response = _over([NO, PART], last)
    assert [citation.key for citation in response.citations] == ["S2"]
    assert len(response.grounded.sources) == 2


@pytest.mark.parametrize("own", ["Nothing found, sorry.", {"no_evidence": "Nothing found, sorry."}])
def test_own_words_of_a_refusal_are_known(own: Any) -> None:
    """Those that this synthesizer was given; those of another engine look like any text."""
    nodes = [NodeWithScore(node=TextNode(text="Sub question: Who?\nResponse: Nothing found, sorry."))]
    last = ScriptedLLM([PART])
    for options, asked in (({"refusal_text": own}, 0), ({}, 1)):
        CitingSynthesizer(last, **options).synthesize(QUESTION, nodes, additional_source_nodes=[])
        assert len(last.prompts) == asked


def test_a_document_that_reads_like_a_refusal_is_a_document() -> None:
    """What was retrieved is shown, whatever it says."""
    text = "When nothing is found, the desk says: I found nothing about this in the documents."
    nodes = [NodeWithScore(node=TextNode(text=text, metadata={"document_id": "desk"}), score=0.5)]
    last = ScriptedLLM([PART])
    CitingSynthesizer(last).synthesize(QUESTION, nodes, additional_source_nodes=[])
    assert len(last.prompts) == 1
