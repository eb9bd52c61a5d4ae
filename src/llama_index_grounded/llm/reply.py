"""What a provider sent back, read the same way for every provider: text, usage, and why it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from llama_index.core.base.llms.types import ChatResponse, ToolCallBlock

__all__ = ["Collector", "Reply"]

_LENGTH_REASONS = frozenset({"length", "max_tokens"})


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


class Collector:
    """Adds up the chunks of one reply.

    Args:
        tool: Name of the function whose arguments are the reply; None where the reply is the text.
    """

    def __init__(self, tool: str | None) -> None:
        self._tool = tool
        self._parts: list[str] = []
        self._length = 0
        self._last: ChatResponse | None = None
        self._thought = False
        self._usage: tuple[int | None, int | None] = (None, None)
        self._cut_off = False

    def add(self, chunk: ChatResponse) -> str:
        """Take the next chunk and return the next piece of the reply."""
        self._last = chunk
        self._thought = self._thought or bool(_extras(chunk).get("thinking_delta"))
        prompt, completion = _usage(chunk)
        self._usage = (
            self._usage[0] if prompt is None else prompt,
            self._usage[1] if completion is None else completion,
        )
        self._cut_off = self._cut_off or _cut_off(chunk)
        piece = (chunk.delta or "") if self._tool is None else self._next_argument(chunk)
        self._parts.append(piece)
        self._length += len(piece)
        return piece

    def reply(self) -> Reply:
        """Return what has come so far."""
        text = "".join(self._parts)
        if self._last is not None and self._tool is not None:
            text = "".join(_arguments(self._last, self._tool)) or self._last.message.content or ""
        elif self._last is not None and not text:
            text = self._last.message.content or ""
        return Reply(
            text=text,
            prompt_tokens=self._usage[0],
            completion_tokens=self._usage[1],
            cut_off=self._cut_off,
            only_thinking=self._thought and not text.strip(),
        )

    def _next_argument(self, chunk: ChatResponse) -> str:
        """Return what has been added to the arguments of the only call, if the provider streams them as text."""
        calls = _arguments(chunk, self._tool or "", streamed=True)
        return calls[0][self._length :] if len(calls) == 1 else ""


def _arguments(chunk: ChatResponse, tool: str, *, streamed: bool = False) -> list[str]:
    """Return the arguments of every call of our function as JSON; two calls are two objects, which is no answer."""
    calls = [block for block in chunk.message.blocks if isinstance(block, ToolCallBlock) and block.tool_name == tool]
    texts = [call.tool_kwargs for call in calls if isinstance(call.tool_kwargs, str) or not streamed]
    return [text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in texts]


def _as_mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    dump: Callable[[], Mapping[str, Any]] | None = getattr(value, "model_dump", None)
    return {} if dump is None else dump()


def _extras(chunk: ChatResponse) -> Mapping[str, Any]:
    return _as_mapping(cast("object", chunk.additional_kwargs))


def _usage(chunk: ChatResponse) -> tuple[int | None, int | None]:
    """Read the reported tokens where the providers of LlamaIndex put them."""
    raw = _as_mapping(chunk.raw)
    for place in (_as_mapping(raw.get("usage")), _extras(chunk), raw):
        prompt = _first_count(place, "prompt_tokens", "input_tokens", "prompt_eval_count")
        completion = _first_count(place, "completion_tokens", "output_tokens", "eval_count")
        if prompt is not None and "prompt_tokens" not in place:
            # Cache hits that are reported beside the input, not in it, would look like a prompt that was cut.
            cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
            prompt += sum(_first_count(place, name) or 0 for name in cached)
        if prompt == 0:
            # Every request has a prompt: the server fills in the field, but does not count.
            prompt, completion = None, completion or None
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
    if isinstance(choices, list):
        reasons.extend(_as_mapping(choice).get("finish_reason") for choice in cast("list[object]", choices))
    return any(reason in _LENGTH_REASONS for reason in reasons if isinstance(reason, str))
