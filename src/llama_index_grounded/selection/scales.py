"""Tell scores on which no threshold can be measured: ranks in disguise, and scores that are relative to each other.

Reciprocal rank fusion (Cormack et al., SIGIR 2009) adds up 1 / (60 + rank), one term for each list that has the node.
LlamaIndex's `QueryFusionRetriever` counts ranks from 0 and fuses a list for each retriever and question; by default it
asks four questions. The best score of all is thus the number of lists by 60, however well or badly a node fits.

A score is such a sum, or it is not: of 64 ranks in two lists there are 2,144 sums. More lists have more of them, so
they are told by two different scores or more, up to 4 lists of 64 ranks, 8 lists of 20, and 12 lists of 10. What can
not be told: one score alone out of more than two lists, more or longer lists, rounded scores, another constant than 60,
and weighted lists.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np

__all__ = ["fused_lists", "odd_scale"]

_CONSTANT, _NEARLY, _FEW, _DIGITS = 60, 1e-9, 2, 4
_TWO_LISTS = 2, 64
_HALVES = (_TWO_LISTS, (4, 20), (6, 10))
"""Lists, and ranks in each, of one half; two halves make a sum."""

_Sums: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def odd_scale(scores: Sequence[float], min_score: float) -> str:
    """Say that scores are those of a rank fusion, which ``min_score`` could never meet, or relative to each other.

    Example:
        >>> odd_scale([1 / 60 + 1 / 61, 1 / 62], 0.01)
        ''
        >>> odd_scale([1 / 60 + 1 / 61, 1 / 62], 0.5)[:45]
        'all scores look like reciprocal rank fusion ('
    """
    best = max(scores)
    lists = fused_lists(scores) if best < min_score else 0
    if lists and min_score > lists / _CONSTANT:
        return (
            f"all scores look like reciprocal rank fusion (best {best:.4f}), which min_score={min_score:g} can never "
            "meet; use signal=VectorSimilarity()"
        )
    if len(scores) > _FEW and (best, min(scores)) == (1.0, 0.0) and min_score < 1:
        return "scores run from exactly 0 to 1, as if relative to each other: the best is 1 for any question"
    return ""


def fused_lists(scores: Sequence[float]) -> int:
    """Return the most lists whose fusion would give such scores: 2, 4, 8 or 12; 0 where it is none, or not to tell."""
    lists, ranks = _TWO_LISTS
    if _may_be(scores, lists) and all(_is_sum(score, _sums(lists, ranks), halves=1) for score in scores):
        return lists
    # Cosines that somebody rounded are sums by accident: 0.05 is three times 1 / 60.
    if len(set(scores)) < _FEW or all(round(score, _DIGITS) == score for score in scores):
        return 0
    for lists, ranks in _HALVES:
        if _may_be(scores, 2 * lists) and all(_is_sum(score, _sums(lists, ranks), halves=2) for score in scores):
            return 2 * lists
    return 0


def _may_be(scores: Sequence[float], lists: int) -> bool:
    return min(scores) > 0 and max(scores) <= lists / _CONSTANT + _NEARLY


def _is_sum(score: float, sums: _Sums, *, halves: int) -> bool:
    """Tell whether a score is one of the sums, or with ``halves=2`` the sum of two of them."""
    wanted = score - sums if halves > 1 else np.array([score])
    places = np.minimum(np.searchsorted(sums, wanted - _NEARLY), sums.size - 1)
    return bool((np.abs(sums[places] - wanted) <= _NEARLY).any())


@functools.cache
def _sums(lists: int, ranks: int) -> _Sums:
    """Return what a node can score in some of the lists, or in none, in rising order."""
    terms = [0.0, *(1 / (_CONSTANT + rank) for rank in range(ranks))]
    return np.unique([sum(chosen) for chosen in combinations_with_replacement(terms, lists)])
