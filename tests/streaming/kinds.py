"""The kinds of LLM that the tests of streaming run over: real classes of LlamaIndex, servers on the loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms import LLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.schema import NodeWithScore
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike

from llama_index_grounded import CitingSynthesizer, GroundedResult
from llama_index_grounded.schema import ResultEvent, StreamEvent, TextEvent
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from tests.answers import OK, QUESTION, SOURCES, reason
from tests.ollama_server import OllamaServer, Reply
from tests.openai_server import OpenAIReply, OpenAIServer

__all__ = [
    "KINDS",
    "MODES",
    "OK",
    "QUESTION",
    "SOURCES",
    "Asked",
    "ask",
    "events",
    "reason",
    "served",
    "streamed",
    "text_of",
]


KINDS = ("ollama", "openai", "openai-like", "function", "text")
"""A format, twice a response_format, a function that has to be called, and words alone."""
MODES = ("sync", "async", "stream", "astream")

Scripted = Reply | str | Mapping[str, object]


class Asked(NamedTuple):
    """What one question brought."""

    result: GroundedResult
    texts: list[str]
    """The text events; for an answer that is not streamed, the answer."""


@contextlib.contextmanager
def served(kind: str, *replies: Scripted, **options: Any) -> Generator[tuple[LLM, OllamaServer], None, None]:
    """Serve the replies, in the shape of the kind, and yield a client for them.

    Args:
        kind: One of `KINDS`.
        replies: Texts, mappings or `Reply`.
        options: Of the server: ``chunk_size``, ``keep_alive``, ``truncates``.
    """
    maker = OllamaServer if kind == "ollama" else OpenAIServer
    with maker(*[_shaped(kind, reply) for reply in replies], **options) as server:
        yield client(kind, server), server


def client(kind: str, server: OllamaServer, **options: Any) -> LLM:
    """Make an LLM of the kind. What OpenAI's own client would repeat by itself is not repeated."""
    settings: dict[str, Any]
    if kind == "ollama":
        settings = {"model": "gemma3:4b", "base_url": server.url, "context_window": 8192}
        return Ollama(**settings | options)
    assert isinstance(server, OpenAIServer)
    settings = {"model": "gpt-4o-mini", "api_base": server.base, "api_key": "key", "max_retries": 0}
    if kind == "openai":
        return OpenAI(**settings | options)
    settings |= {
        "context_window": 8192,
        "is_chat_model": kind != "text",
        "is_function_calling_model": kind == "function",
    }
    return OpenAILike(**settings | options)


def how(kind: str) -> dict[str, Any]:
    """Return the synthesizer's options that bring the kind about; ``auto`` finds all but this one by itself."""
    return {"structured_output": "tool"} if kind == "function" else {}


def _shaped(kind: str, reply: Scripted) -> Reply:
    whole = reply if isinstance(reply, Reply) else Reply(content=reply)
    if kind != "function" or isinstance(whole, OpenAIReply) or not whole.text:
        return whole
    shared = {name: getattr(whole, name) for name in Reply.__dataclass_fields__}
    return replace(OpenAIReply(**shared), content="", call=whole.text)


def ask(llm: LLM, mode: str, nodes: Sequence[NodeWithScore] = SOURCES, **options: Any) -> Asked:
    """Ask in one of the four `MODES`; the async ones run in an event loop of their own."""
    if mode == "sync":
        result = CitingSynthesizer(llm, **options).synthesize(QUESTION, nodes).grounded
        return Asked(result, [result.answer])
    if mode == "async":
        result = asyncio.run(CitingSynthesizer(llm, **options).asynthesize(QUESTION, nodes)).grounded
        return Asked(result, [result.answer])
    seen = events(llm, nodes, **options) if mode == "stream" else asyncio.run(_aevents(llm, nodes, **options))
    last = seen[-1]
    assert isinstance(last, ResultEvent)
    return Asked(last.grounded, [event.text for event in seen if isinstance(event, TextEvent)])


def streamed(llm: LLM, nodes: Sequence[NodeWithScore] = SOURCES, **options: Any) -> GroundedStreamingResponse:
    """Ask for a stream."""
    response = CitingSynthesizer(llm, streaming=True, **options).synthesize(QUESTION, nodes)
    assert isinstance(response, GroundedStreamingResponse)
    return response


async def astreamed(
    llm: LLM, nodes: Sequence[NodeWithScore] = SOURCES, **options: Any
) -> AsyncGroundedStreamingResponse:
    """Ask for an async stream."""
    response = await CitingSynthesizer(llm, streaming=True, **options).asynthesize(QUESTION, nodes)
    assert isinstance(response, AsyncGroundedStreamingResponse)
    return response


def events(llm: LLM, nodes: Sequence[NodeWithScore] = SOURCES, **options: Any) -> list[StreamEvent]:
    """Ask for a stream and read it to its end."""
    return list(streamed(llm, nodes, **options).events())


async def _aevents(llm: LLM, nodes: Sequence[NodeWithScore], **options: Any) -> list[StreamEvent]:
    response = await astreamed(llm, nodes, **options)
    return [event async for event in response.aevents()]


def text_of(seen: Sequence[StreamEvent]) -> str:
    """Join what was shown."""
    return "".join(event.text for event in seen if isinstance(event, TextEvent))


def calling(arguments: Mapping[str, Any], *, size: int | None = None) -> MockFunctionCallingLLM:
    """Make LlamaIndex's own function-calling mock answer with one call of whatever function it is offered.

    Args:
        arguments: Of the call.
        size: Characters by which the arguments grow as text, sync only; by default they come at once, as a mapping.
    """

    def answer(_: Sequence[ChatMessage], **kwargs: Any) -> Any:
        (tool,) = kwargs["tools"]
        name = str(tool.metadata.name)
        if size is None:
            return _call(name, dict(arguments))
        return _growing(name, json.dumps(arguments), size)

    return MockFunctionCallingLLM(response_generator=answer)


def _growing(name: str, written: str, size: int) -> Generator[ChatMessage, None, None]:
    for end in [*range(size, len(written), size), len(written)]:
        yield _call(name, written[:end])


def _call(name: str, arguments: str | dict[str, Any]) -> ChatMessage:
    return ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_name=name, tool_kwargs=arguments)])
