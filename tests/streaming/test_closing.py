"""A stream that is closed, dropped, cancelled or overdue stops the model at once and leaves a result that says so."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_grounded.schema import TextEvent
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import OK, astreamed, streamed

LONG = {**OK, "answer": "Within 21 days [S1]. " * 40}
STOPPED = "The answer was stopped before its end."


def slow(**options: Any) -> ScriptedLLM:
    """Make an LLM that needs a second for its reply."""
    return ScriptedLLM([LONG], chunk_size=9, delay=0.01, **options)


def first_text(reading: Iterator[Any]) -> str:
    """Read up to the first text."""
    return next(event.text for event in reading if isinstance(event, TextEvent))


@settings(max_examples=25)
@given(read=st.integers(0, 12))
def test_whenever_a_stream_is_closed_its_result_says_so(read: int) -> None:
    """Closed after any number of events: the model is stopped, there are no citations, and what was shown stands."""
    llm = ScriptedLLM([LONG], chunk_size=9)
    response = streamed(llm)
    reading = response.events()
    shown = [next(reading) for _ in range(read)]
    response.close()
    text = "".join(event.text for event in shown if isinstance(event, TextEvent))
    assert response.refusal is not None
    assert (response.refusal.reason, response.citations, response.verdict) == ("stream_closed", (), None)
    assert str(response) == response.grounded.answer == (text or STOPPED)
    assert llm.closed == len(llm.prompts) == response.grounded.llm_calls == (read > 1)
    known = 0 if read < 2 else None
    assert response.grounded.usage.completion_tokens == response.grounded.usage.prompt_tokens == known
    assert list(reading) == []


def test_a_stream_that_is_at_its_end_can_be_closed() -> None:
    """Closing after the end, or twice, changes nothing."""
    response = streamed(ScriptedLLM([OK], chunk_size=4))
    whole = response.grounded
    response.close()
    response.close()
    assert response.grounded == whole
    assert whole.answerable


def _leave_loop(response: GroundedStreamingResponse) -> None:
    for _ in response.response_gen:
        break
    del response


def _leave_events(response: GroundedStreamingResponse) -> None:
    for event in response.events():
        if isinstance(event, TextEvent):
            break


def _close_generator(response: GroundedStreamingResponse) -> None:
    reading = response.events()
    first_text(reading)
    reading.close()


@pytest.mark.parametrize("leave", [_leave_loop, _leave_events, _close_generator])
def test_leaving_a_stream_stops_the_model_without_the_garbage_collector(
    leave: Callable[[GroundedStreamingResponse], None],
) -> None:
    """A reader that is dropped or closed ends the model's stream at once, not when memory is tidied up."""
    gc.collect()
    gc.disable()
    try:
        llm = slow()
        leave(streamed(llm))
        assert llm.closed == 1
    finally:
        gc.enable()


def test_a_response_that_is_dropped_unread_calls_no_model() -> None:
    """Nothing is asked for a stream that nobody reads, and nothing is left behind."""
    llm = slow()
    response = streamed(llm)
    del response
    assert (llm.prompts, llm.closed) == ([], 0)


async def _turns() -> None:
    # Generators inside of LlamaIndex's own are closed by the event loop.
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_break_in_an_async_loop_stops_the_model() -> None:
    """Leaving `async for` without closing the generator ends the model's stream within a few turns of the loop."""
    llm = slow()
    response = await astreamed(llm)
    async for event in response.aevents():
        if isinstance(event, TextEvent):
            break
    await _turns()
    assert llm.closed == 1
    assert response.refusal is not None
    assert response.refusal.reason == "stream_closed"


async def _by_generator(response: AsyncGroundedStreamingResponse) -> None:
    reading = response.aevents()
    async for event in reading:
        if isinstance(event, TextEvent):
            break
    await reading.aclose()


async def _by_texts(response: AsyncGroundedStreamingResponse) -> None:
    reading = response.async_response_gen()
    await anext(reading)
    await reading.aclose()


async def _by_response(response: AsyncGroundedStreamingResponse) -> None:
    await anext(response.async_response_gen())
    await response.aclose()


@pytest.mark.parametrize("close", [_by_generator, _by_texts, _by_response])
async def test_closing_an_async_stream_stops_the_model_at_once(
    close: Callable[[AsyncGroundedStreamingResponse], Any],
) -> None:
    """`aclose()` ends the model's stream within a few turns of the loop, and the result says `stream_closed`."""
    llm = slow()
    response = await astreamed(llm)
    await close(response)
    await _turns()
    assert llm.closed == 1
    assert response.refusal is not None
    assert response.refusal.reason == "stream_closed"
    assert str(LONG["answer"]).startswith(response.grounded.answer)


def test_another_thread_can_close_a_stream() -> None:
    """A stop button in another thread ends a reader that waits for the model, with what it has shown."""
    llm = slow()
    response = streamed(llm)
    texts: list[str] = []
    begun = threading.Event()

    def read() -> None:
        for text in response.response_gen:
            texts.append(text)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(10)
    response.close()
    reader.join(5)
    assert not reader.is_alive()
    assert llm.closed == 1
    assert response.refusal is not None
    assert response.refusal.reason == "stream_closed"
    assert response.grounded.answer == "".join(texts).rstrip()


async def test_another_task_can_close_an_async_stream() -> None:
    """A stop button in another task ends a reader that waits for the model at once, however long the model thinks."""
    llm = ScriptedLLM([LONG], chunk_size=400, delay=12.0)
    response = await astreamed(llm)

    async def read() -> list[Any]:
        return [event async for event in response.aevents()]

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    start = time.monotonic()
    await response.aclose()
    await reader
    assert time.monotonic() - start < 6
    assert llm.closed == 1
    assert response.refusal is not None
    assert response.refusal.reason == "stream_closed"


async def test_a_cancelled_reader_stops_the_model() -> None:
    """The cancellation of a task that reads a stream propagates, and reaches the model."""
    llm = slow()
    response = await astreamed(llm)

    begun = asyncio.Event()

    async def read() -> None:
        async for _ in response.async_response_gen():
            begun.set()
            await asyncio.sleep(0)

    reader = asyncio.create_task(read())
    await begun.wait()
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await _turns()
    assert llm.closed == 1
    assert response.refusal is not None
    assert response.refusal.reason == "stream_closed"


@pytest.mark.parametrize("reply", [LONG, {**LONG, "sources": []}], ids=["shown", "held back"])
def test_white_space_without_end_stops_the_model(reply: dict[str, Any]) -> None:
    """A model that writes nothing but blanks is stopped after 512 of them, before its output limit."""
    llm = ScriptedLLM(['{"verdict": "answered", ' + "\n" * 5000 + '"sources": ["S1"]', reply], chunk_size=10)
    response = streamed(llm, max_retries=0)
    assert response.refusal is not None
    assert response.refusal.reason == "invalid_output"
    assert llm.closed == 1
    assert len(response.grounded.raw_output or "") < 600


def test_too_long_an_answer_stops_the_model() -> None:
    """After `max_answer_chars` shown characters the model is stopped; no more than these were shown."""
    llm = ScriptedLLM([LONG], chunk_size=9)
    response = streamed(llm, max_answer_chars=30)
    assert len("".join(response.response_gen)) <= 30
    assert response.refusal is not None
    assert response.refusal.reason == "answer_too_long"
    assert llm.closed == 1


async def test_two_readers_share_one_model() -> None:
    """Two tasks that read one stream at once both get the whole text, from one call."""
    llm = ScriptedLLM([LONG], chunk_size=60, delay=0.005)
    response = await astreamed(llm)

    async def read() -> str:
        return "".join([text async for text in response.async_response_gen()])

    first, second = await asyncio.gather(read(), read())
    assert first == second == response.grounded.answer
    assert len(llm.prompts) == 1


def test_two_threads_share_one_model() -> None:
    """Two threads that read one stream at once both get the whole text, from one call."""
    llm = ScriptedLLM([LONG], chunk_size=60, delay=0.002)
    response = streamed(llm)
    texts: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: texts.append("".join(e.text for e in response.events() if isinstance(e, TextEvent)))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert texts == [response.grounded.answer] * 3
    assert len(llm.prompts) == 1
