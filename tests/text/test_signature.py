"""What must not differ between two texts: numbers, dates, links, negations and opposites, in two languages."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index_grounded.text.opposites import opposites
from llama_index_grounded.text.quantities import quantities
from llama_index_grounded.text.signature import differences, differs, signature
from tests.hostile import texts
from tests.timing import assert_linear

PARTS = ["within 21 days", "on 3 March 2026", "is not paid", "must", "iade edilmez", "hariç", "v3.5", "one", "book"]
sentences = st.lists(st.sampled_from(PARTS), max_size=6).map(" ".join)


# Laws


@given(texts())
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    """Nothing in a text raises, and it says what it says."""
    assert differs(signature(text), signature(text)) == ""


@given(sentences, sentences)
def test_differing_is_mutual(one: str, other: str) -> None:
    """What differs does so both ways round, with the two values swapped."""
    there = [(found.what, found.one, found.other) for found in differences(signature(one), signature(other))]
    back = [(found.what, found.other, found.one) for found in differences(signature(other), signature(one))]
    assert [kind for kind, *_ in there] == [kind for kind, *_ in back]
    numbers = [found for found in there if found[0] in {"numbers", "dates"}]
    assert numbers == [found for found in back if found[0] in {"numbers", "dates"}]


@given(sentences, st.integers(0, 10**6), st.integers(0, 10**6))
def test_another_number_is_another_signature(text: str, one: int, other: int) -> None:
    """Two texts with different whole numbers in one place always differ, with equal ones never."""
    first, second = (signature(f"{text} costs {number:d} coins") for number in (one, other))
    assert bool(differs(first, second)) == (one != other)


@example("onuncu")
@given(st.text(alphabet="onetwühidrygücbşıkuzâ ", max_size=40))
def test_no_number_word_is_passed_over(text: str) -> None:
    """The quick look that spares a text the search never hides a certain number from it."""
    certain = [found for found in quantities(text) if found.certain]
    assert len(certain) <= len(signature(text).numbers)


# Numbers and dates


@pytest.mark.parametrize(
    "one,other",
    [
        ("1,500 TL", "₺1500"),
        ("twenty-one days", "21 days"),
        ("21-day window", "21 day window"),
        ("21 gün içinde", "yirmi bir gün içinde"),
        ("%22 indirim", "yüzde 22 indirim"),
        ("3 March 2026", "2026-03-03"),
        ("release 3.5", "v3.5"),
        ("one of us", "each of us"),
        ("14 iş günü", "14 business days"),
        ("within 24 h", "within 24 hours"),
    ],
)
def test_notation_does_not_matter(one: str, other: str) -> None:
    """The same value in another notation or language is no difference."""
    numbers = [found for found in differences(signature(one), signature(other)) if found.what != "opposites"]
    assert not numbers


@pytest.mark.parametrize(
    "one,other,expected",
    [
        ("within 21 days", "within 14 days", "numbers: 21 days against 14 days"),
        ("within 21 days", "within 21 hours", "numbers: 21 days against 21 hours"),
        ("14 days", "14 working days", "numbers: 14 days against 14 working days"),
        ("one day", "two days", "numbers: one day against two days"),
        ("22 %", "22 TL", "numbers: 22 % against 22 TL"),
        ("2 GB", "2 GiB", "numbers: 2 GB against 2 GiB"),
        ("on 3 March 2026", "on 4 March 2026", "dates: 3 March 2026 against 4 March 2026"),
        ("on 3 March 2026", "soon", "dates: 3 March 2026 against nothing"),
        ("14 and 21 days", "21 and 14 days", "numbers: 14, 21 days against 21, 14 days"),
        ("(n+1)/2 members", "(n/2)+1 members", "numbers: 1, 2 against 2, 1"),
        ("version 3.5.1", "version 3.5.2", "numbers: version 3.5.1 against version 3.5.2"),
        ("5 or 6 or 7 or 8 or 9", "", "numbers: 5, 6, 7 … against nothing"),
        ("see https://x.org/v2/", "see http://x.org/v3/", "links: x.org/v2/ against x.org/v3/"),
    ],
)
def test_numbers_dates_and_links_differ(one: str, other: str, expected: str) -> None:
    """Another value, unit, order or numbered link is a difference, named with both values."""
    assert differs(signature(one), signature(other)) == expected


# Negations and opposites


@pytest.mark.parametrize(
    "text,expected",
    [
        ("It is not returned.", ["not retur"]),
        ("It isn’t returned.", ["not retur"]),
        ("It is never to be returned.", ["not retur"]),
        ("Delivery without charge, unless damaged", ["without charg", "unless damag"]),
        ("All except music", ["except music"]),
        ("İade edilmez.", ["not edil"]),
        ("İADE EDİLMEZ", ["not edil"]),
        ("Ödeme yapılmadı, yapılmayacak, yapılmıyor", ["not yapıl"] * 3),
        ("Fatura olmadan; mümkün değil", ["not ol", "not mümkü"]),
        ("Ücretsiz kargo, müzik hariç", ["without ücret", "except"]),
        ("不可以退货", ["not 可"]),
        ("İade edilir, okumak ve temmuz", []),
        ("The filmmaker in Sweden promised a remake", []),
    ],
)
def test_negations_are_found(text: str, expected: list[str]) -> None:
    """Negations count with the word that they deny, by the written rules."""
    assert sorted(signature(text).negations.elements()) == sorted(expected)


@pytest.mark.parametrize(
    "one,other",
    [
        ("Books are returned", "Books are not returned"),
        ("A is not returned. B is sold.", "A is returned. B is not sold."),
        ("You must return it", "You may return it"),
        ("enabled by default", "disabled by default"),
        ("a valid code", "an invalid code"),
        ("default: true", "default: false"),
        ("iade edilir", "iade edilmez"),
        ("zararlı madde", "zararsız madde"),
        ("kargo dahil", "kargo hariç"),
        ("before delivery", "after delivery"),
    ],
)
def test_negations_and_opposites_differ(one: str, other: str) -> None:
    """A negation, one that moved, and a word in place of its opposite are differences."""
    assert differs(signature(one), signature(other))


@pytest.mark.parametrize(
    "one,other",
    [
        ("It does not apply", "It doesn't apply"),
        ("You must pay", "You must pay, and you may ask"),
        ("cannot be returned", "can't be returned"),
        ("iade edilir", "iade olunur"),
    ],
)
def test_other_words_are_no_difference(one: str, other: str) -> None:
    """A contraction, a further sentence and another word are none of ours."""
    assert differs(signature(one), signature(other)) == ""


def test_a_word_has_no_opposite_in_itself() -> None:
    """An opposite is looked for in the other text alone."""
    assert opposites(["in", "must", "unless"], {"out": 1}) is None


@pytest.mark.parametrize(
    "piece", ["not ", "1 ", "a-", "değil ", "www.", "https://1 ", "siz", "1.", "üç", "\u2028", "(" * 9]
)
def test_time_grows_with_length_only(piece: str) -> None:
    """Hostile repetition takes no more than linear time."""
    assert_linear(lambda size: signature(piece * (size // len(piece))), 6_000)
