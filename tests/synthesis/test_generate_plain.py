"""Generation through LLMs that can do less than Ollama: complete a prompt, answer in one piece, block, say nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import CustomLLM
from pydantic import Field

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.testing import ScriptedLLM
from tests.answers import OK, QUESTION, Ask, reason

TEXT = json.dumps(OK)


class Plain(CustomLLM):
    """The least that an LLM can be: it completes a prompt, without a stream of its own."""

    pause: float = 0.0
    asked: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        """State a window."""
        return LLMMetadata(context_window=8192, is_chat_model=False)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer."""
        self.asked.append({"prompt": prompt, **kwargs})
        return CompletionResponse(text=TEXT)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Answer in pieces."""

        def chunks() -> CompletionResponseGen:
            self.asked.append({"prompt": prompt, **kwargs})
            for end in range(8, len(TEXT) + 8, 8):
                time.sleep(self.pause)
                yield CompletionResponse(text=TEXT[:end], delta=TEXT[end - 8 : end])

        return chunks()


class WithoutStream(Plain):
    """Says that it can not stream."""

    max_tokens: int = 99

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer in one piece."""
        self.asked.append({"max_tokens": self.max_tokens, **kwargs})
        return ChatResponse(message=ChatMessage(role="assistant", content=TEXT))

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Refuse to stream."""
        raise NotImplementedError

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer in one piece."""
        return self.chat(messages, **kwargs)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Refuse to stream."""
        raise NotImplementedError


class Silent(WithoutStream):
    """Streams nothing at all."""

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Stream nothing."""
        yield from ()

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Stream nothing."""

        async def nothing() -> ChatResponseAsyncGen:
            for chunk in list[ChatResponse]():
                yield chunk

        return nothing()


def test_any_llm_will_do(ask: Ask) -> None:
    """A completion model gets rules, sources, question and schema in its prompt, and answers with citations."""
    llm = Plain()
    assert ask(CitingSynthesizer(llm)).answer == OK["answer"]
    (asked,) = llm.asked
    assert all(
        part in asked["prompt"] for part in ("numbered sources", '<source id="S1">', QUESTION, '"additionalProp')
    )


def test_an_llm_that_can_not_stream(ask: Ask) -> None:
    """It is asked in one piece, with the output limit where the LLM has an option for it."""
    llm = WithoutStream()
    assert ask(CitingSynthesizer(llm, num_output=321)).answer == OK["answer"]
    assert llm.asked == [{"max_tokens": 321}]


def test_an_llm_that_says_nothing(ask: Ask) -> None:
    """An empty stream is an empty reply: one retry, then invalid_output."""
    result = ask(CitingSynthesizer(Silent()))
    assert (reason(result), result.llm_calls) == ("invalid_output", 2)


def test_the_deadline_holds_for_a_blocking_llm(ask: Ask) -> None:
    """An LLM whose async stream blocks is left between two chunks."""
    started = time.monotonic()
    assert reason(ask(CitingSynthesizer(Plain(pause=0.4), timeout=0.25))) == "deadline_exceeded"
    assert time.monotonic() - started < 2.5  # to the end it writes for four seconds


def test_without_a_deadline_a_slow_model_may_take_its_time(ask: Ask) -> None:
    """`timeout=None` waits for as long as the client does."""
    assert ask(CitingSynthesizer(ScriptedLLM([OK], chunk_size=20, delay=0.05), timeout=None)).answerable
