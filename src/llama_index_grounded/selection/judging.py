"""What stages that ask a model share: sources as a judge sees them, and the judge itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from llama_index.core import Settings
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore
from pydantic import Field

from llama_index_grounded.evidence import FieldName, field_for_llm, included_text
from llama_index_grounded.rendering import clean, escape
from llama_index_grounded.rendering.escaping import escape_attribute

__all__ = ["Seconds", "judge_block", "judge_of", "judge_prompt", "sources_for"]

_FIELDS: tuple[FieldName, ...] = ("title", "section", "heading", "page", "updated")
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def judge_of(llm: Any) -> LLM:
    """Return the chosen model, or LlamaIndex's default one."""
    chosen: LLM = Settings.llm if llm is None else llm
    return chosen


def sources_for(named: Iterable[tuple[str, NodeWithScore]]) -> str:
    """Show nodes to a judge, with what dates and names them; no text can leave its block."""
    return "".join(_block(name, scored) for name, scored in named)


def _block(name: str, scored: NodeWithScore) -> str:
    fields = {field: field_for_llm(scored.node, field) for field in _FIELDS}
    return judge_block(name, included_text(scored.node), {name: value for name, value in fields.items() if value})


def judge_block(name: str, text: str, fields: Mapping[str, str]) -> str:
    """Show one source to a judge with what describes it; neither can leave its place."""
    shown = "".join(f' {field}="{escape_attribute(value)}"' for field, value in fields.items())
    return f'<source id="{name}"{shown}>\n{escape(clean(text))}\n</source>\n'


def judge_prompt(system: str, user: str) -> list[ChatMessage]:
    """Make the messages to a judge."""
    return [ChatMessage(role=MessageRole.SYSTEM, content=system), ChatMessage(role=MessageRole.USER, content=user)]
