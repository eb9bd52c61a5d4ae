"""Numbers and ranges in a text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.number_ranges import NumberRange, number_ranges

numbers = st.integers(min_value=0, max_value=9999)
texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=80)


@given(numbers, numbers, numbers, st.sampled_from(["{}–{} copies", "{} to {} copies", "{} ila {} adet"]))
def test_a_range_holds_exactly_the_numbers_between_its_ends(low: int, high: int, asked: int, form: str) -> None:
    """A range in digits holds a number if and only if the number lies between the two ends."""
    (stated,) = number_ranges(form.format(low, high))
    (number,) = number_ranges(f"{asked} copies")
    assert stated.holds(number) == (low <= asked <= high)


@given(numbers, numbers, st.sampled_from(["{} copies or more", "at least {} copies", "{} adet ve üzeri"]))
def test_an_open_range_has_no_upper_end(low: int, asked: int, form: str) -> None:
    """A number "or more" holds that number and every larger one."""
    (stated,) = number_ranges(form.format(low))
    assert stated.holds(NumberRange(low=asked, high=asked, kind="count")) == (asked >= low)


@given(texts)
def test_any_text_can_be_read(text: str) -> None:
    """No text makes the reader fail, and no range that it finds holds "not a number"."""
    assert not any(math.isnan(number.low) or math.isnan(number.high) for number in number_ranges(text))


@pytest.mark.parametrize(
    "text,expected",
    [
        ("within 21 days of delivery", (0, 21, "time")),
        ("teslimattan sonraki 21 gün içinde", (0, 21, "time")),
        ("valid for 24 months", (720, 720, "time")),
        ("5 iş günü", (5, 5, "time")),
        ("orders of 1,000 TL or more", (1000, math.inf, "money")),
        ("1.000 TL ve üzeri", (1000, math.inf, "money")),
        ("a discount of 15 %", (15, 15, "percent")),
        ("%22 indirim", (22, 22, "percent")),
        ("en çok 6 taksit", (0, 6, "count")),
    ],
)
def test_units_and_bounds_are_read_in_both_languages(text: str, expected: tuple[float, float, str]) -> None:
    """English and Turkish units and bounds give the same kinds of range."""
    assert [(number.low, number.high, number.kind) for number in number_ranges(text)] == [expected]


def test_a_time_of_day_is_no_number() -> None:
    """A clock time never passes for a number of something."""
    assert number_ranges("when you order before 14:00") == []
