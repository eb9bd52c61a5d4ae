"""Weekdays, months, "twice a week", "Chapter IV" and "millions of" are found where they are surely meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.text.named_numbers import names_in, said, values_in
from tests.hostile import texts
from tests.timing import assert_linear

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TURKISH_DAYS = ("pazartesi", "salı", "çarşamba", "perşembe", "cuma", "cumartesi", "pazar günü")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
TURKISH_MONTHS = (
    "ocak ayı",
    "şubat",
    "mart ayı",
    "nisan",
    "mayıs",
    "haziran",
    "temmuz",
    "ağustos",
    "eylül",
    "ekim ayı",
)


def meant(text: str) -> list[str]:
    """Return what is said in a text."""
    return [found.name or str(found.readings[0][0]) for found in said(text)]


@given(texts())
def test_what_is_said_stands_in_the_text(text: str) -> None:
    """Nothing raises, every span lies in the text, and what a text says it also has as a source."""
    names, values = names_in(text), {str(value) for value in values_in(text)}
    for found in said(text):
        assert 0 <= found.start < found.end <= len(text)
        assert found.name in names if found.name else str(found.readings[0][0]) in values


@given(st.integers(0, 6), st.sampled_from(["", " ", "s", "'s", ", "]))
def test_weekdays_are_found(day: int, behind: str) -> None:
    """English and Turkish, and a source with one of them has that one alone."""
    for written in (DAYS[day], TURKISH_DAYS[day]):
        assert meant(f"closed on {written}{behind if written in DAYS else ''}") == [f"weekday {day}"]
        assert names_in(f"closed on {written}") == {f"weekday {day}"}


@given(st.integers(0, 9))
def test_months_are_found(month: int) -> None:
    """English and Turkish, and a source with one of them has that one alone."""
    for written in (MONTHS[month], TURKISH_MONTHS[month]):
        assert meant(f"closed in {written}") == [f"month {month + 1}"]
        assert names_in(f"closed in {written}") == {f"month {month + 1}"}


@pytest.mark.parametrize(
    "text",
    [
        *("You may go, they march on.", "May I? March!", "in march", "an august company", "Sali came"),
        *(
            "pazar payı",
            "ekim yapılır",
            "ocakta pişer",
            "fiyat aralık verir",
            "salıverildi",
            "kasımpatı",
        ),
        *("the part I like", "Vitamin C", "World War II", "section A", "CHAPTER ONE", "class of VIP guests"),
        *("once a week", "once more", "twice", "twice as much", "a dozen", "hundreds", "a million", "half price"),
    ],
)
def test_what_may_be_something_else_is_not_meant(text: str) -> None:
    """Verbs, names, other words and rough counts are not taken for a number or date of an answer."""
    assert meant(text) == []


@pytest.mark.parametrize(
    "text, expected",
    [
        *(("Twice a week", ["2"]), ("thrice daily", ["3"]), ("TWICE PER DAY", ["2"]), ("twice-yearly", ["2"])),
        *(("see Chapter IV", ["4"]), ("Type II", ["2"]), ("Annex XIX", ["19"]), ("IX. Bölüm", ["9"])),
        *(("millions of books", ["scale 6"]), ("hundreds of thousands of", ["scale 2", "scale 3"])),
        *(("Milyonlarca kitap", ["scale 6"]), ("YÜZ BİNLERCE", ["scale 3"]), ("yüzbinlerce", ["scale 3"])),
        *(("in May", ["month 5"]), ("since last March", ["month 3"]), ("PAZARTESİ", ["weekday 0"])),
        *(("SALI günü", ["weekday 1"]), ("Cuma'dan sonra", ["weekday 4"]), ("Mart'ta", ["month 3"])),
        *(("martta", ["month 3"]), ("nisanda", ["month 4"]), ("Kasım ayında", ["month 11"])),
    ],
)
def test_what_is_meant(text: str, expected: list[str]) -> None:
    """Whole names, frequencies, numerals behind a label, and large counts."""
    assert meant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("Mon-Fri", "Monday to Friday", "between Monday and Friday", "Pazartesi'den Cuma'ya", "pazartesiden cumaya"),
        *("Pzt–Cum", "on weekdays", "every day", "hafta sonu", "the next day", "tomorrow", "iş günlerinde", "24/7"),
    ],
)
def test_a_range_has_every_weekday(text: str) -> None:
    """What follows from a range or a word such as "weekdays" is not judged."""
    assert {f"weekday {day}" for day in range(7)} <= names_in(text)


@pytest.mark.parametrize("text", ["June–August", "Jan. to Mar.", "in summer", "Q1", "ilkbaharda", "Nisan'dan Mayıs'a"])
def test_a_range_has_every_month(text: str) -> None:
    """What follows from a range, a season or a quarter is not judged."""
    assert {f"month {month}" for month in range(1, 13)} <= names_in(text)


@pytest.mark.parametrize(
    "text, expected",
    [
        *(("twice", [2]), ("once a week", [1]), ("biweekly", [2]), ("every six months", [2]), ("a dozen", [12])),
        *(("every 8 hours", [3]), ("Types I–III", [1, 2, 3]), ("XIX century", [19]), ("WWII", [2]), ("I think", [])),
    ],
)
def test_values_of_a_source(text: str, expected: list[int]) -> None:
    """Words and numerals that stand for a number."""
    assert [int(value) for value in values_in(text)] == expected


@pytest.mark.parametrize("piece", ["mon ", "may", "in May ", "I-", "XX", "twice a", "millions of ", "1/", "ı"])
def test_time_grows_with_length_only(piece: str) -> None:
    """Hostile repetition takes no more than linear time."""
    assert_linear(
        lambda size: (list(said(piece * (size // len(piece)))), names_in(piece * (size // len(piece)))), 15_000
    )
    assert_linear(lambda size: list(values_in(piece * (size // len(piece)))), 15_000)
