"""Copies of one chunk in a list, as fused lists and postprocessors that add neighbours have them.

Not every copy has the score: what adds a neighbour knows none. What one copy tells counts for the chunk.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import identity, included_text, mark_of, with_stamp
from llama_index_grounded.metadata import known
from llama_index_grounded.selection.carrier import rank_of

__all__ = ["chunk_of", "distinct"]


def chunk_of(scored: NodeWithScore) -> Hashable:
    """Return what copies of one chunk have in common. Other text under the same identity is another chunk."""
    return identity(scored.node), included_text(scored.node)


def distinct(nodes: Iterable[NodeWithScore]) -> Iterator[tuple[NodeWithScore, list[NodeWithScore]]]:
    """Yield of each chunk the copy with the best score, at the best rank of all copies, and its other copies.

    The first of equal ones is the best; chunks stand where the first copy of each stood.
    """
    groups: dict[Hashable, list[NodeWithScore]] = defaultdict(list)
    for scored in nodes:
        groups[chunk_of(scored)].append(scored)
    for group in groups.values():
        if len(group) == 1:
            yield group[0], []
            continue
        best, rank = max(group, key=_score), min(map(rank_of, group))
        others = [scored for scored in group if scored is not best]
        yield (best if rank == rank_of(best) else with_stamp(best, {**mark_of(best), "rank": rank})), others


def _score(scored: NodeWithScore) -> float:
    score = known(scored.score)
    return -math.inf if score is None else score
