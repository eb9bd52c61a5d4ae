"""What a synthesizer brings to every prompt: rules, template, renderer, schema, and how much of it is not evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.prompts import BasePromptTemplate

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.llm.providers import Kind
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.rendering import Renderer
from llama_index_grounded.synthesis.answer import AnswerModel
from llama_index_grounded.synthesis.prompts import envelope

if TYPE_CHECKING:
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["PromptParts", "check_template"]

_GAP, _QUESTION = "\x00sources\x00", "\x00question\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptParts:
    """What a synthesizer brings to every prompt."""

    template: BasePromptTemplate
    system_prompt: str
    model_prompt: str | None
    """The LLM's own system prompt; it comes first."""
    renderer: Renderer
    counter: TokenCounter
    output_cls: type[AnswerModel]
    kind: Kind
    """How the reply is given its form; where it is given in words, the schema stands in the prompt."""
    warnings: tuple[str, ...] = ()
    schema: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Write the schema out once."""
        object.__setattr__(self, "schema", schema_of(self.output_cls))

    def messages(self, query: str, context: str) -> tuple[ChatMessage, ...]:
        """Fill the template, with the question escaped so that it can not pose as a source."""
        filled = self.template.format_messages(context_str=context, query_str=self.renderer.escape(query))
        schema = json.dumps(self.schema, ensure_ascii=False) if self.kind == "prompt" else None
        *before, last = [ChatMessage(role=message.role, content=message.content or "") for message in filled]
        closing = f"{last.content}\n\n{envelope(self.output_cls, schema)}"
        system = [text for text in (self.model_prompt, self.system_prompt) if text]
        return (
            *(ChatMessage(role=MessageRole.SYSTEM, content=text) for text in system),
            *before,
            ChatMessage(role=last.role, content=closing),
        )

    def frame_tokens(self, query: str, sizes: dict[tuple[str, str], int]) -> int:
        """Count everything but the sources. Each part is encoded once per query."""
        texts = [part for message in self.messages(query, _GAP) for part in (message.content or "").split(_GAP)]
        return sum(self._count(text, sizes) for text in texts) + self.schema_tokens(sizes)

    def schema_tokens(self, sizes: dict[tuple[str, str], int]) -> int:
        """Count the schema where it goes out beside the messages and the provider writes it into the prompt."""
        beside = self.kind in ("tool", "openai")
        return self._count(json.dumps(self.schema, ensure_ascii=False), sizes) if beside else 0

    def _count(self, text: str, sizes: dict[tuple[str, str], int]) -> int:
        name = (self.counter.name, text)
        if name not in sizes:
            sizes[name] = self.counter.tokens(text)
        return sizes[name]


def check_template(template: BasePromptTemplate) -> None:
    """Refuse a template that does not hold the sources once and the question at least once."""
    filled = template.format_messages(context_str=_GAP, query_str=_QUESTION)
    text = "".join(message.content or "" for message in filled)
    for name, mark in (("context_str", _GAP), ("query_str", _QUESTION)):
        if mark not in text:
            msg = f"the text_qa_template has no {{{name}}}; it has {sorted(template.template_vars)}"
            raise ConfigurationError(msg)
    if text.count(_GAP) != 1:
        raise ConfigurationError("the text_qa_template must hold {context_str} exactly once")
