"""What holds for every number, notation, answer and order of sources."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.text.composed import composed
from llama_index_grounded.text.quantities import quantities
from tests.checks.number_cases import NOTATIONS, context, numerals, sentence, supported
from tests.timing import assert_within

numbers = st.one_of(st.integers(1, 2_000), st.integers(1, 999_999_999), st.sampled_from([100, 1_000, 10**6, 1_001_100]))
notations = st.sampled_from(sorted(NOTATIONS))

HOSTILE = {
    "groups": "1," * 16_000,
    "dots": "1." * 16_000,
    "digits": "1" * 16_000,
    "hyphens": "1-" * 16_000,
    "spaces": "1 " * 16_000,
    "thousands": "111 " * 8_000,
    "fractions": "1/" * 16_000,
    "times": "10:" * 10_000,
    "brackets": "[" * 32_000,
    "links": "](" * 16_000,
    "words": "hundred and " * 2_500,
    "joined words": "bir" * 10_000,
    "mixed": "1.1.1," * 5_000,
    "dates": "March 1 " * 4_000,
    "telephones": "+12 34 " * 4_500,
    "zeros": "0212 " * 6_000,
    "signs": "-5" * 16_000,
    "markers": "[S1" * 10_000,
    "lists": "1. " * 10_000,
    "headings": "# 1." * 8_000,
}


@given(numerals())
@example("\ud800 1 \udfff²½")
@example("1." * 20 + "x")
@example("1-1-1-X 45/99/2026 99:99 1/0 5 thousand thousand")
def test_any_text_is_read(text: str) -> None:
    """No text raises; quantities stand in order, apart from each other, inside the text, each with a reading."""
    found = quantities(text)
    edges = [edge for quantity in found for edge in (quantity.start, quantity.end)]
    assert edges == sorted(edges)
    assert all(0 <= quantity.start < quantity.end <= len(text) and quantity.readings for quantity in found)


@given(numerals())
@example("1.1.1.1.1.1.1.1.1.x")
@example("-5 50–199 2 pm 1/3/2026 v3.6 +90 212 555 01 01")
@example("1 200 300,5 and 1. 2")
@example("¼RUPEE ½ kuruş 1e6 cents 2020/21 weeks")
def test_a_copy_is_supported(text: str) -> None:
    """An answer that is its source, word for word, passes whatever it holds."""
    result = NumberCheck().check(context(text, [text]))
    assert (result.status, result.spans) == ("passed", ())


@given(numbers, notations, notations)
def test_the_notation_does_not_matter(number: int, said: str, written: str) -> None:
    """A number is supported by the same number in any other notation."""
    answer, source = sentence(said, number), sentence(written, number)
    assert supported(answer, source), (answer, source)


@given(numbers, numbers, notations, notations)
def test_another_number_is_not_supported(number: int, other: int, said: str, written: str) -> None:
    """A number is not supported by a different one, in whatever notation."""
    # "1.000" may be 1, and so may stand for it.
    assume(number != other and number * 1_000 != other and other * 1_000 != number)
    answer, source = sentence(said, number), sentence(written, other)
    assume(all(quantity.certain for quantity in quantities(answer)))
    assert not supported(answer, source), (answer, source)


@given(numbers, st.integers(0, 8), st.integers(1, 9))
def test_a_changed_digit_is_not_supported(number: int, place: int, change: int) -> None:
    """One digit that differs from the source fails."""
    digits = str(number)
    place %= len(digits)
    changed = f"{digits[:place]}{(int(digits[place]) + change) % 10}{digits[place + 1 :]}"
    assert not supported(f"It takes {changed} days", f"It takes {digits} days")


@given(st.decimals(0, 10**6, places=2), st.sampled_from([(",", "."), (".", ","), ("'", "."), ("\u202f", ",")]))
def test_decimals_are_exact(value: Decimal, marks: tuple[str, str]) -> None:
    """Decimals are read exactly, whatever divides thousands and decimals."""
    written = f"{value:,.2f}".replace(",", "T").replace(".", marks[1]).replace("T", marks[0])
    (found,) = quantities(f"about {written} units")
    assert (value,) in found.readings


@given(st.integers(0, 10_000), st.sampled_from(["%{}", "{}%", "{} %", "{} percent", "yüzde {}"]))
def test_a_percentage_is_no_plain_number(number: int, form: str) -> None:
    """A percentage and a plain number of the same value never support each other; two percentages do."""
    percentage, plain = form.format(number), f"{number} units"
    assert not supported(percentage, plain)
    assert not supported(plain, percentage)
    assert supported(percentage, f"%{number}")


@given(st.lists(numerals(5), min_size=1, max_size=4), numerals(6))
def test_the_order_of_sources_does_not_matter(texts: list[str], answer: str) -> None:
    """Status and spans are the same in every order of sources and citations."""
    items = [(f"S{at}", text) for at, text in enumerate(texts, 1)]
    first = NumberCheck().check(context(answer, dict(items)))
    second = NumberCheck().check(context(answer, dict(reversed(items))))
    assert (first.status, first.spans) == (second.status, second.spans)


@given(st.lists(numerals(5), min_size=2, max_size=4), numerals(6))
def test_more_sources_support_more(texts: list[str], answer: str) -> None:
    """Citing one source more never makes a number fail, and all sources are as good as all cited ones."""
    fewer = NumberCheck().check(context(answer, texts, cited=["S1"]))
    more = NumberCheck().check(context(answer, texts))
    everywhere = NumberCheck(scope="all").check(context(answer, texts, cited=["S1"]))
    assert set(more.spans) <= set(fewer.spans)
    assert everywhere.spans == more.spans


@given(st.lists(numerals(5), min_size=1, max_size=3), numerals(6))
def test_allowing_derived_numbers_only_allows_more(texts: list[str], answer: str) -> None:
    """What passes without derived numbers passes with them."""
    strict = NumberCheck().check(context(answer, texts))
    lenient = NumberCheck(allow_derived=True).check(context(answer, texts))
    assert set(lenient.spans) <= set(strict.spans)


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_bounded(name: str) -> None:
    """Texts of 30,000 characters that are made to be slow take less than three seconds of processor time, anywhere."""
    text = HOSTILE[name]
    hostile = context(text[:16_000], [text, "1 2 3"], cited=["S2"])
    assert_within(3, lambda: NumberCheck(allow_derived=True).check(hostile))


@pytest.mark.parametrize("answer, source", [("NFD", "NFD"), ("NFD", "NFC"), ("NFC", "NFD")])
def test_the_unicode_form_does_not_matter(answer: Any, source: Any) -> None:
    """What is written with letters and their marks apart says the same, and is marked where it stands."""
    for text in ("3 Ağustos 2026", "yirmi dört kitap", "15 Şubat'ta", "5 milyona çıktı, üç gün 24 saat"):
        assert supported(unicodedata.normalize(answer, text), unicodedata.normalize(source, text))
    written = unicodedata.normalize(answer, "Yirmi üç gün içinde, en geç 25 gün.")
    known = unicodedata.normalize(source, "Yirmi üç gün, en geç 21 gün.")
    (span,) = NumberCheck().check(context(written, [known])).spans
    assert unicodedata.normalize("NFC", written[span.start : span.end]).startswith("25")


@given(st.text(st.sampled_from("ü\u0308çc\u0327 21ğg\u0306\u0307iİ가\u1100\u1161"), max_size=30))
def test_a_composed_text_knows_where_it_stood(text: str) -> None:
    """Each piece between two places composes to the characters between them."""
    whole, places = composed(text)
    assert len(places) == len(whole) + 1
    assert places[-1] == len(text)
    assert list(places) == sorted(places)
    same = unicodedata.normalize("NFC", text)
    assert whole in (same, text)
    for at in range(len(whole)):
        if whole == same and places[at] < places[at + 1]:
            assert unicodedata.normalize("NFC", text[: places[at + 1]]) == whole[: at + 1]
