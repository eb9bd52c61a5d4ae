"""One engine serves many queries at a time: threads, tasks and event loops never mix, and a cancellation is obeyed."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen
from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.llms.ollama import Ollama
from pydantic import PrivateAttr

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, GroundedResponse, GroundedResult
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.ollama_server import OllamaServer, Reply

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}


class Numbered(BaseRetriever):
    """Finds for question "7" two nodes of document d7, one of them too large, and for an odd number a weak score."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        number = int(query_bundle.query_str)
        return make_nodes(
            [f"Answer {number}.", f"{number} " * 300],
            scores=[0.2, 0.1] if number % 2 else [0.9, 0.8],
            ids=[f"a{number}", f"b{number}"],
            metadata={"document_id": f"d{number}"},
        )


class Echo(ScriptedLLM):
    """Answers with the first source of its own prompt, after a pause that lets others in between."""

    def _reply(self, messages: Any) -> ChatResponse:
        prompt = messages[-1].content or ""
        said = prompt.split('<source id="S1">\n')[1].split("\n")[0]
        text = json.dumps({**OK, "answer": f"{said} [S1]"})
        return ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

    def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
        """Answer in pieces."""
        reply = self._reply(messages)
        for start in range(0, len(reply.delta or ""), 20):
            yield reply.model_copy(update={"delta": (reply.delta or "")[start : start + 20]})

    async def astream_chat(self, messages: Any, **kwargs: Any) -> ChatResponseAsyncGen:
        """Answer in pieces, with a pause before each."""

        async def pieces() -> ChatResponseAsyncGen:
            for piece in self.stream_chat(messages):
                await asyncio.sleep(0.001)
                yield piece

        return pieces()


def make_engine(llm: Any = None, **options: Any) -> GroundedQueryEngine:
    """Build an engine with a gate, a budget and an order."""
    return GroundedQueryEngine.from_args(
        retriever=Numbered(), llm=llm or Echo(replies=[OK]), min_score=0.5, max_tokens=100, **options
    )


def grounded(response: object) -> GroundedResult:
    """Return the result of a response."""
    assert isinstance(response, GroundedResponse)
    return response.grounded


def check(number: int, result: GroundedResult) -> None:
    """See that a result holds what belongs to its own question, and nothing else."""
    assert {decision.document_id for decision in result.decisions} == {f"d{number}"}
    if number % 2:
        assert result.refusal is not None
        assert result.refusal.reason == "low_score"
        assert [(d.node_id, d.action) for d in result.decisions] == [(f"{k}{number}", "refused") for k in "ab"]
    else:
        assert result.answer == f"Answer {number}. [S1]"
        assert [citation.node_id for citation in result.citations] == [f"a{number}"]
        assert [d.node_id for d in result.decisions if d.reason == "over_budget"] == [f"b{number}"]


async def test_fifty_queries_at_a_time_keep_their_decisions() -> None:
    """Answers and refusals that run at once in one event loop hold their own nodes, decisions and texts."""
    engine = make_engine()
    responses = await asyncio.gather(*(engine.aquery(str(number)) for number in range(50)))
    for number, response in enumerate(responses):
        check(number, grounded(response))


def test_eight_threads_share_one_engine() -> None:
    """Queries from eight threads through one engine do not mix."""
    engine = make_engine()
    with ThreadPoolExecutor(8) as pool:
        for number, response in enumerate(pool.map(lambda number: engine.query(str(number)), range(48))):
            check(number, grounded(response))


async def test_one_bundle_in_several_queries_at_a_time() -> None:
    """The same QueryBundle object, used by many queries at once, gives each of them its own decisions."""
    query, engine = QueryBundle("4"), make_engine()
    for response in await asyncio.gather(*(engine.aquery(query) for _ in range(10))):
        check(4, grounded(response))
    assert query == QueryBundle("4")


def test_one_engine_in_several_event_loops() -> None:
    """With the real Ollama class over kept connections, one engine works in loop after loop, also after other calls."""
    with OllamaServer(OK, keep_alive=True) as server:
        llm = Ollama(model="gemma3:4b", base_url=server.url, context_window=8192)
        engine = make_engine(llm)

        async def several() -> list[GroundedResult]:
            return [grounded(response) for response in await asyncio.gather(*(engine.aquery("2") for _ in range(3)))]

        for _ in range(3):
            assert all(result.answerable for result in asyncio.run(several()))
        asyncio.run(_used_elsewhere(llm))
        assert all(result.answerable for result in asyncio.run(several()))
        assert grounded(engine.query("2")).answerable
        close(llm)


def close(llm: Any) -> None:
    """Close the client's connections."""
    llm.client.close()


async def _used_elsewhere(llm: Ollama) -> None:
    """Open the model's own async client, as another engine would, and close its connections with the loop."""
    await llm.acomplete("x")
    await llm.async_client._client._transport.aclose()


def test_loops_in_threads_share_one_engine() -> None:
    """Event loops in four threads at a time use one engine and one Ollama object."""
    with OllamaServer(OK) as server:
        engine = make_engine(Ollama(model="gemma3:4b", base_url=server.url, context_window=8192))
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(asyncio.run, engine.aquery("2")) for _ in range(8)]
        assert all(grounded(future.result()).answerable for future in futures)


@pytest.mark.parametrize("reply", [Reply(content=OK, delay=20), Reply(content=OK, pause=1)], ids=["waiting", "writing"])
async def test_a_cancellation_reaches_the_server(reply: Reply) -> None:
    """A cancelled query raises CancelledError, and the server sees the client go while the loop still runs."""
    with OllamaServer(reply) as server:
        engine = make_engine(Ollama(model="gemma3:4b", base_url=server.url, context_window=8192), on_error="raise")
        query = asyncio.create_task(engine.aquery("2"))
        assert await asyncio.to_thread(server.wait_requests)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        assert await asyncio.to_thread(server.wait_closed, seconds=3)
        assert len(server.chats) == 1


class _Canceller(ScriptedLLM):
    """Cancels the task that asks it, in the very step in which its reply ends."""

    _task: Any = PrivateAttr(default=None)

    async def astream_chat(self, messages: Any, **kwargs: Any) -> ChatResponseAsyncGen:
        async def chunks() -> ChatResponseAsyncGen:
            await asyncio.sleep(0.01)
            text = json.dumps(OK)
            yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)
            self._task.cancel()

        return chunks()


async def test_a_late_cancellation_is_not_swallowed() -> None:
    """A cancellation that comes together with the end of the reply still propagates."""
    llm = _Canceller(replies=[OK])
    query = asyncio.create_task(CitingSynthesizer(llm).asynthesize("2", make_nodes(["Answer 2."])))
    llm._task = query
    with pytest.raises(asyncio.CancelledError):
        await query


async def test_a_callers_own_timeout_stops_the_model() -> None:
    """`asyncio.wait_for` around a query ends it like any cancellation, and the stream of the LLM is closed."""
    llm = ScriptedLLM([OK], chunk_size=5, delay=0.1)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(CitingSynthesizer(llm).asynthesize("2", make_nodes(["Answer 2."])), 0.25)
    assert (len(llm.prompts), llm.closed) == (1, 1)


async def test_a_deadline_in_one_query_leaves_the_others_alone() -> None:
    """Of two queries at once, one with a hanging server is refused at its deadline and the other is answered."""
    with OllamaServer(Reply(content=OK, delay=5), OK) as server:
        llm = Ollama(model="gemma3:4b", base_url=server.url, context_window=8192)
        synthesizer = CitingSynthesizer(llm, timeout=0.7)
        first = asyncio.create_task(synthesizer.asynthesize("1", make_nodes(["One."])))
        assert await asyncio.to_thread(server.wait_requests)
        second = grounded(await synthesizer.asynthesize("2", make_nodes(["Two."])))
        late = grounded(await first)
    assert second.answerable
    assert late.refusal is not None
    assert late.refusal.reason == "deadline_exceeded"


@pytest.mark.parametrize("window", [8192, -1], ids=["window known", "window asked"])
def test_a_server_that_never_answers(hanging: str, window: int) -> None:
    """The deadline covers all that a query asks the server, its window included."""
    llm = Ollama(model="gemma3:4b", base_url=hanging, context_window=window, request_timeout=12.0)
    started = time.monotonic()
    result = grounded(CitingSynthesizer(llm, timeout=0.3).synthesize("2", make_nodes(["Answer 2."])))
    assert time.monotonic() - started < 6
    assert result.refusal is not None
    assert result.refusal.reason == "deadline_exceeded"
    close(llm)


@pytest.mark.parametrize("window", [8192, -1], ids=["window known", "window asked"])
async def test_the_event_loop_goes_on_while_a_server_hangs(hanging: str, window: int) -> None:
    """An async query never blocks its event loop, whatever it waits for."""
    llm = Ollama(model="gemma3:4b", base_url=hanging, context_window=window, request_timeout=12.0)
    query = asyncio.create_task(CitingSynthesizer(llm, timeout=0.5).asynthesize("2", make_nodes(["Answer 2."])))
    beats = [time.monotonic()]
    while not query.done():
        await asyncio.sleep(0.02)
        beats.append(time.monotonic())
    assert max(after - before for before, after in itertools.pairwise(beats)) < 3
    assert grounded(await query).refusal is not None
    close(llm)


def test_an_engine_holds_nothing_of_a_query() -> None:
    """After a query the engine, its stages and its synthesizer have the attributes that they had before."""
    engine = make_engine(callback_manager=CallbackManager([]))
    parts: list[Any] = [engine._response_synthesizer, *engine._node_postprocessors]
    before = [dict(vars(part)) for part in parts]
    engine.query("2")
    engine.query("3")
    assert [dict(vars(part)) for part in parts] == before
