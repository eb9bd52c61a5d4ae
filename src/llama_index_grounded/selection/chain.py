"""The stages in the order in which they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys
from llama_index_grounded.selection.budget import TokenBudget
from llama_index_grounded.selection.dedup import ScopedDedup
from llama_index_grounded.selection.gate import ScoreGate
from llama_index_grounded.selection.order import AttentionReorder, Placement
from llama_index_grounded.selection.repetition import Scope

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    from llama_index_grounded.selection.allowance import PromptPlanner

__all__ = ["default_postprocessors"]


def default_postprocessors(
    *,
    min_score: float | None = None,
    max_tokens: int | None = None,
    top_n: int | None = None,
    synthesizer: PromptPlanner | None = None,
    scope: Scope = "section",
    placement: Placement = "edges",
    keys: MetadataKeys = DEFAULT_KEYS,
) -> list[BaseNodePostprocessor]:
    """Build the usual chain: gate, dedup, budget, order.

    There is no gate without ``min_score`` and no budget without a limit: a threshold that nobody measured on the
    data at hand is no help, and a limit that nobody asked for loses evidence.

    Args:
        min_score: What the best score must reach, on the scale of the retriever.
        max_tokens: Most tokens of rendered sources.
        top_n: Most nodes.
        synthesizer: Pack for this synthesizer's prompt and its model's window.
        scope: Where repeated text is looked for.
        placement: Where the best nodes stand in the prompt.
        keys: Names of the identifying metadata fields.

    Example:
        >>> [type(stage).__name__ for stage in default_postprocessors(min_score=0.4, max_tokens=1200)]
        ['ScoreGate', 'ScopedDedup', 'TokenBudget', 'AttentionReorder']
    """
    stages: list[BaseNodePostprocessor] = []
    if min_score is not None:
        stages.append(ScoreGate(min_score=min_score, keys=keys))
    stages.append(ScopedDedup(scope=scope, keys=keys))
    if synthesizer is not None:
        stages.append(TokenBudget.for_synthesizer(synthesizer, top_n=top_n, max_tokens=max_tokens, keys=keys))
    elif max_tokens is not None or top_n is not None:
        stages.append(TokenBudget(max_tokens=max_tokens, top_n=top_n, keys=keys))
    stages.append(AttentionReorder(placement=placement, keys=keys))
    return stages
