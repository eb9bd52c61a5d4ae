"""Scores that are ranks in disguise are told from scores that a threshold can be measured on."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle

from llama_index_grounded import ScoreGate
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.scales import fused_lists, odd_scale
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.selection.test_engine import Holds

BAR = 0.5


@st.composite
def fused(draw: st.DrawFn) -> tuple[int, list[float]]:
    """Draw rankings of up to ten nodes in up to twelve lists, and fuse them as LlamaIndex does."""
    count = draw(st.integers(2, 10))
    lists = draw(st.lists(st.permutations(range(count)), min_size=1, max_size=12))
    kept = draw(st.integers(1, count))
    scores = [0.0] * count
    for ranking in lists:
        for rank, node in enumerate(ranking[:kept]):
            scores[node] += 1 / (rank + 60)
    return len(lists), [score for score in scores if score]


@given(case=fused())
def test_fused_scores_are_told_whatever_the_rankings(case: tuple[int, list[float]]) -> None:
    """Up to twelve lists of ten nodes are told as soon as two nodes differ in score; no bar is needed for that."""
    lists, scores = case
    if len(set(scores)) > 1 and any(round(score, 4) != score for score in scores):
        assert fused_lists(scores) >= max(scores) * 60 - 1e-6
        assert "rank fusion" in odd_scale(scores, BAR)
    elif lists <= 2:
        assert fused_lists(scores) in (2, 4)


@pytest.mark.parametrize("most", [0.03, 0.06, 0.13, 0.2])
def test_weak_cosines_are_not_taken_for_ranks(most: float) -> None:
    """Of lists of three scores in the range of fused ones, under one in a hundred is taken for fused."""
    drawn = random.Random(7)
    lists = [[drawn.uniform(0.015, most) for _ in range(3)] for _ in range(300)]
    assert sum(fused_lists(scores) > 0 for scores in lists) < 3


@pytest.mark.parametrize("retrievers", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"num_queries": 1}], ids=["four questions", "one question"])
def test_the_fusion_of_llama_index_is_told(options: dict[str, Any], retrievers: int) -> None:
    """With the questions that it asks by default and several retrievers, the refusal says why no bar can be met."""
    found = [Holds(make_nodes(["a", "b", "c"], ids=["x", "y", "z"])) for _ in range(retrievers)]
    retriever = QueryFusionRetriever(
        list(found),
        llm=ScriptedLLM(["one?\ntwo?\nthree?"]),
        mode="reciprocal_rerank",  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        use_async=False,
        **options,
    )
    bundle = QueryBundle("Which?")
    nodes = ScoreGate(min_score=BAR).select(retriever.retrieve(bundle), bundle).nodes
    assert nodes == []
    assert isinstance(nodes, Evidence)
    (warning,) = nodes.trail.notes.warnings
    assert "rank fusion" in warning
    assert "VectorSimilarity" in warning


@pytest.mark.parametrize(
    "scores, bar, odd",
    [
        ([1 / 60, 1 / 61, 1 / 62], BAR, "rank fusion"),
        ([1 / 60 + 1 / 61, 1 / 63], BAR, "rank fusion"),
        ([1 / 60], BAR, "rank fusion"),
        ([4 / 60, 3 / 61 + 1 / 60], BAR, "rank fusion"),
        ([4 / 60, 3 / 61 + 1 / 60], 0.06, ""),  # it can be met
        ([4 / 60], BAR, ""),  # one score alone
        ([0.05, 0.1], BAR, ""),  # rounded cosines, which are 3 / 60 and 6 / 60 too
        ([1 / 60, 1 / 61], 0.01, ""),
        ([0.031, 0.016], BAR, ""),
        ([1.0, 0.4, 0.0], BAR, "relative"),
        ([1.0, 0.0], BAR, ""),
        ([0.82, 0.4, 0.0], BAR, ""),
        ([3.1, 0.2, -4.7], 0.0, ""),
        ([0.0], BAR, ""),
    ],
)
def test_odd_scales_are_named(scores: list[float], bar: float, odd: str) -> None:
    """Fused scores under a bar that they can never meet, and relative ones, get a warning; others none."""
    found = odd_scale(scores, bar)
    assert odd in found
    assert bool(odd) is bool(found)
