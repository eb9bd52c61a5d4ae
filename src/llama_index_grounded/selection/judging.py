"""What stages that ask a model share: sources as a judge sees them, and the judge itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, cast

from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore
from pydantic import BaseModel, ConfigDict, Field, model_validator

from llama_index_grounded.evidence import FieldName, fields_for_llm, included_text
from llama_index_grounded.rendering import Renderer, clean, escape
from llama_index_grounded.rendering.escaping import escape_attribute
from llama_index_grounded.rendering.renderer import shown_text

__all__ = ["Judged", "Seconds", "judge_block", "judge_of", "judge_prompt", "judged_text", "sources_for"]

_FIELDS: tuple[FieldName, ...] = ("title", "section", "heading", "page", "updated")
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class Judged(BaseModel):
    """A verdict with words that explain it. A judge is asked for both, but a verdict counts without a word."""

    model_config = ConfigDict(extra="forbid")

    explanation: ClassVar[str] = "reason"
    """Name of the field that explains."""

    # Not a default: the schema would no longer ask for the words.
    @model_validator(mode="before")
    @classmethod
    def _counts_alone(cls, said: Any) -> Any:
        if not isinstance(said, dict):
            return said
        fields = cast("dict[str, Any]", said)
        return fields if fields.get(cls.explanation) is not None else {**fields, cls.explanation: ""}


def judge_of(llm: Any) -> LLM:
    """Return the chosen model, or LlamaIndex's default one."""
    chosen: LLM = Settings.llm if llm is None else llm
    return chosen


def sources_for(named: Iterable[tuple[str, NodeWithScore]], renderer: Renderer | None) -> str:
    """Show nodes to a judge, with the text that the answering model will see and with what dates and names them.

    No text can leave its block.
    """
    return "".join(
        judge_block(name, judged_text(scored, renderer), fields_for_llm(scored.node, _FIELDS)) for name, scored in named
    )


def judged_text(scored: NodeWithScore, renderer: Renderer | None) -> str:
    """Return the text of a node as it will be shown; before a budget nobody knows how, and it is the node's own."""
    return included_text(scored.node) if renderer is None else shown_text(renderer, scored.node)


def judge_block(name: str, text: str, fields: Mapping[str, str]) -> str:
    """Show one source to a judge with what describes it; neither can leave its place."""
    shown = "".join(f' {field}="{escape_attribute(value)}"' for field, value in fields.items())
    return f'<source id="{name}"{shown}>\n{escape(clean(text))}\n</source>\n'


def judge_prompt(system: str, user: str) -> list[ChatMessage]:
    """Make the messages to a judge."""
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
