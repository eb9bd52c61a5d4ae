"""Weak evidence is refused before a model is called, and an unknown score is neither weak nor strong."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from pydantic import ValidationError

from llama_index_grounded.errors import MissingScoreError
from llama_index_grounded.selection import MetadataScore, ScoreGate
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.gate import judge
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.parts import ids, node_lists, seen

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
GATES = st.builds(
    ScoreGate,
    min_score=st.sampled_from([-5.0, 0.0, 0.4, 0.8]),
    drop_below=st.sampled_from([None, 0.3, 0.6]),
    min_margin=st.sampled_from([0.0, 0.1]),
    on_missing_score=st.just("pass"),
)


def outcome(scores: list[float | None], **options: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the ids that passed and what was decided."""
    selection = ScoreGate(**options).select(make_nodes(["text"] * len(scores), scores=scores))
    return ids(selection.nodes), [(d.action, d.reason, d.node_id, d.value, d.limit) for d in selection.decisions]


# Laws


@given(nodes=node_lists(), gate=GATES)
def test_a_gate_is_a_filter_that_reports(nodes: list[NodeWithScore], gate: ScoreGate) -> None:
    """What passes is a part of the input in its order, unchanged, and the rest is reported once."""
    selection = gate.select(nodes)
    passed = iter(seen(nodes))
    assert all(node in passed for node in seen(selection.nodes))
    gone = [d.node_id for d in selection.decisions if d.action in ("dropped", "refused")]
    assert sorted(ids(selection.nodes) + gone) == sorted(ids(nodes))


@given(nodes=node_lists(), one=FLOATS, two=FLOATS, drop_below=st.none() | FLOATS)
def test_raising_the_bar_never_adds_a_node(nodes: list[NodeWithScore], one: float, two: float, drop_below: Any) -> None:
    """A higher ``min_score`` passes a part of what a lower one passes."""
    low, high = sorted([one, two])
    options: dict[str, Any] = {"on_missing_score": "pass", "drop_below": drop_below}
    loose = ScoreGate(min_score=low, **options).select(nodes).nodes
    strict = ScoreGate(min_score=high, **options).select(nodes).nodes
    assert set(ids(strict)) <= set(ids(loose))


@given(signals=st.lists(FLOATS, max_size=8), min_score=FLOATS)
def test_only_the_best_signal_counts(signals: list[float], min_score: float) -> None:
    """The judgement does not depend on the order, and equals the comparison of the best with the bar."""
    judgement = judge(signals, min_score=min_score)
    assert judgement.passed == (bool(signals) and max(signals) >= min_score)
    random.Random(1).shuffle(signals)
    assert judge(signals, min_score=min_score) == judgement


@pytest.mark.parametrize(
    "options",
    [{"min_score": 0.6}, {"min_score": 0.1, "drop_below": 0.65}, {"min_score": 0.0, "min_margin": 0.2}],
    ids=str,
)
def test_the_laws_of_a_filter(options: dict[str, Any]) -> None:
    """The stage keeps the laws of its kind."""
    check_postprocessor(lambda: ScoreGate(**options))


# Cases


def test_the_bar_itself_passes_and_below_it_nothing_does() -> None:
    """A best score at the bar passes with all other nodes; just below it all are refused with their scores."""
    assert outcome([0.5, 0.1], min_score=0.5) == (["n0", "n1"], [("kept", "best_score", "n0", 0.5, 0.5)])
    below = math.nextafter(0.5, 0)
    assert outcome([0.1, below], min_score=0.5) == (
        [],
        [("refused", "low_score", "n0", 0.1, 0.5), ("refused", "low_score", "n1", below, 0.5)],
    )


def test_no_nodes_are_not_a_low_score() -> None:
    """An empty retrieval leaves no decision, so it can be told from a weak one."""
    assert outcome([], min_score=0.5) == ([], [])


def test_single_weak_nodes_are_dropped_on_demand() -> None:
    """``drop_below`` removes known scores below it; an unknown score stays."""
    passed, decisions = outcome([0.9, 0.2, None, float("nan")], min_score=0.5, drop_below=0.3)
    assert passed == ["n0", "n2", "n3"]
    assert ("dropped", "low_score", "n1", 0.2, 0.3) in decisions


def test_dropping_every_node_is_a_refusal() -> None:
    """When even the best is below ``drop_below`` all are refused for it, and none is called the kept best."""
    assert outcome([0.4, 0.3], min_score=0.1, drop_below=0.5) == (
        [],
        [("refused", "low_score", "n0", 0.4, 0.5), ("refused", "low_score", "n1", 0.3, 0.5)],
    )
    assert outcome([0.4, None], min_score=0.1, drop_below=0.5) == (["n1"], [("dropped", "low_score", "n0", 0.4, 0.5)])


@pytest.mark.parametrize("scores", [[0.9, 0.8], [0.3, 0.2], [0.8, 0.9], [1.1, 1.0]], ids=str)
def test_the_margin_itself_is_enough(scores: list[float | None]) -> None:
    """A lead as large as ``min_margin`` passes, whatever the rounding of floats."""
    assert outcome(scores, min_score=0.0, min_margin=0.1)[0] == ["n0", "n1"]


def test_a_close_second_refuses() -> None:
    """A smaller lead refuses all nodes, with the lead as value and the margin as limit."""
    passed, decisions = outcome([0.9, 0.85], min_score=0.0, min_margin=0.2)
    assert passed == []
    assert [(d[1], round(d[3], 6), d[4]) for d in decisions] == [("low_margin", 0.05, 0.2)] * 2
    assert outcome([0.9], min_score=0.0, min_margin=0.2)[0] == ["n0"]


def test_a_chunk_that_came_twice_does_not_compete_with_itself() -> None:
    """The margin is measured between distinct chunks."""
    nodes = make_nodes(["a", "a", "b"], scores=[0.9, 0.9, 0.5], ids=["x", "x", "y"])
    assert len(ScoreGate(min_score=0.1, min_margin=0.3).select(nodes).nodes) == 3


@pytest.mark.parametrize("missing", [[None, None], [float("nan"), None], [float("inf"), None]], ids=str)
def test_scores_that_are_all_unknown_follow_the_option(missing: list[float | None]) -> None:
    """Without any known score the gate raises with the ids, passes or refuses, as it was told."""
    with pytest.raises(MissingScoreError, match="on_missing_score") as caught:
        outcome(missing, min_score=0.5)
    assert caught.value.node_ids == ("n0", "n1")
    assert isinstance(caught.value, ValueError)
    assert outcome(missing, min_score=0.5, on_missing_score="pass") == (["n0", "n1"], [])
    assert outcome(missing, min_score=0.5, on_missing_score="refuse") == (
        [],
        [("refused", "low_score", "n0", None, 0.5), ("refused", "low_score", "n1", None, 0.5)],
    )


def test_nodes_that_pass_without_a_score_leave_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """With "pass" each result says that the bar was not looked at, and the log says so once."""
    gate = ScoreGate(min_score=0.5, on_missing_score="pass")
    lists = [gate.select(make_nodes(["a", "b"], scores=[None, None])).nodes for _ in range(2)]
    (warning, again) = [
        warning for nodes in lists if isinstance(nodes, Evidence) for warning in nodes.trail.notes.warnings
    ]
    assert "none of 2 nodes has a score" in warning
    assert "min_score=0.5" in warning
    assert again == warning
    assert [record.getMessage() for record in caplog.records] == [warning]


@pytest.mark.parametrize("huge", [10**400, -(10**400), Fraction(10**400), Decimal("1e999")], ids=type)
def test_numbers_beyond_the_range_of_floats_are_unknown(huge: Any) -> None:
    """They are no error in the middle of a query: the other scores decide, and without one the option does."""
    nodes = make_nodes(["a", "b"], scores=[0.9, 0.8], metadata=[{"m": huge}, {"m": 0.8}])
    nodes[0].score = huge
    signals: list[Any] = ["score", MetadataScore("m")]
    for signal in signals:
        (decision,) = ScoreGate(min_score=0.5, signal=signal).select(nodes).decisions
        assert (decision.node_id, decision.value) == ("n1", 0.8)
        with pytest.raises(MissingScoreError):
            ScoreGate(min_score=0.5, signal=signal).select(nodes[:1])


@pytest.mark.parametrize(
    "scores, bar, passed",
    [
        ([0.62, 0.55, 0.06], 0.5, ["n0", "n1", "n2"]),  # dense scores with a text rank among them
        ([3.1, 0.2, -4.7], 0.0, ["n0", "n1", "n2"]),  # logits of a cross-encoder
        ([-1.5, -4.7], -2.0, ["n0", "n1"]),
        ([0.9, float("nan"), 0.5], 0.8, ["n0", "n1", "n2"]),
        ([None, 0.9], 0.8, ["n0", "n1"]),
        ([0.0333, 0.0167], 0.5, []),  # reciprocal ranks never reach a cosine's bar
    ],
)
def test_scores_keep_their_own_scale(scores: list[float | None], bar: float, passed: list[str]) -> None:
    """Scores are compared as they came: no clamping, no order by score, unknown ones ignored."""
    assert outcome(scores, min_score=bar)[0] == passed


def test_numbers_of_numpy_become_plain_floats() -> None:
    """A rerankers' float32 does not reach the decisions, which go into JSON."""
    score: Any = np.float32(0.5)
    nodes = make_nodes(["text"])
    nodes[0].score = score
    (decision,) = ScoreGate(min_score=0.25).select(nodes).decisions
    assert type(decision.value) is float


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_score": float("nan")},
        {"min_score": float("inf")},
        {"min_score": "0.5"},
        {"min_score": True},
        {"min_score": 0.5, "min_margin": -0.1},
        {"min_score": 0.5, "drop_below": float("nan")},
        {"min_score": 0.5, "on_missing_score": "ignore"},
        {"min_score": 0.5, "signal": "rank"},
        {"min_score": 0.5, "cutoff": 0.5},
    ],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A missing, misspelt, textual or not-a-number option is an error at construction."""
    with pytest.raises(ValidationError):
        ScoreGate(**options)
