"""What an Ollama server puts on the wire, as plain values; `tests.ollama_server` sends them."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index_grounded.tokens import TokenCounter

Json = dict[str, Any]

CREATED_AT = "2026-03-01T09:00:00.000000Z"
DEFAULT_NUM_CTX = 4096
TEMPLATE_TOKENS = 4


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One scripted answer to ``/api/chat``; the defaults are those of a request that goes well.

    Args:
        content: The text of the model, or a mapping that is sent as JSON text.
        thinking: Text of the ``thinking`` field; it is streamed before the content.
        status: HTTP status. From 400 on the body is ``{"error": error}``, without an error the bare content.
        error: Text of Ollama's ``error`` field. With status 200 it breaks a stream off by an error line.
        delay: Seconds before the first byte.
        pause: Seconds before each chunk of a stream.
        drop_after: Chunks after which the connection is cut; 0 cuts it before any byte of the body.
        done_reason: ``stop``, or ``length`` for a cut answer.
        prompt_eval_count: Prompt tokens to report; by default they are counted.
        eval_count: Tokens of the answer to report; by default they are counted.
        report_usage: False leaves both counts out.
    """

    content: str | Mapping[str, object] = ""
    thinking: str = ""
    status: int = 200
    error: str = ""
    delay: float = 0.0
    pause: float = 0.0
    drop_after: int | None = None
    done_reason: str = "stop"
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    report_usage: bool = True

    @property
    def text(self) -> str:
        """The content as the text that the model writes."""
        if isinstance(self.content, str):
            return self.content
        return json.dumps(dict(self.content), ensure_ascii=False)


def as_reply(scripted: Reply | str | Mapping[str, object]) -> Reply:
    """Take a text or a mapping for a reply that goes well."""
    return scripted if isinstance(scripted, Reply) else Reply(content=scripted)


def prompt_tokens(body: Json) -> int:
    """Count what a chat request holds, with a few tokens per message for the chat template."""
    messages: list[Json] = body.get("messages", [])
    counter = TokenCounter()
    return sum(counter.tokens(message.get("content") or "") + TEMPLATE_TOKENS for message in messages)


def num_ctx(body: Json) -> int:
    """Tell the context window, in tokens, that a request asks for."""
    return int((body.get("options") or {}).get("num_ctx") or DEFAULT_NUM_CTX)


def kept_tokens(body: Json) -> int:
    """Count the prompt tokens left by Ollama's silent truncation: about half of a window too small."""
    sent, window = prompt_tokens(body), num_ctx(body)
    return sent if sent <= window else window // 2 + 2


def chat_chunks(body: Json, reply: Reply, chunk_size: int, prompt_count: int) -> Iterator[Json]:
    """Yield the objects of a streamed answer: thinking, content, then the closing one with the counts.

    Args:
        body: The request.
        reply: The scripted answer.
        chunk_size: Characters per chunk.
        prompt_count: Prompt tokens to report when the reply does not say.
    """
    head = {"model": body.get("model", ""), "created_at": CREATED_AT}
    for part in _cut(reply.thinking, chunk_size):
        yield {**head, "message": {"role": "assistant", "content": "", "thinking": part}, "done": False}
    for part in _cut(reply.text, chunk_size):
        yield {**head, "message": {"role": "assistant", "content": part}, "done": False}
    message = {"role": "assistant", "content": ""}
    yield {**head, "message": message, "done": True, **_closing(reply, prompt_count)}


def chat_object(body: Json, reply: Reply, prompt_count: int) -> Json:
    """Return the single object of an answer that is not streamed."""
    message = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["thinking"] = reply.thinking
    head = {"model": body.get("model", ""), "created_at": CREATED_AT}
    return {**head, "message": message, "done": True, **_closing(reply, prompt_count)}


def show_object(context_length: int) -> Json:
    """Describe a model, as ``/api/show`` does.

    Args:
        context_length: The model's context window in tokens.
    """
    return {
        "details": {"format": "gguf", "family": "gemma3", "parameter_size": "4.3B"},
        "model_info": {"general.architecture": "gemma3", "gemma3.context_length": context_length},
        "capabilities": ["completion"],
    }


def tags_object(models: Sequence[str]) -> Json:
    """List the installed models, as ``/api/tags`` does."""
    listed = [{"name": full_name(name), "model": full_name(name), "modified_at": CREATED_AT} for name in models]
    return {"models": listed}


def embed_object(body: Json, dim: int) -> Json:
    """Embed one text or a list of texts, as ``/api/embed`` does."""
    texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
    counts = sum(TokenCounter().tokens(text) for text in texts)
    vectors = [embed(text, dim) for text in texts]
    return {"model": body["model"], "embeddings": vectors, "prompt_eval_count": counts}


def embed(text: str, dim: int) -> list[float]:
    """Hash the words of a text into a vector of unit length: texts that share words are close.

    Args:
        text: Any text; without a word it gets the first unit vector.
        dim: Number of components.
    """
    vector = [0.0] * dim
    for word in re.findall(r"\w+", text.casefold()):
        vector[zlib.crc32(word.encode()) % dim] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def full_name(model: str) -> str:
    """Add the tag that Ollama assumes when a model is named without one."""
    return model if ":" in model else f"{model}:latest"


def _closing(reply: Reply, prompt_count: int) -> Json:
    closing: Json = {
        "done_reason": reply.done_reason,
        "total_duration": 5_000_000,
        "load_duration": 1_000_000,
    }
    if reply.report_usage:
        counted = TokenCounter().tokens(reply.thinking + reply.text)
        closing["prompt_eval_count"] = prompt_count if reply.prompt_eval_count is None else reply.prompt_eval_count
        closing["eval_count"] = counted if reply.eval_count is None else reply.eval_count
    return closing


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
