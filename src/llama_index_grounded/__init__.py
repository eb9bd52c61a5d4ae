"""Cited answers or honest refusals, between LlamaIndex's retrieval and its response."""

from llama_index_grounded.schema import Citation, GroundedResult, RefusalReason, SourceRef, Verdict
from llama_index_grounded.selection import (
    AttentionReorder,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
    default_postprocessors,
)
from llama_index_grounded.synthesis import CitingSynthesizer, GroundedAnswer, GroundedQueryEngine, GroundedResponse

__all__ = [  # noqa: RUF022 - in the order of the flow
    "ScoreGate",
    "ScopedDedup",
    "TokenBudget",
    "AttentionReorder",
    "default_postprocessors",
    "CitingSynthesizer",
    "GroundedQueryEngine",
    "GroundedAnswer",
    "Verdict",
    "GroundedResponse",
    "GroundedResult",
    "Citation",
    "SourceRef",
    "RefusalReason",
]
