"""The one place that calls an LLM for an answer: one call out, one reply or fault back, sync and async.

Every call is streamed, also where nobody watches, so that the clock can be looked at between chunks and a model that is
no longer wanted can be stopped. Nothing of the caller's LLM is changed: options that LlamaIndex only takes on the
object go onto a shallow copy.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index_grounded.schema import RefusalReason
from llama_index_grounded.synthesis.reply import Collector, Reply

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.llms import LLM

__all__ = ["AsyncModelStream", "Call", "Deadline", "Fault", "ModelStream", "is_ollama", "window_of"]

T = TypeVar("T")
_CLOCK_STEP = 0.02
"""Seconds by which a timer may fire too early."""
_OLLAMA_MODULE = "llama_index.llms.ollama"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the model."""

    messages: Sequence[ChatMessage]
    num_output: int
    """Most tokens of the reply."""
    schema: Mapping[str, Any] | None
    """JSON schema of the reply, for servers that enforce one; None to leave it to the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why nothing came back."""

    reason: RefusalReason
    error: Exception
    detail: str
    """Safe to show."""
    called: bool = True
    """False where the time was over before the call went out."""


class Deadline:
    """A point in time that all calls of one query share."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a deadline."""
        return None if self._end is None else self._end - time.monotonic()

    def check(self) -> None:
        """Raise TimeoutError once the time is over."""
        if self.left is not None and self.left <= 0:
            msg = "the deadline of the query has passed"
            raise TimeoutError(msg)


class ModelStream:
    """One call in progress: its pieces, then the whole reply. A fault is returned, not raised."""

    def __init__(self, llm: LLM, call: Call, deadline: Deadline) -> None:
        self._deadline = deadline
        self._collector = Collector()
        self._called = False
        self._chunks = _stream(llm, call, deadline)

    def next(self) -> str | Reply | Fault:
        """Return the next piece, or how the call ended."""
        try:
            self._deadline.check()
            self._called = True
            chunk = next(self._chunks, None)
        except Exception as error:  # noqa: BLE001 - providers raise anything; the caller decides what becomes of it
            self.close()
            return _fault(error, self._deadline, called=self._called)
        return self._collector.reply() if chunk is None else self._collector.add(chunk)

    def stop(self) -> Reply:
        """Stop the model and return what has come so far."""
        self.close()
        return self._collector.reply()

    def close(self) -> None:
        """Stop the model."""
        self._chunks.close()


class AsyncModelStream:
    """The async twin of `ModelStream`; at the deadline the call is cancelled."""

    def __init__(self, llm: LLM, call: Call, deadline: Deadline) -> None:
        self._deadline = deadline
        self._collector = Collector()
        self._called = False
        self._chunks = _stream_async(llm, call)

    async def next(self) -> str | Reply | Fault:
        """Return the next piece, or how the call ended."""
        try:
            self._deadline.check()
            self._called = True
            chunk = await _within(anext(self._chunks, None), self._deadline.left)
        except Exception as error:  # noqa: BLE001 - as above; a cancellation is no Exception and passes
            await self.close()
            return _fault(error, self._deadline, called=self._called)
        return self._collector.reply() if chunk is None else self._collector.add(chunk)

    async def stop(self) -> Reply:
        """Stop the model and return what has come so far."""
        await self.close()
        return self._collector.reply()

    async def close(self) -> None:
        """Stop the model."""
        await self._chunks.aclose()


async def _within(step: Awaitable[T], seconds: float | None) -> T:
    """Wait for one step, at most so long."""
    if seconds is None:
        return await step
    if sys.version_info >= (3, 11):
        async with asyncio.timeout(seconds):
            return await step
    task = asyncio.ensure_future(step)  # wait_for of these Pythons can swallow a cancellation
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    if task.cancelled():
        raise TimeoutError
    return task.result()


def _stream(llm: LLM, call: Call, deadline: Deadline) -> Generator[ChatResponse, None, None]:
    prepared, options = _prepare(llm, call)
    if is_ollama(llm):
        _limit_client(llm, prepared, deadline)
    try:
        stream = iter(prepared.stream_chat(call.messages, **options))
        first = next(stream, None)
    except NotImplementedError:
        yield prepared.chat(call.messages, **options)
        return
    if first is None:
        return
    try:
        yield first
        yield from stream
    finally:
        _close(stream)


async def _stream_async(llm: LLM, call: Call) -> AsyncGenerator[ChatResponse, None]:
    prepared, options = _prepare(llm, call)
    async with _own_async_client(llm, prepared):
        try:
            stream = await prepared.astream_chat(call.messages, **options)
            first = await anext(stream, None)
        except NotImplementedError:
            yield await prepared.achat(call.messages, **options)
            return
        if first is None:
            return
        try:
            yield first
            async for chunk in stream:
                yield chunk
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()


def _close(stream: object) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()


def is_ollama(llm: object) -> bool:
    """Tell Ollama's class, or one made from it, without importing it."""
    return any(base.__module__.startswith(_OLLAMA_MODULE) for base in type(llm).__mro__)


def window_of(llm: LLM) -> int:
    """Return the model's context window in tokens; for Ollama the ``num_ctx`` that will be sent."""
    if is_ollama(llm):
        chosen = getattr(llm, "additional_kwargs", {}).get("num_ctx")
        if isinstance(chosen, int):
            return chosen
    return llm.metadata.context_window


def _prepare(llm: LLM, call: Call) -> tuple[LLM, dict[str, Any]]:
    """Return the LLM to call and the options of the call. The caller's LLM stays as it is."""
    if is_ollama(llm):
        # With a window of its own the copy need not ask the server for it again.
        limits = {**getattr(llm, "additional_kwargs", {}), "num_predict": call.num_output}
        own = {"additional_kwargs": limits, "context_window": window_of(llm)}
        return llm.model_copy(update=own), {} if call.schema is None else {"format": dict(call.schema)}
    return llm, {"max_tokens": call.num_output} if "max_tokens" in type(llm).model_fields else {}


def _limit_client(llm: Any, prepared: Any, deadline: Deadline) -> None:
    """Use the LLM's own connections, but wait for no longer than the deadline allows."""
    prepared._client = copy.copy(llm.client)  # noqa: SLF001 - there is no public place for a client
    if deadline.left is not None and (llm.request_timeout is None or deadline.left < llm.request_timeout):
        # The copy shares the pool of connections; only its time limit is its own.
        prepared._client._client = copy.copy(prepared._client._client)  # noqa: SLF001 - as above
        prepared._client._client.timeout = deadline.left  # noqa: SLF001 - as above


@contextlib.asynccontextmanager
async def _own_async_client(llm: Any, prepared: Any) -> AsyncGenerator[None, None]:
    """Give each call a client of its own: one client can not serve several event loops."""
    if not is_ollama(llm) or _is_custom(llm):
        yield
        return
    prepared._async_client = None  # noqa: SLF001 - there is no public place for a client
    client = prepared.async_client
    try:
        yield
    finally:
        await client.close()


def _is_custom(llm: Any) -> bool:
    """Tell a client that the user made, with a transport or credentials of its own, from one that Ollama made."""
    given = getattr(llm._async_client, "_client", None)  # noqa: SLF001 - as above
    if given is None:
        return False
    plain = type(given._transport).__name__ == "AsyncHTTPTransport"  # noqa: SLF001 - httpx shows it nowhere else
    return not plain or given.auth is not None


def _fault(error: Exception, deadline: Deadline, *, called: bool) -> Fault:
    if deadline.left is not None and deadline.left <= _CLOCK_STEP:
        reason, detail = RefusalReason.deadline_exceeded, "the time for this query is over"
    else:
        reason, detail = RefusalReason.provider_error, f"the call of the model failed ({type(error).__name__})"
    return Fault(reason=reason, error=error, detail=detail, called=called)
