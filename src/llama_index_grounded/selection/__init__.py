"""Nodes in, fewer and better nodes out."""

from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.selection.budget import TokenBudget
from llama_index_grounded.selection.chain import default_postprocessors
from llama_index_grounded.selection.combined import CombinedGate, EvidenceGate
from llama_index_grounded.selection.conflicts import ConflictFlagger
from llama_index_grounded.selection.dedup import ScopedDedup
from llama_index_grounded.selection.gate import ScoreGate
from llama_index_grounded.selection.order import AttentionReorder
from llama_index_grounded.selection.signals import MetadataScore, RecordScore, VectorSimilarity
from llama_index_grounded.selection.source_order import SourceOrder
from llama_index_grounded.selection.stage import Outcome, Selection, Stage
from llama_index_grounded.selection.sufficiency import SufficiencyGate

__all__ = [
    "AttentionReorder",
    "CombinedGate",
    "ConflictFlagger",
    "EvidenceGate",
    "MetadataKeys",
    "MetadataScore",
    "Outcome",
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
]
