"""The one place that calls an LLM for an answer: one call out, one reply or fault back, sync and async.

Every call is streamed, also where nobody watches, so that the clock can be looked at between chunks and a model that is
no longer wanted can be stopped. Nothing of the caller's LLM is changed: options that LlamaIndex only takes on the object
go onto a shallow copy.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index_grounded.schema import RefusalReason

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse
    from llama_index.core.llms import LLM

__all__ = ["Call", "Deadline", "Fault", "Reply", "ask", "ask_async", "is_ollama", "window_of"]

_LENGTH_REASONS = frozenset({"length", "max_tokens"})
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
class Reply:
    """What came back."""

    text: str
    prompt_tokens: int | None = None
    """As reported, cached ones included; None where the provider does not say."""
    completion_tokens: int | None = None
    cut_off: bool = False
    """True where the model stopped because of the output limit."""
    only_thinking: bool = False
    """True where the text is empty and the model wrote something into its thinking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why nothing came back."""

    reason: RefusalReason
    error: Exception
    detail: str
    """Safe to show."""


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


def ask(llm: LLM, call: Call, deadline: Deadline) -> Reply | Fault:
    """Make one call and wait for the whole reply."""
    try:
        deadline.check()
        collector = _Collector()
        with contextlib.closing(_stream(llm, call, deadline)) as chunks:
            for chunk in chunks:
                collector.add(chunk)
                deadline.check()
        return collector.reply()
    except Exception as error:  # noqa: BLE001 - providers raise anything; the caller decides what becomes of it
        return _fault(error, deadline)


async def ask_async(llm: LLM, call: Call, deadline: Deadline) -> Reply | Fault:
    """Make one call and wait for the whole reply; at the deadline the call is cancelled."""
    try:
        deadline.check()
        return await asyncio.wait_for(_collect(llm, call), deadline.left)
    except Exception as error:  # noqa: BLE001 - as above; a cancellation is no Exception and passes
        return _fault(error, deadline)


async def _collect(llm: LLM, call: Call) -> Reply:
    collector = _Collector()
    async with contextlib.aclosing(_stream_async(llm, call)) as chunks:
        async for chunk in chunks:
            collector.add(chunk)
    return collector.reply()


def _stream(llm: LLM, call: Call, deadline: Deadline) -> Generator[ChatResponse, None, None]:
    prepared, options = _prepare(llm, call)
    if is_ollama(llm):
        _share_or_shorten_client(llm, prepared, deadline)
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
        limits = {**getattr(llm, "additional_kwargs", {}), "num_predict": call.num_output}
        return llm.model_copy(update={"additional_kwargs": limits}), {} if call.schema is None else {"format": dict(call.schema)}
    return llm, {"max_tokens": call.num_output} if "max_tokens" in type(llm).model_fields else {}


def _share_or_shorten_client(llm: Any, prepared: Any, deadline: Deadline) -> None:
    """Use the LLM's own connection pool, unless it would wait for longer than the deadline allows."""
    left = deadline.left
    if left is not None and (llm.request_timeout is None or left < llm.request_timeout) and llm._client is None:
        prepared.request_timeout = left
    else:
        prepared._client = llm.client


@contextlib.asynccontextmanager
async def _own_async_client(llm: Any, prepared: Any) -> AsyncIterator[None]:
    """Give each call a client of its own: one client can not serve several event loops."""
    if not is_ollama(llm) or llm._async_client is not None:
        yield
        return
    try:
        yield
    finally:
        if prepared._async_client is not None:
            await prepared._async_client.close()


@dataclass(slots=True)
class _Collector:
    """Adds up the chunks of one reply."""

    parts: list[str] = field(default_factory=list[str])
    last: ChatResponse | None = None
    thought: bool = False
    usage: tuple[int | None, int | None] = (None, None)
    cut_off: bool = False

    def add(self, chunk: ChatResponse) -> None:
        self.parts.append(chunk.delta or "")
        self.last = chunk
        self.thought = self.thought or bool(chunk.additional_kwargs.get("thinking_delta"))
        reported = _usage(chunk)
        if reported != (None, None):
            self.usage = reported
        self.cut_off = self.cut_off or _cut_off(chunk)

    def reply(self) -> Reply:
        text = "".join(self.parts)
        if not text and self.last is not None:
            text = self.last.message.content or ""
        return Reply(
            text=text,
            prompt_tokens=self.usage[0],
            completion_tokens=self.usage[1],
            cut_off=self.cut_off,
            only_thinking=self.thought and not text.strip(),
        )


def _as_mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else {}


def _usage(chunk: ChatResponse) -> tuple[int | None, int | None]:
    """Read the reported tokens where the providers of LlamaIndex put them."""
    raw = _as_mapping(chunk.raw)
    for place in (_as_mapping(raw.get("usage")), chunk.additional_kwargs, raw):
        prompt = _first_count(place, "prompt_tokens", "input_tokens", "prompt_eval_count")
        completion = _first_count(place, "completion_tokens", "output_tokens", "eval_count")
        if prompt is not None and "prompt_tokens" not in place:
            # Cache hits that are reported beside the input, not in it, would look like a prompt that was cut.
            cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
            prompt += sum(_first_count(place, name) or 0 for name in cached)
        if prompt is not None or completion is not None:
            return prompt, completion
    return None, None


def _first_count(usage: Mapping[str, Any], *names: str) -> int | None:
    values = (usage.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def _cut_off(chunk: ChatResponse) -> bool:
    raw = _as_mapping(chunk.raw)
    reasons = [raw.get("done_reason"), raw.get("finish_reason"), raw.get("stop_reason")]
    choices = raw.get("choices")
    if isinstance(choices, list) and choices:
        reasons.append(_as_mapping(choices[0]).get("finish_reason"))
    return any(reason in _LENGTH_REASONS for reason in reasons if isinstance(reason, str))


def _fault(error: Exception, deadline: Deadline) -> Fault:
    if deadline.left is not None and deadline.left <= _CLOCK_STEP:
        reason, detail = RefusalReason.deadline_exceeded, "the time for this query is over"
    else:
        reason, detail = RefusalReason.provider_error, f"the call of the model failed ({type(error).__name__})"
    return Fault(reason=reason, error=error, detail=detail)
