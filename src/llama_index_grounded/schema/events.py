"""What a stream yields."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index_grounded.schema.result import GroundedResult, SourceRef

__all__ = ["ResultEvent", "SourcesEvent", "StreamEvent", "TextEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesEvent:
    """The sources of an answer, before the model is called."""

    sources: tuple[SourceRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvent:
    """The next part of the answer or of the refusal text. All parts together are `GroundedResult.answer`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEvent:
    """The end: everything about the answer."""

    grounded: GroundedResult


StreamEvent = SourcesEvent | TextEvent | ResultEvent
