"""The one place that calls an LLM: one call out, one reply or fault back, sync and async.

Every call is streamed, also where nobody watches, so that the clock can be looked at between chunks and a model that is
no longer wanted can be stopped.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index_grounded.llm.providers import Kind, Prepared, own_async_client, own_client, prepare
from llama_index_grounded.llm.reply import Collector, Reply
from llama_index_grounded.schema import RefusalReason

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.llms import LLM
    from pydantic import BaseModel

__all__ = ["AsyncModelStream", "Call", "Deadline", "Fault", "ModelStream", "status_of", "within"]

T = TypeVar("T")
_STATUSES = range(100, 600)
"""What counts as one: Ollama's client says -1 for an error in the middle of a stream."""
_CLOCK_STEP = 0.02
"""Seconds by which a timer may fire too early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the model."""

    messages: Sequence[ChatMessage]
    num_output: int
    """Most tokens of the reply."""
    kind: Kind
    """How the reply is given its form."""
    schema: Mapping[str, Any]
    """JSON schema of the reply."""
    output_cls: type[BaseModel]
    """The class behind the schema."""
    window: int | None = None
    """Tokens of the window that the messages were packed for; None where nobody knows it yet."""


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
        self._collector = Collector(call.output_cls.__name__ if call.kind == "tool" else None)
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
        self._collector = Collector(call.output_cls.__name__ if call.kind == "tool" else None)
        self._called = False
        self._chunks = _stream_async(llm, call, deadline)

    async def next(self) -> str | Reply | Fault:
        """Return the next piece, or how the call ended."""
        try:
            self._deadline.check()
            self._called = True
            chunk = await within(anext(self._chunks, None), self._deadline.left)
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


async def within(step: Awaitable[T], seconds: float | None) -> T:
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
    prepared = _prepare(llm, call, deadline)
    with own_client(llm, prepared.llm, deadline.left):
        try:
            stream = iter(prepared.stream(call.messages))
            first = next(stream, None)
        except NotImplementedError:
            yield prepared.chat(call.messages)
            return
        if first is None:
            return
        try:
            yield first
            yield from stream
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()


async def _stream_async(llm: LLM, call: Call, deadline: Deadline) -> AsyncGenerator[ChatResponse, None]:
    prepared = _prepare(llm, call, deadline)
    async with own_async_client(llm, prepared.llm):
        try:
            stream = await prepared.astream(call.messages)
            first = await anext(stream, None)
        except NotImplementedError:
            yield await prepared.achat(call.messages)
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


def _prepare(llm: LLM, call: Call, deadline: Deadline) -> Prepared:
    return prepare(
        llm,
        call.kind,
        num_output=call.num_output,
        schema=call.schema,
        output_cls=call.output_cls,
        seconds=deadline.left,
        window=call.window,
    )


def _fault(error: Exception, deadline: Deadline, *, called: bool) -> Fault:
    if deadline.left is not None and deadline.left <= _CLOCK_STEP:
        reason, detail = RefusalReason.deadline_exceeded, "the time for this query is over"
    else:
        status = status_of(error)
        kind = type(error).__name__ if status is None else f"{type(error).__name__}, status {status}"
        reason, detail = RefusalReason.provider_error, f"the call of the model failed ({kind})"
    return Fault(reason=reason, error=error, detail=detail, called=called)


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status of a provider's error, where the clients put it; None where there was no answer."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and status in _STATUSES:
            return status
    return None
