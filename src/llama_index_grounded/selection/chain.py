"""The stages in the order in which they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llama_index.core.postprocessor.types import BaseNodePostprocessor

from llama_index_grounded._allowed import need_part
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys
from llama_index_grounded.selection.access import AccessGuard
from llama_index_grounded.selection.budget import TokenBudget
from llama_index_grounded.selection.conflicts import ConflictFlagger
from llama_index_grounded.selection.dedup import ScopedDedup
from llama_index_grounded.selection.gate import ScoreGate
from llama_index_grounded.selection.near_duplicates import NearDuplicateFilter
from llama_index_grounded.selection.order import AttentionReorder, Placement
from llama_index_grounded.selection.passages import PassageMerger
from llama_index_grounded.selection.repetition import Scope
from llama_index_grounded.selection.sufficiency import SufficiencyGate

if TYPE_CHECKING:
    from llama_index_grounded.selection.allowance import PromptPlanner
    from llama_index_grounded.selection.stage import Stage

__all__ = ["default_postprocessors"]


def default_postprocessors(
    *,
    min_score: float | None = None,
    max_tokens: int | None = None,
    top_n: int | None = None,
    synthesizer: PromptPlanner | None = None,
    scope: Scope = "section",
    placement: Placement = "edges",
    guard: AccessGuard | None = None,
    gate: Stage | None = None,
    passages: PassageMerger | None = None,
    near_duplicates: NearDuplicateFilter | None = None,
    sufficiency: SufficiencyGate | None = None,
    conflicts: ConflictFlagger | None = None,
    order: Stage | None = None,
    keys: MetadataKeys = DEFAULT_KEYS,
) -> list[BaseNodePostprocessor]:
    """Build the usual chain: gate, dedup, budget, order; and put further stages in the place where they belong.

    The whole order is guard, gate, passages, dedup, near-duplicates, budget, sufficiency, conflicts, order. There is no
    gate without ``min_score`` and no budget without a limit: a threshold that nobody measured on the data at hand is no
    help, and a limit that nobody asked for loses evidence.

    Args:
        min_score: What the best score must reach, on the scale of the retriever.
        max_tokens: Most tokens of rendered sources.
        top_n: Most nodes.
        synthesizer: Pack for this synthesizer's prompt and its model's window, and the notes of ``conflicts``.
        scope: Where repeated text is looked for.
        placement: Where the best nodes stand in the prompt.
        guard: Who may see what, once more.
        gate: In place of the `ScoreGate` that ``min_score`` makes.
        passages: Join overlapping chunks.
        near_duplicates: Leave out what is nearly the same.
        sufficiency: Ask a model whether the packed nodes are enough.
        conflicts: Flag packed nodes that disagree.
        order: In place of the `AttentionReorder`, such as `SourceOrder`.
        keys: Names of the identifying metadata fields, for the stages that are made here.

    Raises:
        ConfigurationError: With both ``min_score`` and ``gate``, with both ``placement`` and ``order``, and for a part
            of another kind (a ValueError).

    Example:
        >>> [type(stage).__name__ for stage in default_postprocessors(min_score=0.4, max_tokens=1200)]
        ['ScoreGate', 'ScopedDedup', 'TokenBudget', 'AttentionReorder']
    """
    none = type(None)
    need_part("guard", guard, (AccessGuard, none), "an AccessGuard")
    need_part("gate", gate, (BaseNodePostprocessor, none), "a stage, such as ScoreGate(min_score=...)")
    need_part("passages", passages, (PassageMerger, none), "a PassageMerger")
    need_part("near_duplicates", near_duplicates, (NearDuplicateFilter, none), "a NearDuplicateFilter")
    need_part("sufficiency", sufficiency, (SufficiencyGate, none), "a SufficiencyGate")
    need_part("conflicts", conflicts, (ConflictFlagger, none), "a ConflictFlagger")
    need_part("order", order, (BaseNodePostprocessor, none), "a stage, such as SourceOrder()")
    if min_score is not None and gate is not None:
        raise ConfigurationError("min_score makes a ScoreGate, and a gate was given too: pass one of both")
    if placement != "edges" and order is not None:
        raise ConfigurationError("placement is for AttentionReorder, and another order was given: pass one of both")
    notes = 0 if conflicts is None else conflicts.note_tokens
    stages: list[BaseNodePostprocessor | None] = [
        guard,
        gate if min_score is None else ScoreGate(min_score=min_score, keys=keys),
        passages,
        ScopedDedup(scope=scope, keys=keys),
        near_duplicates,
        _budget(synthesizer, max_tokens, top_n, notes, keys),
        sufficiency,
        conflicts,
        AttentionReorder(placement=placement, keys=keys) if order is None else order,
    ]
    return [stage for stage in stages if stage is not None]


def _budget(
    synthesizer: PromptPlanner | None, max_tokens: int | None, top_n: int | None, notes: int, keys: MetadataKeys
) -> TokenBudget | None:
    if synthesizer is not None:
        return TokenBudget.for_synthesizer(
            synthesizer, top_n=top_n, max_tokens=max_tokens, note_tokens=notes, keys=keys
        )
    if max_tokens is None and top_n is None:
        return None
    return TokenBudget(max_tokens=max_tokens, top_n=top_n, keys=keys)
