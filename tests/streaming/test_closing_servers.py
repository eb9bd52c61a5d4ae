"""Over HTTP a stream that is closed, cancelled or overdue ends its connection at once, for every kind of LLM."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.schema import ResultEvent, TextEvent
from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.streaming.kinds import KINDS, OK, QUESTION, SOURCES, astreamed, how, served, streamed, text_of

LONG = {**OK, "answer": "Within 21 days [S1]. " * 40}


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_sees_a_closed_stream_at_once(kind: str) -> None:
    """Over HTTP the connection of a stream that is closed is closed with it, for every kind of LLM."""
    with served(kind, Reply(content=LONG, pause=0.02)) as (llm, server):
        gc.collect()
        gc.disable()
        try:
            reading = streamed(llm, **how(kind)).events()
            next(event for event in reading if isinstance(event, TextEvent))
            reading.close()
            assert server.wait_closed(seconds=3)
        finally:
            gc.enable()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_sees_a_closed_async_stream_at_once(kind: str) -> None:
    """Over HTTP the connection of an async stream that is closed is closed with it, for every kind of LLM."""
    with served(kind, Reply(content=LONG, pause=0.02)) as (llm, server):
        texts = (await astreamed(llm, **how(kind))).async_response_gen()
        await anext(texts)
        await texts.aclose()
        assert await asyncio.to_thread(server.wait_closed, 1, 3)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_sees_a_cancelled_query(kind: str) -> None:
    """The caller's cancellation of a query that is not streamed propagates and ends the connection."""
    with served(kind, Reply(content=LONG, pause=0.02)) as (llm, server):
        asking = asyncio.create_task(CitingSynthesizer(llm, **how(kind)).asynthesize(QUESTION, SOURCES))
        assert await asyncio.to_thread(server.wait_requests)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(server.wait_closed, 1, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_async", [False, True], ids=["sync", "async"])
def test_a_deadline_ends_a_stream_with_what_was_shown(kind: str, in_async: bool) -> None:
    """A model that writes slowly is left at the deadline: the shown text stands, the reason is deadline_exceeded."""

    async def read(llm: Any) -> list[Any]:
        return [event async for event in (await astreamed(llm, timeout=1.0, **how(kind))).aevents()]

    with served(kind, Reply(content=LONG, pause=0.05)) as (llm, server):
        start = time.monotonic()
        seen = asyncio.run(read(llm)) if in_async else list(streamed(llm, timeout=1.0, **how(kind)).events())
        assert time.monotonic() - start < 3
        assert server.wait_closed(seconds=3) or not server.chats
    last = seen[-1]
    assert isinstance(last, ResultEvent)
    assert last.grounded.refusal is not None
    assert last.grounded.refusal.reason == "deadline_exceeded"
    assert last.grounded.answer == text_of(seen)
    assert last.grounded.citations == ()


def test_time_without_a_call_costs_nothing() -> None:
    """The deadline starts with the first read, not when the response is made."""
    response = streamed(ScriptedLLM([OK]), timeout=0.3)
    time.sleep(0.4)
    assert response.answerable
