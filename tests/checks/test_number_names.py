"""Weekdays, months, frequencies, numerals and large counts of an answer stand in a source, or are named."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.numbers import NumberCheck
from tests.checks.number_cases import context, failing, supported

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TURKISH_DAYS = ("pazartesi", "salı", "çarşamba", "perşembe", "cuma", "cumartesi", "pazar")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
TURKISH_MONTHS = ("ocak", "şubat", "mart", "nisan", "mayıs", "haziran", "temmuz", "ağustos", "eylül", "ekim", "kasım")


@given(st.integers(0, 6), st.integers(0, 6), st.sampled_from(["NFC", "NFD"]))
def test_weekdays(said: int, written: int, form: Any) -> None:
    """A weekday is supported by itself, in either language, and by no other; the question counts too."""
    for source in (f"on {DAYS[written]}s", f"{DAYS[written][:3]}. 9:00", f"{TURKISH_DAYS[written]} günleri"):
        known = unicodedata.normalize(form, source)
        for answer in (f"On {DAYS[said]}.", f"{TURKISH_DAYS[said]} günü"):
            assert supported(answer, known) is (said == written)
            asked = context(answer, ["none"], question=known)
            assert (NumberCheck().check(asked).status == "passed") is (said == written)


@given(st.integers(0, 10), st.integers(0, 10))
def test_months(said: int, written: int) -> None:
    """A month is supported by itself, by a date in it in either language or in digits, and by no other."""
    for source in (f"in {MONTHS[written]}", f"{TURKISH_MONTHS[written]} ayı", f"2026-{written + 1:02d}-20"):
        for answer in (f"In {MONTHS[said]}.", f"{TURKISH_MONTHS[said]} ayında"):
            assert supported(answer, source) is (said == written)


@pytest.mark.parametrize(
    "answer, source",
    [
        *(("Twice a week", "two times a week"), ("2 times a week", "twice a week"), ("Twice daily", "every 12 hours")),
        *(("once a day", "daily"), ("Closed on Sunday", "open Mon–Fri"), ("On Wednesday", "Pazartesi'den Cuma'ya")),
        *(("On Tuesday", "on 3 March 2026"), ("Tuesday, 3 March 2026", "2026-03-03"), ("In July", "in summer")),
        *(("In May", "05/2026"), ("In May", "on 1.5."), ("You may go, they March on.", "none")),
        *(("Chapter IV", "chapter four"), ("Type II", "Types I-III"), ("19th century", "the XIX century")),
        *(("IV. Bölüm", "Chapter 4"), ("millions of users", "5,000,000 users"), ("milyonlarca kişi", "3 milyon kişi")),
        *(("millions of users", "many millions"), ("thousands of books", "in 2019"), ("12 eggs", "a dozen eggs")),
        *(("5 milyona çıktı", "5 milyon oldu"), ("beş milyona çıktı", "5 milyon"), ("pazar payı", "none")),
    ],
)
def test_supported_names(answer: str, source: str) -> None:
    """Another notation, or what a range, a season or a larger number leaves open, is no fault."""
    assert supported(answer, source)


@pytest.mark.parametrize(
    "answer, source, wrong",
    [
        ("It is sent twice a week.", "three times a week", "twice a week"),
        ("İlaç alınır, THRICE DAILY", "twice daily", "THRICE DAILY"),
        ("On Wednesday, 3 March 2026", "on 3 March 2026", "Wednesday"),
        ("See Chapter IV.", "See Chapter V.", "Chapter IV"),
        ("It has millions of users.", "It has billions of users.", "millions"),
        ("MİLYONLARCA kişi", "milyarlarca kişi", "MİLYONLARCA"),
        ("Nisan'da", "Mart'ta", "Nisan'da"),
        ("In April", "31.02.2026", "April"),
    ],
)
def test_unsupported_names(answer: str, source: str, wrong: str) -> None:
    """The span holds the words, and the detail names them."""
    result = NumberCheck().check(context(answer, [source]))
    assert failing(result, answer) == [wrong]
    assert result.detail == f'"{wrong}" stands in no cited source'


@pytest.mark.parametrize(
    "answer, source",
    [("half price", "a third off"), ("a dozen", "ten"), ("once a week", "twice a week"), ("dozens", "two")],
)
def test_names_that_are_not_seen(answer: str, source: str) -> None:
    """Limits: halves, dozens and "once" are mostly no numbers of a source, so nothing is said of them."""
    assert NumberCheck().check(context(answer, [source])).detail == "the answer has no numbers"


def test_a_named_date_is_no_number_twice() -> None:
    """A month within a date is a part of it."""
    result = NumberCheck().check(context("On 3 March 2026", ["3 March 2026"]))
    assert result.detail == "numbers found: 1 of 1"
