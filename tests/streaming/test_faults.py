"""Servers that fail, hang or go away: one reason, one call, words that are safe to show, the rest in the log."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from typing import Any

import pytest
from llama_index.core.llms import LLM

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.errors import GenerationError
from llama_index_grounded.schema import StreamEvent, TextEvent
from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.streaming.kinds import (
    KINDS,
    MODES,
    OK,
    QUESTION,
    SOURCES,
    ask,
    client,
    how,
    reason,
    served,
    streamed,
    text_of,
)

SECRET = "tenant 4711 has no credit left"
DOWN = "The answering service is not available right now. Please try again later."
LATE = "The answer took too long. Please try again later."
FAULTS = {
    "400": Reply(status=400, error=SECRET),
    "401": Reply(status=401, error=SECRET),
    "429": Reply(status=429, error=SECRET),
    "500": Reply(status=500, error=SECRET),
    "503 without words": Reply(status=503, content="<html>busy</html>"),
    "cut before the first byte": Reply(content=OK, drop_after=0),
    "cut in the middle": Reply(content=OK, drop_after=2),
    "an error in the stream": Reply(content=OK, error=SECRET, drop_after=2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_server_is_a_provider_error(name: str, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """HTTP errors, cut connections and errors in a stream are one call, one line in the log, no word of the server."""
    with served(kind, FAULTS[name]) as (llm, server), caplog.at_level(logging.ERROR, "llama_index_grounded"):
        result, texts = ask(llm, "stream", **how(kind))
        assert len(server.chats) == result.llm_calls == 1
    assert result.refusal is not None
    assert reason(result) == "provider_error"
    assert SECRET not in result.model_dump_json()
    assert "".join(texts) == result.answer == DOWN
    (record,) = [each for each in caplog.records if each.name.startswith("llama_index_grounded")]
    assert record.exc_info is not None
    assert (SECRET in (record.exc_text or str(record.exc_info[1]))) is (FAULTS[name].error == SECRET)
    assert result.usage.prompt_tokens is None


@pytest.mark.parametrize("mode", ["sync", "async", "astream"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_modes_see_the_same_fault(kind: str, mode: str) -> None:
    """A server's error is the same refusal in every mode."""
    with served(kind, FAULTS["500"]) as (llm, _):
        result, texts = ask(llm, mode, **how(kind))
    assert (reason(result), "".join(texts)) == ("provider_error", DOWN)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_connection_can_be_raised(kind: str, mode: str) -> None:
    """Nobody listens: with `on_error="raise"` a GenerationError that may be retried, its cause the client's error."""
    with served(kind, OK) as (_, server):
        llm = client(kind, server)
    with pytest.raises(GenerationError) as caught:
        ask(llm, mode, on_error="raise", **how(kind))
    assert (caught.value.reason, caught.value.retryable) == ("provider_error", True)
    assert caught.value.__cause__ is not None


def test_a_connection_that_is_cut_behind_the_first_words_leaves_them_standing() -> None:
    """What was shown stays the answer's text, the result is a refusal without citations, and nobody asks again."""
    cut = Reply(content={**OK, "answer": "Within 21 days [S1]. " * 9}, drop_after=12)
    with served("openai-like", cut, OK) as (llm, server):
        result, texts = ask(llm, "stream")
        assert len(server.chats) == 1
    assert reason(result) == "provider_error"
    assert "".join(texts) == result.answer
    assert result.answer.startswith("Within 21 days")
    assert result.citations == ()


def test_a_raised_error_ends_a_stream_that_was_being_read() -> None:
    """With `on_error="raise"` the reader of a stream gets the sources, the shown words, and then the error."""
    response = streamed(ScriptedLLM([json.dumps(OK)[:-9]], chunk_size=4), on_error="raise")
    seen: list[StreamEvent] = []
    with pytest.raises(GenerationError, match="invalid_output"):
        seen.extend(response.events())
    assert text_of(seen) == "Within 21 day"
    assert reason(response.grounded) == "invalid_output"
    again: list[StreamEvent] = []
    with pytest.raises(GenerationError, match="invalid_output"):
        again.extend(response.events())
    assert again == seen


async def test_a_raised_error_ends_every_reading_of_an_async_stream() -> None:
    """The second reader gets the same events and the same error, and the result can be read behind it."""
    llm = ScriptedLLM([json.dumps(OK)[:-9]], chunk_size=4)
    synthesizer = CitingSynthesizer(llm, streaming=True, on_error="raise")
    response: Any = await synthesizer.asynthesize(QUESTION, SOURCES)
    readings: list[list[StreamEvent]] = [[], []]

    async def read(seen: list[StreamEvent]) -> None:
        async for event in response.aevents():
            seen.append(event)  # noqa: PERF401 - an error must not lose what came before it

    for seen in readings:
        with pytest.raises(GenerationError, match="invalid_output"):
            await read(seen)
    assert readings[0] == readings[1] != []
    assert reason((await response.get_response()).grounded) == "invalid_output"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hanging_server_is_left_at_the_deadline(kind: str, mode: str) -> None:
    """A server that does not begin is left at the deadline, with one request, in every mode."""
    with served(kind, Reply(content=OK, delay=20.0)) as (llm, server):
        ask(llm, mode, timeout=0.3, **how(kind))  # loads what the client's package loads at its first call
        server.requests.clear()
        start = time.monotonic()
        result, _ = ask(llm, mode, timeout=0.6, **how(kind))
        assert time.monotonic() - start < 8
        assert len(server.chats) <= 1
    assert (reason(result), result.answer) == ("deadline_exceeded", LATE)
    assert result.usage.completion_tokens in (None, 0)


@pytest.mark.parametrize("kind", ["openai", "openai-like"])
def test_a_client_that_repeats_requests_by_itself_keeps_the_deadline(kind: str) -> None:
    """OpenAI's own client, as it is by default, does not spend the deadline several times over."""
    with served(kind, Reply(content=OK, delay=20.0)) as (_, server):
        llm = client(kind, server, max_retries=3)
        start = time.monotonic()
        assert reason(ask(llm, "sync", timeout=0.6).result) == "deadline_exceeded"
        assert time.monotonic() - start < 8
        assert len(server.chats) <= 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["ollama", "openai", "openai-like"])
def test_a_shorter_timeout_of_the_client_holds(kind: str, mode: str) -> None:
    """Where the client's own limit is shorter than the query's, it holds, and the reason is provider_error."""
    limit = {"request_timeout": 0.4} if kind == "ollama" else {"timeout": 0.4}
    with served(kind, Reply(content=OK, delay=20.0)) as (_, server):
        start = time.monotonic()
        assert reason(ask(client(kind, server, **limit), mode, timeout=30).result) == "provider_error"
        assert time.monotonic() - start < 10


def test_all_calls_share_one_deadline() -> None:
    """The further call for an unreadable reply gets what the first one left of the time."""
    with served("openai-like", Reply(content="no object", delay=2.0), Reply(content=OK, delay=20.0)) as (llm, server):
        start = time.monotonic()
        result, _ = ask(llm, "sync", timeout=2.5)
        assert time.monotonic() - start < 4  # 4.5 with a deadline for each
        assert (reason(result), len(server.chats)) == ("deadline_exceeded", 2)


@pytest.mark.parametrize("kind", KINDS)
def test_one_synthesizer_serves_threads_and_loops_at_once(kind: str) -> None:
    """Streams of one synthesizer in threads without and with event loops of their own do not mix."""
    with served(kind, OK) as (llm, server):
        synthesizer = CitingSynthesizer(llm, streaming=True, **how(kind))
        answers: list[str] = []

        def in_thread() -> None:
            answers.append(str(synthesizer.synthesize(QUESTION, SOURCES)))

        async def read() -> str:
            response = await synthesizer.asynthesize(QUESTION, SOURCES)
            return "".join([event.text async for event in response.aevents() if isinstance(event, TextEvent)])  # type: ignore[union-attr]

        def in_loop() -> None:
            answers.append(asyncio.run(read()))

        threads = [threading.Thread(target=target) for target in (in_thread, in_loop) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert answers == [OK["answer"]] * 6
        assert len(server.chats) == 6


def test_a_server_that_does_not_speak_the_protocol_is_an_outage() -> None:
    """An address where something else listens gives a provider error, with nothing of what it said."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        llm: LLM = _at(other.getsockname()[1])
        result, _ = ask(llm, "stream")
        thread.join()
    assert result.refusal is not None
    assert reason(result) == "provider_error"
    assert "SSH" not in result.model_dump_json()


def _at(port: int) -> LLM:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(model="m", api_base=f"http://127.0.0.1:{port}/v1", api_key="k", is_chat_model=True, max_retries=0)
