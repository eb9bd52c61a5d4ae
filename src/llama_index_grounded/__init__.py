"""Cited answers or honest refusals, between LlamaIndex's retrieval and its response."""

from typing import TYPE_CHECKING

from llama_index_grounded._lazy import lazy

if TYPE_CHECKING:
    from llama_index_grounded.schema import Citation, GroundedResult, RefusalReason, SourceRef, Verdict
    from llama_index_grounded.selection import (
        AccessGuard,
        AttentionReorder,
        ScopedDedup,
        ScoreGate,
        TokenBudget,
        default_postprocessors,
    )
    from llama_index_grounded.synthesis import CitingSynthesizer, GroundedAnswer, GroundedQueryEngine, GroundedResponse

__all__ = [  # noqa: RUF022 - in the order of the flow
    "AccessGuard",
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "schema": "Citation GroundedResult RefusalReason SourceRef Verdict",
        "selection": "AccessGuard AttentionReorder ScopedDedup ScoreGate TokenBudget default_postprocessors",
        "synthesis": "CitingSynthesizer GroundedAnswer GroundedQueryEngine GroundedResponse",
    },
)
