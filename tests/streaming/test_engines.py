"""Streams inside LlamaIndex's engines: built, chatted with, watched by handlers, read in other threads."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from pydantic import Field

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, GroundedResponse
from llama_index_grounded.events import GroundedEndEvent
from llama_index_grounded.schema import ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import OK, QUESTION, SOURCES

NOTHING = "I found nothing about this in the documents."


def index(*texts: str) -> VectorStoreIndex:
    """Index texts by vectors that are all alike."""
    nodes = [TextNode(id_=f"n{place}", text=text) for place, text in enumerate(texts)]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))


def by_index(llm: ScriptedLLM, *texts: str) -> RetrieverQueryEngine:
    """Build an engine as LlamaIndex's documentation does."""
    synthesizer = CitingSynthesizer(llm, streaming=True)
    engine = index(*texts).as_query_engine(llm=llm, response_synthesizer=synthesizer)
    assert isinstance(engine, RetrieverQueryEngine)
    return engine


def by_args(llm: ScriptedLLM, *texts: str) -> RetrieverQueryEngine:
    """Build an engine in one line."""
    return GroundedQueryEngine.from_args(index(*texts), llm=llm, streaming=True)


BUILDERS = [by_index, by_args]
Builder = Callable[..., RetrieverQueryEngine]


@pytest.mark.parametrize("build", BUILDERS)
async def test_an_engine_streams(build: Builder) -> None:
    """`query` returns a StreamingResponse, `aquery` an AsyncStreamingResponse, and both bring the events in order."""
    engine = build(ScriptedLLM([OK], chunk_size=4), "Within 21 days.")
    response = engine.query(QUESTION)
    assert isinstance(response, GroundedStreamingResponse)
    assert isinstance(response, StreamingResponse)
    seen = list(response.events())
    in_async = await engine.aquery(QUESTION)
    assert isinstance(in_async, AsyncGroundedStreamingResponse)
    assert isinstance(in_async, AsyncStreamingResponse)
    seen_in_async: list[StreamEvent] = [event async for event in in_async.aevents()]
    for events in (seen, seen_in_async):
        assert isinstance(events[0], SourcesEvent)
        assert isinstance(events[-1], ResultEvent)
        assert sum(isinstance(event, TextEvent) for event in events) > 2
    assert str(response) == str(in_async) == OK["answer"]


@pytest.mark.parametrize("build", BUILDERS)
async def test_an_engine_that_finds_nothing_streams_its_refusal(build: Builder) -> None:
    """Without a node the classes are the same, the text is the refusal, and no model is called."""
    llm = ScriptedLLM([OK])
    engine = build(llm)
    response = engine.query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert list(response.response_gen) == [NOTHING]
    in_async = await engine.aquery(QUESTION)
    assert isinstance(in_async, AsyncStreamingResponse)
    assert [text async for text in in_async.async_response_gen()] == [NOTHING]
    assert llm.prompts == []


def chat_engine(llm: ScriptedLLM, *texts: str) -> CondenseQuestionChatEngine:
    """Build LlamaIndex's chat engine over our engine."""
    # LlamaIndex's default memory leaves a connection to SQLite open.
    memory = ChatMemoryBuffer.from_defaults(token_limit=2000)
    return CondenseQuestionChatEngine.from_defaults(query_engine=by_args(llm, *texts), llm=llm, memory=memory)


@pytest.mark.parametrize("texts", [("Within 21 days.", "Keep it."), ()], ids=["answer", "refusal"])
async def test_the_four_chats_tell_the_same(texts: tuple[str, ...]) -> None:
    """chat, stream_chat, achat and astream_chat have the same text and, in the tool's raw output, the same result."""
    told: list[tuple[str, list[str], list[str]]] = []
    for way in ("chat", "stream_chat", "achat", "astream_chat"):
        engine = chat_engine(ScriptedLLM([OK], chunk_size=4), *texts)
        answer: Any = getattr(engine, way)(QUESTION, chat_history=[])
        if asyncio.iscoroutine(answer):
            answer = await answer
        if way == "stream_chat":
            text = "".join(answer.response_gen)
        elif way == "astream_chat":
            text = "".join([part async for part in answer.async_response_gen()])
        else:
            text = str(answer)
        raw = answer.sources[0].raw_output
        cited = [citation.node_id for citation in raw.citations]
        told.append((text, [scored.node.node_id for scored in raw.source_nodes], cited))
        assert engine.chat_history[-1].content == text
    assert told == [told[0]] * 4
    assert told[0][0] == (OK["answer"] if texts else NOTHING)
    assert len(told[0][1]) == len(texts)


def test_a_chat_leaves_the_engine_as_it_was() -> None:
    """LlamaIndex switches streaming on and off for a chat; afterwards the engine streams as before."""
    llm = ScriptedLLM([OK])
    engine = chat_engine(llm, "Within 21 days.")
    assert str(engine.chat(QUESTION, chat_history=[])) == OK["answer"]
    assert isinstance(engine._query_engine.query(QUESTION), GroundedStreamingResponse)


class _Reader(BaseEventHandler):
    """Keeps every event, and reads each response in it, as many log handlers do."""

    seen: list[BaseEvent] = Field(default_factory=list)
    texts: list[str] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> Any:
        """Read."""
        self.seen.append(event)
        if isinstance(event, (QueryEndEvent, SynthesizeEndEvent)):
            self.texts.append(str(event.response))


@pytest.fixture
def reader() -> Generator[_Reader, None, None]:
    """A handler that reads all responses, at the root of LlamaIndex's dispatchers."""
    handler = _Reader()
    root = get_dispatcher()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


async def test_a_handler_that_reads_a_stream_takes_nothing_away(reader: _Reader) -> None:
    """A handler that calls `str(event.response)` gets the text, and so does the user after it, sync and async."""
    llm = ScriptedLLM([OK], chunk_size=4)
    engine = by_args(llm, "Within 21 days.")
    response = engine.query(QUESTION)
    assert isinstance(response, GroundedStreamingResponse)
    assert len(list(response.response_gen)) > 2
    assert response.grounded.answer == OK["answer"]
    in_async = await engine.aquery(QUESTION)
    assert isinstance(in_async, AsyncGroundedStreamingResponse)
    assert "".join([text async for text in in_async.async_response_gen()]) == OK["answer"]
    assert reader.texts == [OK["answer"]] * 4
    assert len(llm.prompts) == 2


@pytest.mark.parametrize("end", ["read", "closed", "dropped"])
def test_every_stream_ends_in_one_event(reader: _Reader, end: str) -> None:
    """LlamaIndex's end of synthesis and our own are reported once, with the response, however a stream ends."""
    response = CitingSynthesizer(ScriptedLLM([OK], chunk_size=4), streaming=True).synthesize(QUESTION, SOURCES)
    assert isinstance(response, GroundedStreamingResponse)
    reading = response.events()
    next(reading)
    next(reading)
    if end == "read":
        list(reading)
    elif end == "closed":
        response.close()
    del reading, response
    ends = [event for event in reader.seen if isinstance(event, SynthesizeEndEvent)]
    assert len(ends) == sum(isinstance(event, GroundedEndEvent) for event in reader.seen) == 1
    last = ends[0].response
    assert isinstance(last, GroundedResponse)
    assert (last.refusal.reason if last.refusal else None) == (None if end == "read" else "stream_closed")


@pytest.fixture
def spans() -> Generator[SimpleSpanHandler, None, None]:
    """A handler that keeps spans, at the root of LlamaIndex's dispatchers."""
    handler = SimpleSpanHandler()
    root = get_dispatcher()
    root.add_span_handler(handler)
    yield handler
    root.span_handlers.remove(handler)


def _read(response: GroundedStreamingResponse) -> None:
    assert str(response) == OK["answer"]


def _close(response: GroundedStreamingResponse) -> None:
    next(response.response_gen)
    response.close()


def _drop(response: GroundedStreamingResponse) -> None:
    next(response.response_gen)


def _in_threads(response: GroundedStreamingResponse) -> None:
    """Begin in one thread and go on in another."""
    reading = response.events()
    for steps in (2, 100):
        thread = threading.Thread(target=lambda count=steps: [next(reading, None) for _ in range(count)])
        thread.start()
        thread.join(10)
    assert response.grounded.answer == OK["answer"]


@pytest.mark.parametrize("use", [_read, _close, _drop, _in_threads])
def test_no_span_stays_open(
    spans: SimpleSpanHandler, use: Callable[[GroundedStreamingResponse], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Read, closed, dropped or read in other threads: each span ends, and no context is mixed up."""
    with caplog.at_level(logging.WARNING):
        response = by_args(ScriptedLLM([OK], chunk_size=4), "Within 21 days.").query(QUESTION)
        assert isinstance(response, GroundedStreamingResponse)
        use(response)
        del response
        gc.collect()
    assert spans.open_spans == {}
    assert any("synthesize" in span.id_ for span in spans.completed_spans)
    assert [record for record in caplog.records if "ontext" in record.getMessage()] == []


async def test_no_span_of_an_async_stream_stays_open(spans: SimpleSpanHandler) -> None:
    """The same for async streams, read in another task or closed early, and for their cancellation."""
    engine = by_args(ScriptedLLM([OK], chunk_size=4, delay=0.002), "Within 21 days.")

    async def read(response: AsyncGroundedStreamingResponse) -> str:
        return "".join([text async for text in response.async_response_gen()])

    first, second, third = [await engine.aquery(QUESTION) for _ in range(3)]
    assert isinstance(first, AsyncGroundedStreamingResponse)
    assert isinstance(second, AsyncGroundedStreamingResponse)
    assert isinstance(third, AsyncGroundedStreamingResponse)
    assert await asyncio.create_task(read(first)) == OK["answer"]
    await anext(second.aevents())
    await second.aclose()
    cancelled = asyncio.create_task(read(third))
    await asyncio.sleep(0.01)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert spans.open_spans == {}


@pytest.mark.parametrize("failing", [RuntimeError("down"), "no object"])
def test_no_span_stays_open_where_a_stream_fails(spans: SimpleSpanHandler, failing: Any) -> None:
    """An outage and an unreadable reply end the spans too, refused or raised."""
    for on_error in ("refuse", "raise"):
        engine = GroundedQueryEngine.from_args(
            index("Within 21 days."), llm=ScriptedLLM([failing]), streaming=True, on_error=on_error
        )
        response = engine.query(QUESTION)
        if on_error == "refuse":
            assert str(response)
        else:
            with pytest.raises(RuntimeError):
                str(response)
    assert spans.open_spans == {}


def test_older_callbacks_see_the_stream() -> None:
    """LlamaIndex's older handlers get SYNTHESIZE once, with the response, and reading goes on afterwards."""
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    engine = GroundedQueryEngine.from_args(
        index("Within 21 days."), llm=ScriptedLLM([OK]), streaming=True, callback_manager=manager
    )
    response = engine.query(QUESTION)
    ((_, end),) = debug.get_event_pairs(CBEventType.SYNTHESIZE)
    assert end.payload is not None
    assert end.payload[EventPayload.RESPONSE] is response
    assert str(response) == OK["answer"]


def test_llamaindexs_own_synthesizer_stays_what_it_was() -> None:
    """Our streams do not touch how LlamaIndex's own synthesizers stream."""
    llm = ScriptedLLM(["plain text"])
    engine = index("Within 21 days.").as_query_engine(
        llm=llm, response_synthesizer=get_response_synthesizer(llm=llm, streaming=True)
    )
    assert str(engine.query(QUESTION)) == "plain text"
