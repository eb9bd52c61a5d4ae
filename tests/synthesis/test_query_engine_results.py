"""The engine returns our responses on every way, as its types say, and takes a synthesizer of ours alone."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, GroundedResponse, ScoreGate
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.synthesis import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM
from tests.synthesis.test_query_engine import OK, QUESTION, make_index


@pytest.fixture
def spans() -> Generator[SimpleSpanHandler, None, None]:
    """A handler that keeps the spans of one test."""
    handler, root = SimpleSpanHandler(), get_dispatcher()
    root.add_span_handler(handler)
    yield handler
    root.span_handlers.remove(handler)


@pytest.mark.parametrize("min_score", [None, 9.0], ids=["answer", "refusal"])
@pytest.mark.parametrize("streaming", [False, True])
def test_the_types_of_the_engine_are_true(streaming: bool, min_score: float | None) -> None:
    """Answers and refusals, streamed or not, sync and async, are of the class that the method's type names."""
    engine = GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK]), streaming=streaming, min_score=min_score)
    response = engine.query(QUESTION)
    assert type(response) is (GroundedStreamingResponse if streaming else GroundedResponse)
    assert response.grounded.answerable is (min_score is None)

    async def ask() -> tuple[type, bool]:
        response = await engine.aquery(QUESTION)
        whole = response if isinstance(response, GroundedResponse) else await response.get_response()
        return type(response), whole.grounded.answerable

    expected = AsyncGroundedStreamingResponse if streaming else GroundedResponse
    assert asyncio.run(ask()) == (expected, min_score is None)


def test_the_types_cost_no_span(spans: SimpleSpanHandler) -> None:
    """A query is one span of LlamaIndex's own method, as in any other engine."""
    GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK])).query(QUESTION)
    names = [span.id_.rsplit("-", 5)[0] for span in spans.completed_spans]
    assert [name for name in names if name.endswith(".query")] == ["GroundedQueryEngine.query"]


@pytest.mark.parametrize("synthesizer", [None, "core"])
def test_another_synthesizer_is_refused(synthesizer: Any) -> None:
    """The constructor takes what returns our responses and nothing else, so that the types hold."""
    if synthesizer == "core":
        synthesizer = get_response_synthesizer(llm=ScriptedLLM([OK]))
    with pytest.raises(ConfigurationError, match="must be a CitingSynthesizer"):
        GroundedQueryEngine(make_index().as_retriever(), synthesizer)


def test_the_parts_can_be_given_to_the_constructor() -> None:
    """Built by hand from its parts, the engine answers, or refuses where a stage says so."""
    retriever, synthesizer = make_index().as_retriever(), CitingSynthesizer(ScriptedLLM([OK]))
    assert GroundedQueryEngine(retriever, synthesizer).query(QUESTION).answerable
    gated = GroundedQueryEngine(retriever, synthesizer, [ScoreGate(min_score=9.0)])
    assert not gated.query(QUESTION).answerable
