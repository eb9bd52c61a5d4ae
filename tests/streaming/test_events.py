"""A stream as its readers see it: sources first, text while the model writes, the result last, as LlamaIndex has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse

from llama_index_grounded import CitingSynthesizer, GroundedResponse
from llama_index_grounded.schema import ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.streaming.kinds import OK, QUESTION, SOURCES, ask, astreamed, events, streamed, text_of

WORDS = {**OK, "answer": "Within 21 days [S1], unread. Keep the receipt [S2]."}


def test_sources_come_before_the_model_is_called() -> None:
    """The first event holds the sources in prompt order, and no request has gone out when it arrives."""
    llm = ScriptedLLM([OK])
    reading = streamed(llm).events()
    first = next(reading)
    assert isinstance(first, SourcesEvent)
    assert [(source.key, source.node_id) for source in first.sources] == [("S1", "n0"), ("S2", "n1")]
    assert llm.prompts == []
    next(reading)
    assert len(llm.prompts) == 1


async def test_async_sources_come_before_the_model_is_called() -> None:
    """The async stream also begins with the sources and calls the model only when more is asked for."""
    llm = ScriptedLLM([OK])
    reading = (await astreamed(llm)).aevents()
    assert isinstance(await anext(reading), SourcesEvent)
    assert llm.prompts == []
    assert isinstance(await anext(reading), TextEvent)
    assert len(llm.prompts) == 1
    await reading.aclose()


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_text_comes_while_the_model_writes_and_the_result_last(mode: str) -> None:
    """Between sources and result the text comes in several parts, which join to the answer of the result."""
    asked = ask(ScriptedLLM([WORDS], chunk_size=5), mode)
    assert len(asked.texts) > 5
    assert "".join(asked.texts) == asked.result.answer == WORDS["answer"]


def _order(seen: list[StreamEvent]) -> list[type[StreamEvent]]:
    return [type(event) for event in seen]


@pytest.mark.parametrize(
    "llm, nodes, options",
    [
        (ScriptedLLM([OK], chunk_size=7), SOURCES, {}),
        (ScriptedLLM([OK]), [], {}),
        (ScriptedLLM([{**OK, "verdict": "not_in_sources"}]), SOURCES, {}),
        (ScriptedLLM([RuntimeError("down")]), SOURCES, {}),
        (ScriptedLLM(["no object"], chunk_size=2), SOURCES, {}),
        (ScriptedLLM([OK]), SOURCES, {"num_output": 8192}),
        (ScriptedLLM([OK]), SOURCES, {"timeout": 1e-9}),
        (ScriptedLLM([{**OK, "answer": "x" * 99}], chunk_size=7), SOURCES, {"max_answer_chars": 20}),
    ],
    ids=[
        "answer",
        "no nodes",
        "not in sources",
        "outage",
        "unreadable",
        "too long a prompt",
        "deadline",
        "long answer",
    ],
)
def test_every_stream_has_one_beginning_some_text_and_one_end(
    llm: ScriptedLLM, nodes: list[Any], options: dict[str, Any]
) -> None:
    """Answers and refusals of any reason: one SourcesEvent, at least one TextEvent, one ResultEvent, and their text."""
    seen = events(llm, nodes, **options)
    assert _order(seen) == [SourcesEvent, *[TextEvent] * (len(seen) - 2), ResultEvent]
    last = seen[-1]
    assert isinstance(last, ResultEvent)
    assert len(seen) > 2
    assert text_of(seen) == last.grounded.answer


@pytest.mark.parametrize("nodes", [SOURCES, []], ids=["answer", "refusal"])
def test_a_stream_is_of_llamaindexs_class(nodes: list[Any]) -> None:
    """With `streaming=True` an answer and a refusal are a StreamingResponse, in async an AsyncStreamingResponse."""
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]), streaming=True)
    response = synthesizer.synthesize(QUESTION, nodes)
    assert isinstance(response, GroundedStreamingResponse)
    assert isinstance(response, StreamingResponse)
    in_async = asyncio.run(synthesizer.asynthesize(QUESTION, nodes))
    assert isinstance(in_async, AsyncGroundedStreamingResponse)
    assert isinstance(in_async, AsyncStreamingResponse)
    response.close()


def _texts(response: GroundedStreamingResponse) -> str:
    return "".join(response.response_gen)


def _whole(response: GroundedStreamingResponse) -> str:
    whole = response.get_response()
    assert isinstance(whole, GroundedResponse)
    return str(whole)


def _result(response: GroundedStreamingResponse) -> str:
    return response.grounded.answer


@pytest.mark.parametrize("second", [_texts, _whole, str, _result])
@pytest.mark.parametrize("first", [_texts, _whole, str, _result])
@pytest.mark.parametrize("reply", [WORDS, {**OK, "sources": []}], ids=["answer", "refusal"])
def test_a_stream_can_be_read_in_every_way_and_twice(
    reply: dict[str, Any],
    first: Callable[[GroundedStreamingResponse], str],
    second: Callable[[GroundedStreamingResponse], str],
) -> None:
    """`response_gen` once, `get_response()`, `str()` and `grounded` give the same text in any order, with one call."""
    llm = ScriptedLLM([reply], chunk_size=4)
    response = streamed(llm)
    text = first(response)
    assert text == response.grounded.answer
    assert second(response) == ("" if first is second is _texts else text)
    assert "".join(event.text for event in response.events() if isinstance(event, TextEvent)) == text
    assert len(llm.prompts) == 1


async def test_an_async_stream_can_be_read_in_every_way_and_twice() -> None:
    """`async_response_gen()`, `response_gen`, `get_response()` and `aevents()` play the same stream, with one call."""
    llm = ScriptedLLM([WORDS], chunk_size=4)
    response = await astreamed(llm)
    texts = [text async for text in response.async_response_gen()]
    assert len(texts) > 5
    assert "".join(texts) == WORDS["answer"]
    assert [text async for text in response.response_gen] == texts
    assert [text async for text in response.async_response_gen()] == texts
    whole = await response.get_response()
    assert isinstance(whole, Response)
    assert str(whole) == WORDS["answer"] == response.grounded.answer
    assert len(llm.prompts) == 1


def test_an_async_stream_can_be_printed_outside_of_a_loop() -> None:
    """`str()` of an async stream reads it to its end."""
    assert str(asyncio.run(astreamed(ScriptedLLM([OK])))) == OK["answer"]


async def test_an_async_stream_can_be_printed_inside_of_a_loop() -> None:
    """A log handler that calls `str()` in the running loop gets the text, and the reader after it too."""
    response = await astreamed(ScriptedLLM([OK], chunk_size=4))
    assert str(response) == OK["answer"]
    assert "".join([text async for text in response.async_response_gen()]) == OK["answer"]


@pytest.mark.parametrize("nodes, text", [(SOURCES, OK["answer"]), ([], "I found nothing about this in the documents.")])
async def test_streams_print_themselves(nodes: list[Any], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`print_response_stream` prints the answer or the refusal, sync and async."""
    streamed(ScriptedLLM([OK], chunk_size=3), nodes).print_response_stream()
    assert capsys.readouterr().out.strip() == text
    await (await astreamed(ScriptedLLM([OK], chunk_size=3), nodes)).print_response_stream()
    assert capsys.readouterr().out.strip() == text


def test_source_nodes_are_there_before_the_first_text() -> None:
    """All packed nodes stand in the response from the start, in prompt order, with the ids of what was retrieved."""
    llm = ScriptedLLM([OK])
    response = streamed(llm)
    assert [scored.node.node_id for scored in response.source_nodes] == ["n0", "n1"]
    assert [scored.score for scored in response.source_nodes] == [0.9, 0.8]
    assert llm.prompts == []
    assert "n0" in response.get_formatted_sources()
    response.close()


def test_source_nodes_are_exactly_what_was_sent() -> None:
    """Of five nodes only those that fit are sources, source nodes and events; the others are decisions."""
    nodes = make_nodes(["word " * 150 for _ in range(5)])
    llm = ScriptedLLM([OK], context_window=2000)
    response = streamed(llm, nodes)
    kept = [scored.node.node_id for scored in response.source_nodes]
    assert 0 < len(kept) < 5
    assert [source.node_id for source in response.grounded.sources] == kept
    assert llm.prompts[0].count("<source id=") == len(kept)
    gone = {decision.node_id for decision in response.grounded.decisions if decision.action == "dropped"}
    assert gone == {"n0", "n1", "n2", "n3", "n4"} - set(kept)


def test_metadata_is_complete_at_the_end() -> None:
    """A stream's metadata is LlamaIndex's mapping, and has the JSON-ready result once the stream has ended."""
    response = streamed(ScriptedLLM([OK]))
    assert response.metadata is not None
    assert set(response.metadata) == {"n0", "n1"}
    result = response.grounded
    assert response.metadata["grounded"] == result.model_dump(mode="json")


def test_a_stream_has_the_shortcuts_of_a_response() -> None:
    """`answerable`, `verdict`, `citations` and `refusal` read the stream to its end first."""
    response = streamed(ScriptedLLM([OK], chunk_size=3))
    assert (response.answerable, response.verdict, response.refusal) == (True, "answered", None)
    assert [citation.node_id for citation in response.citations] == ["n0"]


class _Picky(ScriptedLLM):
    """Sends chunks without text between the others, as providers do for roles and citations."""

    def _chunks(self, reply: str) -> Any:
        for chunk in super()._chunks(reply):
            for delta in ("", None):
                empty = chunk.model_copy(update={"delta": delta})
                yield empty
            yield chunk


@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_chunks_without_text_are_passed_over(mode: str) -> None:
    """A delta that is empty or missing neither ends nor garbles a stream."""
    asked = ask(_Picky(replies=[OK], chunk_size=6), mode)
    assert "".join(asked.texts) == asked.result.answer == OK["answer"]
