"""Notations that are one number for people: times, halves, signs, cents, telephones, names, units, lists, citations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.checks.overlap import OverlapCheck
from tests.checks.number_cases import context, english, failing, supported, turkish

UNITS = ("days", "weeks", "months", "years", "hours", "minutes", "km", "miles", "kg")
TURKISH_UNITS = {"days": "gün", "weeks": "hafta", "months": "ay", "years": "yıl", "hours": "saat", "minutes": "dakika"}


@given(st.integers(1, 9_999), st.sampled_from(UNITS), st.sampled_from(UNITS))
def test_units_are_compared(number: int, said: str, written: str) -> None:
    """A number of one unit is supported by the same unit or none, and a number without one by any."""
    assert supported(f"it is {number} {said}", f"there are {number} {written}") is (said == written)
    assert supported(f"it is {number} {said}", f"there are {number}")
    assert supported(f"it is {number}", f"there are {number} {written}")


@given(st.integers(1, 99), st.sampled_from(sorted(TURKISH_UNITS)), st.sampled_from(sorted(TURKISH_UNITS)))
def test_units_are_compared_across_languages(number: int, said: str, written: str) -> None:
    """Turkish and English units are the same, with their endings."""
    answer, source = f"{number} {TURKISH_UNITS[said]}lık süre", f"there are {number} {written}"
    assert supported(answer.replace("günlık", "günlük"), source) is (said == written)


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_times_with_a_dot(hour: int, minute: int, other: int) -> None:
    """A time with a dot is the time with a colon, and no other."""
    answer, source = f"saat {hour}.{minute:02d} olur", f"opens {hour}:{other:02d}"
    assert supported(answer, source) is (minute == other)
    assert supported(source, answer) is (minute == other)


@given(st.integers(4, 999), st.integers(4, 999))
def test_places(number: int, other: int) -> None:
    """A place in words, English or Turkish, is the same place in digits, and no other."""
    spelt = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
    words = english(number).rpartition("-" if "-" in english(number) else " ")
    last = {english(value): place for value, place in spelt.items()}.get(words[2])
    last = last or (f"{words[2][:-1]}ieth" if words[2].endswith("y") else f"{words[2]}th")
    assert supported(f"It is the {''.join(words[:2])}{last} one", f"It is the {other}th one") is (number == other)


@given(st.integers(1, 999))
def test_halves(number: int) -> None:
    """A numeral with "buçuk" is the number and a half."""
    assert supported(f"{number} buçuk metre", f"{number},5 metre")
    assert supported(f"{turkish(number)} buçuk metre", f"{number} buçuk metre")
    assert not supported(f"{number} buçuk metre", f"{number} metre")


@pytest.mark.parametrize(
    "answer, source",
    [
        ("saat 14.00", "14:00"),
        ("10.30'da açılır", "10:30"),
        ("saat 09.00–17.00", "09:00–17:00"),
        ("2.30 pm", "14:30"),
        ("1 buçuk", "1,5"),
        ("1,5 milyon", "1 buçuk milyon"),
        (".5", "0.5"),
        ("0.5", "it is .5"),
        ("$.50", "$0.50"),
        ("the twenty-first", "21st"),
        ("yirmi birinci", "21st"),
        ("yirmi birinci kat", "21. kat"),
        ("yirmibirinci", "21st"),
        ("21st", "yirmi birinci"),
        ("one hundred and first", "101st"),
        ("minus 5", "−5"),
        ("-5", "minus five"),
        ("eksi 5", "-5"),
        ("5", "10 minus 5"),
        ("5 cents", "$0.05"),
        ("$0.05", "5 cents"),
        ("5 cents", "Price in cents: 5"),
        ("5¢", "0.05 €"),
        ("50 kuruş", "0,50 TL"),
        ("+90 212 555 12 34", "0212 555 12 34"),
        ("0212 555 12 34", "+90 212 555 12 34"),
        ("+902125551234", "0212 555 12 34"),
        ("2020/21", "2020–2021"),
        ("2020–2021", "2020/21"),
        ("2020/2021", "2020/21"),
        ("in 2021", "2020/21"),
        ("1e6", "1,000,000"),
        ("1.5e-3", "0.0015"),
        ("H2O and B2B", "water"),
        ("CO2", "CO₂ is a gas"),
        ("covid-19", "COVID-19"),
        ("5 calendar days", "5 days"),
        ("5 iş günü", "5 working days"),
        ("24 saat", "24h"),
        ("5–7 weeks", "5 to 7 weeks"),
        ("27-year-old", "27 yaşında"),
    ],
)
def test_one_number(answer: str, source: str) -> None:
    """Both texts say the same number."""
    assert supported(answer, source)


@pytest.mark.parametrize(
    "answer, source",
    [
        ("saat 14.30", "14:00"),
        ("14:00", "14.00 TL"),
        ("a twenty second delay", "the 22nd"),
        ("yirmi birinci", "yirmi ikinci"),
        ("minus 5", "5"),
        ("5", "minus 5"),
        ("5 cents", "$5"),
        ("5 cents", "0.05 TL"),
        ("0212 555 12 35", "+90 212 555 12 34"),
        ("2020/21", "2020"),
        ("2020/22", "2020–2022"),
        ("1e6", "1000"),
        ("GPT-4", "GPT-3"),
        ("covid-19", "flu"),
        ("5 business days", "5 days"),
        ("5–7 weeks", "5–7 days"),
        ("5 weeks", "$5"),
        ("5 kg", "5 days"),
        ("退货期限为60天。", "退货期限为30天。"),
    ],
)
def test_another_number(answer: str, source: str) -> None:
    """The texts say different numbers, or numbers of different things."""
    assert not supported(answer, source)


@pytest.mark.parametrize(
    "answer",
    [
        "Options: 1. red; 2. blue; 3. green.",
        "It is 1) red 2) blue.",
        "(1) first, (2) second",
        "yes [1], yes ^1^, yes [^1], yes (S1, p. 4), yes [S1, S2, pp. 4-6]",
        "Source 1 says so, and Kaynak 2'ye göre de öyle.",
        "As in document 1, source 2 says so (source 1); documents 2 and source 1 are alike, Document 2 forbids it.",
        "According to source 1 the period is short. According to source 1 customers have it.",
        "As source 1 indicates, it is short. As source 1 specifies so. In source 1 it says so, in source 2 you see it.",
        "Per document 1 customers get it, kaynak 1 bunu verir, belge 2 böyle der, documents 2 from here say so.",
        "Source 1 of the two says so.",
    ],
)
def test_lists_within_a_line_and_other_citations(answer: str) -> None:
    """Numbers of inline lists, and of citations in other shapes, are not the answer's."""
    assert NumberCheck().check(context(answer, ["x", "y"])).detail == "the answer has no numbers"


@pytest.mark.parametrize(
    "answer, wrong",
    [
        ("The limit is 1. The fee is 2.", ["1", "2"]),
        ("It costs: 1. Nothing more.", ["1"]),
        ("(see page 1) and (see page 2)", ["1", "2"]),
        ("1) red 3) blue", ["3"]),
        ("Source 7 says [7] and ^7^", ["7", "7", "7"]),
        ("(S7, p. 4)", ["7", "4"]),
        ("You need documents 1 week before [S1]", ["1"]),
        ("You need documents 1-week and kaynak 1 hafta, belge 1\u00a0kg", ["1", "1", "1"]),
        ("You need 3 of source documents 1 of us, source 1  of it, document 1\u00a0of ours", ["3", "1", "1", "1"]),
        ("Send the document 1 day before, and sources 1 of you has.", ["1", "1"]),
        ("Source 1 day, [1] day, ^1^ day", ["1", "1", "1"]),
    ],
)
def test_what_only_looks_like_them(answer: str, wrong: list[str]) -> None:
    """A number that ends a sentence, a list that does not count up, and keys without a source are checked."""
    assert failing(NumberCheck().check(context(answer, ["none"])), answer) == wrong


def test_overlap_check_reads_the_same_numbers() -> None:
    """OverlapCheck sees the date of a source as the model saw it, and units."""
    answer = "Returns take 21 days, as of 1 March 2026 [S1]."
    texts = ["Returns take 21 days."]
    dated = OverlapCheck().check(context(answer, texts, shown={"updated": "2026-03-01"}))
    assert "March" not in dated.detail
    assert "missing: 1 March 2026" in OverlapCheck(threshold=1).check(context(answer, texts)).detail
    assert "missing: 21" in OverlapCheck(threshold=1).check(context("Returns take 21 weeks.", texts)).detail
