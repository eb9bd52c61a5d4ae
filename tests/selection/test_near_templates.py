"""Texts made from one template: told apart by what differs, without a look at each pair, and without a missed pair."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding

from llama_index_grounded.selection.near_duplicates import NearDuplicateFilter
from llama_index_grounded.selection.shingling import shingles
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.text.statement import apart, statement
from tests.selection.parts import bodies, ids
from tests.timing import assert_within

TEMPLATE = (
    "The article with the number {} is delivered within five working days after the order was paid, and it can be "
    "returned in its original package within three weeks of delivery as long as it is unused and complete."
)
VALUES = [
    *(
        "1,500",
        "1500",
        "1.500",
        "1.5",
        "twelve",
        "12",
        "v3.5",
        "3.5",
        "3.05",
        "version 3.05",
        "3 mg",
        "3 g",
        "½",
        "0.5",
    ),
    *("5", "5a", "5b", "5 A", "5B", "mW", "MW", "+3", "-3", "x < y", "x > y", "1990s", "1990"),
    *("January", "February", "once", "twice", "03/04/2026", "04/03/2026", "A", "B", "красный", "синий", "not", ""),
]


@settings(max_examples=30)
@given(st.lists(st.sampled_from(VALUES), min_size=20, max_size=60))
def test_no_pair_of_many_alike_is_missed(drawn: list[str]) -> None:
    """The same nodes stay as when every pair is compared, also where far more than a few texts share their words."""
    texts = [TEMPLATE.format(value) for value in drawn]
    said = {text: statement(text) for text in texts}
    expected: list[str] = []
    for text in texts:
        if not any(alike(text, other) and not apart(said[other], said[text]) for other in expected):
            expected.append(text)
    assert bodies(NearDuplicateFilter().postprocess_nodes(make_nodes(texts))) == expected


def alike(one: str, other: str) -> bool:
    """Say whether two texts share enough of their shingles."""
    mine, theirs = shingles(one), shingles(other)
    return len(mine & theirs) >= 0.8 * len(mine | theirs)


@pytest.mark.parametrize(
    "one, other",
    [
        *(("5 mg", "5 g"), ("January", "February"), ("≥ 5", "≤ 5"), ("IV", "VI"), ("③", "②"), ("once", "twice")),
        *(("5a", "5b"), ("5", "5a"), ("1040A", "1040B"), ("5 mW", "5 MW"), ("500 Mb", "500 MB"), ("5", "5 mg")),
        *(("UTC-3", "UTC+3"), ("UTC+03:00", "UTC-03:00"), ("x = 5", "x != 5"), ("a && b", "a || b"), ("C++", "C")),
        *(("if (!ready)", "if (ready)"), ("12B2", "12C2"), ("1,500", "1.500")),
    ],
)
@pytest.mark.parametrize("method", ["lexical", "embedding"])
def test_one_small_difference_keeps_two_texts(method: Any, one: str, other: str) -> None:
    """At the default threshold, a unit, month, sign, numeral, letter or operator alone makes another text."""
    model = MockEmbedding(embed_dim=4) if method == "embedding" else None
    nodes = make_nodes([TEMPLATE.format(one), TEMPLATE.format(other)])
    assert len(NearDuplicateFilter(method=method, embed_model=model).postprocess_nodes(nodes)) == 2


def test_a_thousand_texts_that_differ_in_a_number_take_little_time() -> None:
    """A price list of 1,000 articles stays whole, its repetition goes, and no pair is looked at for most of them."""
    texts = [TEMPLATE.format(number) for number in range(1000)]
    nodes = make_nodes([*texts, texts[700].upper()])
    kept = assert_within(7, lambda: NearDuplicateFilter().postprocess_nodes(nodes))
    assert ids(kept) == [f"n{number}" for number in range(1000)]
