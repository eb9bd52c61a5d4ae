"""An LLM for tests: it plays what it is told."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from pydantic import Field, PrivateAttr

__all__ = ["ScriptedLLM"]


class ScriptedLLM(CustomLLM):
    """An LLM that plays its replies in order; the last one repeats.

    A reply is a text, a mapping that is dumped as JSON, or an exception that is raised. It serves `chat`, `complete`
    and their async and streaming forms.

    Args:
        replies: What to answer, at least one.
        chunk_size: Characters per streamed chunk; None for one chunk.
        usage: What to report, for example ``{"prompt_tokens": 900, "completion_tokens": 20}``; None reports nothing.
        delay: Seconds before each chunk.
        context_window: The window that the LLM states, in tokens.

    Example:
        >>> llm = ScriptedLLM(replies=["one", "two"])
        >>> [llm.complete("a").text, llm.complete("b").text, llm.complete("c").text, llm.prompts]
        ['one', 'two', 'two', ['a', 'b', 'c']]
    """

    replies: list[Any] = Field(min_length=1)
    chunk_size: int | None = Field(default=None, ge=1)
    usage: dict[str, int] | None = None
    delay: float = Field(default=0.0, ge=0)
    context_window: int = Field(default=8192, ge=1)

    _prompts: list[str] = PrivateAttr(default_factory=list[str])
    _closed: int = PrivateAttr(default=0)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, replies: Sequence[str | Mapping[str, Any] | BaseException], **options: Any) -> None:
        if isinstance(replies, (str, Mapping)):
            msg = "replies must be a list of replies, not one reply"
            raise TypeError(msg)
        super().__init__(replies=list(replies), **options)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the LLM."""
        return "ScriptedLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """What the LLM says of itself."""
        return LLMMetadata(
            context_window=self.context_window, num_output=256, model_name="scripted", is_chat_model=True
        )

    @property
    def prompts(self) -> list[str]:
        """The full text of every request, in order; messages are joined by blank lines."""
        return list(self._prompts)

    @property
    def closed(self) -> int:
        """How many streams were closed before their end, of those that were begun to be read."""
        return self._closed

    def _next(self, prompt: str) -> str:
        with self._lock:
            reply = self.replies[min(len(self._prompts), len(self.replies) - 1)]
            self._prompts.append(prompt)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)

    def _note_closing(self) -> None:
        with self._lock:
            self._closed += 1

    def _response(self, text: str, delta: str | None = None, *, last: bool = True) -> ChatResponse:
        raw = {"usage": dict(self.usage)} if self.usage is not None and last else {}
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=delta, raw=raw)

    def _chunks(self, reply: str) -> Generator[ChatResponse, None, None]:
        step = self.chunk_size or max(len(reply), 1)
        ends = [*range(step, len(reply), step), len(reply)]
        for start, end in zip([0, *ends], ends, strict=False):
            yield self._response(reply[:end], reply[start:end], last=end == len(reply))

    def _play(self, reply: str) -> Generator[ChatResponse, None, None]:
        try:
            for chunk in self._chunks(reply):
                time.sleep(self.delay)
                yield chunk
        except GeneratorExit:
            self._note_closing()
            raise

    async def _aplay(self, reply: str) -> AsyncGenerator[ChatResponse, None]:
        try:
            for chunk in self._chunks(reply):
                await asyncio.sleep(self.delay)
                yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            self._note_closing()
            raise

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Play the next reply."""
        reply = self._next(_text(messages))
        time.sleep(self.delay)
        return self._response(reply)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Play the next reply."""
        reply = self._next(_text(messages))
        await asyncio.sleep(self.delay)
        return self._response(reply)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Play the next reply in chunks."""
        return self._play(self._next(_text(messages)))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Play the next reply in chunks."""
        return self._aplay(self._next(_text(messages)))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - LlamaIndex's signature
        """Play the next reply."""
        reply = self._next(prompt)
        time.sleep(self.delay)
        return CompletionResponse(text=reply, raw={"usage": self.usage} if self.usage else {})

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: FBT001, FBT002 - LlamaIndex's signature
        """Play the next reply in chunks."""
        reply = self._next(prompt)
        return (
            CompletionResponse(text=chunk.message.content or "", delta=chunk.delta, raw=chunk.raw)
            for chunk in self._play(reply)
        )


def _text(messages: Sequence[ChatMessage]) -> str:
    return "\n\n".join(message.content or "" for message in messages)
