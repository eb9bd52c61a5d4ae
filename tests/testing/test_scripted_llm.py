"""The scripted LLM plays what it is told, in every form in which an LLM is called."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage
from pydantic import ValidationError

from llama_index_grounded.testing import ScriptedLLM

ASK = [ChatMessage(role="system", content="Rules."), ChatMessage(role="user", content="How long?")]


def stream(llm: ScriptedLLM) -> list[Any]:
    """Return the chunks of a streamed reply."""
    return list(llm.stream_chat(ASK))


async def astream(llm: ScriptedLLM) -> list[Any]:
    """Return the chunks of a reply that is streamed in async."""
    return [chunk async for chunk in await llm.astream_chat(ASK)]


@given(reply=st.text(max_size=40), chunk_size=st.none() | st.integers(1, 50))
def test_the_chunks_of_a_reply_are_the_reply(reply: str, chunk_size: int | None) -> None:
    """Streamed or not, sync or async, chat or completion: the text is the same, in chunks of the size asked for."""
    llm = ScriptedLLM(replies=[reply], chunk_size=chunk_size)
    chunks, in_async = stream(llm), asyncio.run(astream(llm))
    assert "".join(chunk.delta for chunk in chunks) == reply
    assert chunks[-1].message.content == reply
    assert [chunk.delta for chunk in in_async] == [chunk.delta for chunk in chunks]
    assert all(len(chunk.delta) <= (chunk_size or len(reply)) for chunk in chunks)
    assert llm.chat(ASK).message.content == reply == asyncio.run(llm.achat(ASK)).message.content
    assert llm.complete("x").text == reply == [part.text for part in llm.stream_complete("x")][-1]


def test_replies_are_played_in_order_and_the_last_one_repeats() -> None:
    """Texts come as they are, mappings as JSON, exceptions are raised; every request is recorded in full."""
    llm = ScriptedLLM(replies=["ş", {"answer": "ş"}, TimeoutError("slow"), "end"])
    assert llm.chat(ASK).message.content == "ş"
    assert json.loads(str(llm.chat(ASK).message.content)) == {"answer": "ş"}
    with pytest.raises(TimeoutError, match="slow"):
        llm.chat(ASK)
    assert [llm.complete("a").text, llm.complete("b").text] == ["end", "end"]
    assert llm.prompts == ["Rules.\n\nHow long?"] * 3 + ["a", "b"]


def test_usage_comes_once_with_the_last_chunk() -> None:
    """Usage is reported where providers report it, or not at all."""
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    llm = ScriptedLLM(replies=["four"], chunk_size=1, usage=usage)
    assert [chunk.raw for chunk in stream(llm)] == [{}, {}, {}, {"usage": usage}]
    assert llm.chat(ASK).raw == {"usage": usage}
    assert ScriptedLLM(replies=["four"]).chat(ASK).raw == {}


def test_a_dropped_stream_is_noticed() -> None:
    """A stream that is closed before its end counts as closed, sync and async; one that was read up does not."""
    llm = ScriptedLLM(replies=["four"], chunk_size=1)
    stream(llm)
    assert llm.closed == 0
    started = llm.stream_chat(ASK)
    next(started)
    started.close()
    assert llm.closed == 1

    async def drop() -> None:
        chunks = await llm.astream_chat(ASK)
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(drop())
    assert llm.closed == 2


def test_the_delay_holds_before_each_chunk() -> None:
    """A delay slows every chunk of a stream, and an async one leaves the loop free."""
    llm = ScriptedLLM(replies=["four"], chunk_size=1, delay=0.02)
    began = time.perf_counter()
    stream(llm)
    assert time.perf_counter() - began >= 0.08


def test_threads_get_a_reply_each() -> None:
    """Concurrent requests take the replies one by one."""
    llm, got = ScriptedLLM(replies=[str(n) for n in range(20)]), list[str]()
    threads = [threading.Thread(target=lambda: got.append(str(llm.chat(ASK).message.content))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(n) for n in range(20)]


IMPOSSIBLE: list[dict[str, Any]] = [
    {"replies": []},
    {"replies": ["x"], "chunk_size": 0},
    {"replies": ["x"], "delay": -1},
]


@pytest.mark.parametrize("options", IMPOSSIBLE, ids=str)
def test_a_script_that_can_not_be_played_is_refused(options: dict[str, Any]) -> None:
    """There must be a reply, and sizes and delays must be possible."""
    with pytest.raises(ValidationError):
        ScriptedLLM(**options)


def test_the_window_is_what_was_set() -> None:
    """The LLM states the context window that it was given."""
    assert ScriptedLLM(replies=["x"]).metadata.context_window == 8192
    assert ScriptedLLM(replies=["x"], context_window=900).metadata.context_window == 900


def test_one_reply_is_no_list_of_replies() -> None:
    """A text in place of a list would be played letter by letter; it is refused."""
    for replies in ("abc", {"answer": "x"}):
        with pytest.raises(TypeError, match="list of replies"):
            ScriptedLLM(replies)  # type: ignore[arg-type]
