"""What a synthesizer brings to every prompt: rules, template, renderer, schema, and how much of it is not evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.prompts import BasePromptTemplate

from llama_index_grounded._allowed import need_part
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.history import history_of
from llama_index_grounded.llm.providers import SCHEMA_BESIDE, Kind
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.rendering import Renderer, clean
from llama_index_grounded.synthesis.answer import AnswerModel
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.prompts import envelope
from llama_index_grounded.synthesis.unescaping import Escapes, escapes_of

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

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

    def messages(self, query: QueryBundle, context: str) -> tuple[ChatMessage, ...]:
        """Fill the template, with history and question escaped so that they can not pose as a source."""
        return tuple(message for part in self._by_part(query, context).values() for message in part)

    def _by_part(self, query: QueryBundle, context: str) -> dict[str, list[ChatMessage]]:
        question = self.renderer.escape(query.query_str)
        filled = self.template.format_messages(context_str=context, query_str=question)
        schema = json.dumps(self.schema, ensure_ascii=False) if self.kind == "prompt" else None
        *before, last = [ChatMessage(role=message.role, content=message.content or "") for message in filled]
        closing = f"{last.content}\n\n{envelope(self.output_cls, schema)}"
        system = [text for text in (self.model_prompt, self.system_prompt) if text]
        return {
            "system prompt": [ChatMessage(role=MessageRole.SYSTEM, content=text) for text in system],
            "history": self._history(query),
            "rules and question": [*before, ChatMessage(role=last.role, content=closing)],
        }

    def _history(self, query: QueryBundle) -> list[ChatMessage]:
        """Show earlier turns without their markers: a key of an earlier turn names another source now."""
        texts = [(message.role, message.content or "") for message in history_of(query)]
        escapes: Escapes = "xml" if escapes_of(self.renderer) == "xml" else "none"
        bare = [
            (role, clean_answer(clean(text), (), inline_citations=False, escapes=escapes).text) for role, text in texts
        ]
        return [ChatMessage(role=role, content=self.renderer.escape(text)) for role, text in bare]

    def frame(self, query: QueryBundle, sizes: dict[tuple[str, str], int]) -> dict[str, int]:
        """Count everything but the sources, by part, in plain tokens. Each text is encoded once per query."""
        counted = {
            part: sum(self.count(text, sizes) for message in messages for text in (message.content or "").split(_GAP))
            for part, messages in self._by_part(query, _GAP).items()
        }
        return {**counted, "schema": self.schema_tokens(sizes)}

    def schema_tokens(self, sizes: dict[tuple[str, str], int]) -> int:
        """Count the schema where it goes out beside the messages and the provider writes it into the prompt."""
        beside = self.kind in SCHEMA_BESIDE
        return self.count(json.dumps(self.schema, ensure_ascii=False), sizes) if beside else 0

    def count(self, text: str, sizes: dict[tuple[str, str], int]) -> int:
        """Count plain tokens, looking in ``sizes`` first."""
        if not text:
            return 0
        name = (self.counter.name, text)
        if name not in sizes:
            sizes[name] = self.counter.tokens(text)
        return sizes[name]


def check_template(template: BasePromptTemplate) -> None:
    """Refuse what is no template, or does not hold the sources once and the question at least once."""
    need_part("text_qa_template", template, BasePromptTemplate, "a prompt template of LlamaIndex")
    filled = template.format_messages(context_str=_GAP, query_str=_QUESTION)
    text = "".join(message.content or "" for message in filled)
    for name, mark in (("context_str", _GAP), ("query_str", _QUESTION)):
        if mark not in text:
            msg = f"the text_qa_template has no {{{name}}}; it has {sorted(template.template_vars)}"
            raise ConfigurationError(msg)
    if text.count(_GAP) != 1:
        raise ConfigurationError("the text_qa_template must hold {context_str} exactly once")
