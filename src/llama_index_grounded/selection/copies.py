"""Copies of one chunk in a list, as fused lists and postprocessors that add neighbours have them.

Not every copy has the score: what adds a neighbour knows none. What one copy tells counts for the chunk.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import identity, included_text, mark_of, with_stamp
from llama_index_grounded.metadata import known
from llama_index_grounded.selection.carrier import rank_of

__all__ = ["best_copy", "chunk_of", "copies"]


def chunk_of(scored: NodeWithScore) -> Hashable:
    """Return what copies of one chunk have in common. Other text under the same identity is another chunk."""
    return identity(scored.node), included_text(scored.node)


def copies(nodes: Iterable[NodeWithScore]) -> list[list[NodeWithScore]]:
    """Put the copies of each chunk together; the chunks stand where the first copy of each stood."""
    groups: dict[Hashable, list[NodeWithScore]] = defaultdict(list)
    for scored in nodes:
        groups[chunk_of(scored)].append(scored)
    return list(groups.values())


def best_copy(group: list[NodeWithScore]) -> NodeWithScore:
    """Return the copy with the best score, the first of equal ones, at the best rank of all copies."""
    best = max(group, key=_score)
    rank = min(map(rank_of, group))
    return best if rank == rank_of(best) else with_stamp(best, {**mark_of(best), "rank": rank})


def _score(scored: NodeWithScore) -> float:
    score = known(scored.score)
    return -math.inf if score is None else score
