"""A stand-in for a language model that needs no server: it quotes the sources in its prompt."""

from __future__ import annotations

import json
import re
from typing import Any

from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from llama_index_grounded.rendering import XmlRenderer, unescape
from llama_index_grounded.tokens import TokenCounter

from .answering import extract

CONTEXT_WINDOW = 8192
CHUNK_CHARS = 24

# The last one counts: a source may hold such a line too, but the question stands below the sources.
_QUESTION = re.compile(r"^Question: (.*?)(?=\n\s*\n|\nassistant: |\Z)", re.MULTILINE | re.DOTALL)


class ExtractiveLLM(CustomLLM):
    """Answers by quoting the sentences that share most words and numbers with the question.

    It is a stand-in, so that the examples run without a model: it selects sentences and does not understand
    them. It writes nothing of its own, is deterministic, and uses no network. Expect it to miss what is
    worded differently from the question, and to quote a sentence that only looks right.

    It reads the sources and the question from the prompt of a `CitingSynthesizer` with its default
    template, replies with the JSON of a `GroundedAnswer`, and reports its usage as a provider does.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex reports this model."""
        return "ExtractiveLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """Say how much fits, in tokens."""
        return LLMMetadata(context_window=CONTEXT_WINDOW, num_output=1024, model_name="extractive")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002
        """Reply to a whole prompt."""
        text = _reply(prompt)
        return CompletionResponse(text=text, raw=_usage(prompt, text))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: FBT001, FBT002
        """Reply in pieces, the usage with the last one."""
        text = _reply(prompt)

        def pieces() -> CompletionResponseGen:
            for end in range(CHUNK_CHARS, len(text) + CHUNK_CHARS, CHUNK_CHARS):
                raw = _usage(prompt, text) if end >= len(text) else None
                yield CompletionResponse(text=text[:end], delta=text[end - CHUNK_CHARS : end], raw=raw)

        return pieces()


def _reply(prompt: str) -> str:
    asked = _QUESTION.findall(prompt)
    chosen = extract(unescape(asked[-1].strip()) if asked else "", XmlRenderer().recover(prompt))
    fields = {"verdict": str(chosen.verdict), "sources": list(chosen.keys), "answer": chosen.text}
    return json.dumps(fields, ensure_ascii=False)


def _usage(prompt: str, text: str) -> dict[str, Any]:
    counter = TokenCounter()
    sent, written = counter.tokens(prompt), counter.tokens(text)
    return {"usage": {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}}
