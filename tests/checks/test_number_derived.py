"""Numbers that follow from two others."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llama_index_grounded.checks.numbers import NumberCheck
from tests.checks.number_cases import context, failing

DERIVING = NumberCheck(allow_derived=True)


@given(st.integers(10, 10**6), st.integers(10, 10**6))
def test_sums_and_differences(first: int, second: int) -> None:
    """The sum and the difference of two different numbers of one source pass, and the detail names them."""
    assume(first != second)
    for value in {first + second, abs(first - second)} - {first, second, 0}:
        result = DERIVING.check(context(f"altogether {value} books", [f"{first} red books; {second} blue books"]))
        assert result.status == "passed"
        assert result.detail.startswith(f"derived: {value} = ")


@given(st.integers(10, 10**6), st.integers(1, 99))
def test_shares(base: int, percent: int) -> None:
    """A percentage of a number passes, exactly, and a value beside it does not."""
    share = f"{base * percent // 100}.{base * percent % 100:02d}"
    source = f"{base} copies at {percent} % off"
    assert DERIVING.check(context(f"That is {share} copies", [source])).status == "passed"
    assert DERIVING.check(context(f"That is {share}5 copies", [source])).status == "failed"


@pytest.mark.parametrize(
    "answer, source, question, detail",
    [
        ("18 copies", "15 % off", "I buy 120 copies", "derived: 18 = 120 × 15 %"),
        ("18 TL", "120 TL, %15 indirim", "", "derived: 18 TL = 120 TL × %15"),
        ("42 days", "12 days and 30 days", "", "derived: 42 = 12 + 30"),
        ("149 more", "50–199 copies", "", "derived: 149 = 199 − 50"),
        ("7 %", "22 % now, 15 % before", "", "derived: 7 % = 22 % − 15 %"),
        ("25 %", "5 of the 20 books", "", "derived: 25 % = 5 of 20"),
        ("33.3 %", "1 book, 3 shelves", "", "derived: 33.3 % = 1 of 3"),
        ("%12,50", "5 TL indirim, 40 TL fiyat", "", "derived: %12,50 = 5 TL of 40 TL"),
        ("4 Mio", "1,5 milyon ve 2.5M", "", "derived: 4 Mio = 1,5 milyon + 2.5M"),
    ],
)
def test_ways(answer: str, source: str, question: str, detail: str) -> None:
    """Each way is named as a sum in the words of the texts."""
    assert DERIVING.check(context(answer, [source], question=question)).detail == detail


@pytest.mark.parametrize(
    "answer, sources",
    [
        ("42 days", ["12 days", "30 days"]),
        ("42 days", ["12 % and 30 days"]),
        ("42 TL", ["12 TL and 30 USD"]),
        ("24 days", ["12 days"]),
        ("37 %", ["7 and 30"]),
        ("33 %", ["1 and 3"]),
        ("400 %", ["5 and 20"]),
        ("25 %", ["5 TL and 20 USD"]),
        ("102 copies", ["120 copies, 15 % off"]),
        ("60 days", ["10 days, 20 days, 30 days"]),
        ("March 2026", ["1000 and 1026"]),
        (f"42.{'0' * 100}1 days", ["12 days and 30 days"]),
    ],
)
def test_no_way(answer: str, sources: list[str]) -> None:
    """Two sources, two kinds, one number twice, three numbers two steps and nearly equal make no derived number."""
    assert DERIVING.check(context(answer, sources)).status == "failed"


def test_off_unless_asked() -> None:
    """Without the option a sum fails; with it, what does not follow still does, beside what does."""
    answer, source = "42 days, 99 books", "12 days and 30 days"
    assert failing(NumberCheck().check(context(answer, [source])), answer) == ["42", "99"]
    result = DERIVING.check(context(answer, [source]))
    assert failing(result, answer) == ["99"]
    assert result.detail == '"99" stands in no cited source; derived: 42 = 12 + 30'


def test_the_search_is_bounded() -> None:
    """Only the first 100 values are tried: a sum of values behind them fails."""
    source = " ; ".join(f"{number} x" for number in range(10_000, 10_200))
    assert DERIVING.check(context("20001", [source])).status == "passed"
    assert DERIVING.check(context("20397", [source])).status == "failed"
