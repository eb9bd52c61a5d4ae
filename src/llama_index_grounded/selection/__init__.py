"""Nodes in, fewer and better nodes out."""

from typing import TYPE_CHECKING

from llama_index_grounded._lazy import lazy
from llama_index_grounded.evidence import MetadataKeys

if TYPE_CHECKING:
    from llama_index_grounded.selection.access import AccessGuard
    from llama_index_grounded.selection.budget import TokenBudget
    from llama_index_grounded.selection.carrier import Evidence, Notes
    from llama_index_grounded.selection.chain import default_postprocessors
    from llama_index_grounded.selection.combined import CombinedGate, EvidenceGate
    from llama_index_grounded.selection.conflicts import ConflictFlagger
    from llama_index_grounded.selection.dedup import ScopedDedup
    from llama_index_grounded.selection.gate import ScoreGate
    from llama_index_grounded.selection.near_duplicates import NearDuplicateFilter
    from llama_index_grounded.selection.order import AttentionReorder
    from llama_index_grounded.selection.passages import PassageMerger, origin_of
    from llama_index_grounded.selection.signals import MetadataScore, RecordScore, VectorSimilarity
    from llama_index_grounded.selection.source_order import SourceOrder
    from llama_index_grounded.selection.stage import Kind, Outcome, Selection, Stage
    from llama_index_grounded.selection.sufficiency import SufficiencyGate

__all__ = [
    "AccessGuard",
    "AttentionReorder",
    "CombinedGate",
    "ConflictFlagger",
    "Evidence",
    "EvidenceGate",
    "Kind",
    "MetadataKeys",
    "MetadataScore",
    "NearDuplicateFilter",
    "Notes",
    "Outcome",
    "PassageMerger",
    "RecordScore",
    "ScopedDedup",
    "ScoreGate",
    "Selection",
    "SourceOrder",
    "Stage",
    "SufficiencyGate",
    "TokenBudget",
    "VectorSimilarity",
    "default_postprocessors",
    "origin_of",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "access": "AccessGuard",
        "budget": "TokenBudget",
        "carrier": "Evidence Notes",
        "chain": "default_postprocessors",
        "combined": "CombinedGate EvidenceGate",
        "conflicts": "ConflictFlagger",
        "dedup": "ScopedDedup",
        "gate": "ScoreGate",
        "near_duplicates": "NearDuplicateFilter",
        "order": "AttentionReorder",
        "passages": "PassageMerger origin_of",
        "signals": "MetadataScore RecordScore VectorSimilarity",
        "source_order": "SourceOrder",
        "stage": "Kind Outcome Selection Stage",
        "sufficiency": "SufficiencyGate",
    },
)
