"""A quote is found where it stands word for word, and nowhere else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.folding import agree, fold
from llama_index_grounded.checks.quotes import find_quote
from tests.hostile import texts
from tests.timing import assert_within

WORDS = [
    *("Books", "may", "be", "returned", "within", "21", "days,", "from", "$19.99", "3.5", "kg", "“Fiction”", "it’s"),
    *("İade", "ığdır", "süresi", "kitaplar", "çalışır;", "re-read", "e-books", "July", "2024", "1.000,5", "(online)"),
    *("إرجاع", "الكتب", "خلال", "يومًا،", "किताब", "वापसी", "२१", "दिन।", "책은", "반품", "Ångström", "naïve", "ﬁnal"),
    *("👩\u200d👩\u200d👧", "❤\ufe0f", "👍🏽", "—", "end.", "x²", "½", "C++", "a/b", "#1", "[S1]", ".*", "$^", "\\d+"),
]
SWAPS = [
    {"“": '"', "”": "„", "’": "'"},
    {"—": "–", "-": "\u2011"},
    {" ": "\u00a0"},
    {" ": "\n"},
    {" ": " \r\n\t "},
    {" ": "\u200b \u200e"},
    {"ﬁ": "fi", "…": "..."},
]


@st.composite
def passages(draw: st.DrawFn) -> tuple[list[str], int, int]:
    """Draw distinct words, and the first and last of a quote that holds some letters."""
    words = draw(st.lists(st.sampled_from(WORDS), unique=True, min_size=4, max_size=25))
    first = draw(st.integers(0, len(words) - 3))
    last = draw(st.integers(first + 2, len(words)))
    return words, first, last


def set_otherwise(data: st.DataObject, text: str) -> str:
    """Write a text with other quote marks, dashes, spaces or forms."""
    for swap in data.draw(st.lists(st.sampled_from(SWAPS), max_size=3)):
        text = "".join(swap.get(char, char) for char in text)
    return unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), text)


def numbers_near(words: list[str], at: int) -> bool:
    """Say whether a number stands within two words of a cut, so that the cut may go through a quantity."""
    return any(char.isnumeric() for word in words[max(0, at - 2) : at + 2] for char in word)


def letters(text: str) -> str:
    """Keep the letters and digits of a folded text."""
    return "".join(filter(str.isalnum, text))


@given(passages(), st.data())
def test_a_quote_is_found_in_its_place_however_it_is_set(
    passage: tuple[list[str], int, int], data: st.DataObject
) -> None:
    """The offsets are those of the quoted words, however both sides are set; only by a number may a cut be refused."""
    words, first, last = passage
    before, inside = (set_otherwise(data, " ".join(part)) for part in (words[:first], words[first:last]))
    behind = set_otherwise(data, " ".join(words[last:]))
    text = " ".join(filter(None, [before, inside, behind]))
    quote = set_otherwise(data, " ".join(words[first:last]))
    start = len(before) + bool(before)
    found = find_quote(quote, text)
    if sum(map(str.isalnum, fold(quote).text)) < 2:
        assert found is None
    elif found is not None or not (numbers_near(words, first) or numbers_near(words, last)):
        assert found == (start, start + len(inside))


@given(passages(), st.data())
def test_a_quote_with_another_word_is_not_found(passage: tuple[list[str], int, int], data: st.DataObject) -> None:
    """One word replaced by a word that the text does not hold, and nothing is found."""
    words, first, last = passage
    other = data.draw(
        st.sampled_from(["not", "22", "değil", "months", "Brooks", "1.001", "$19.98", "2023", "लाल", "ليس"])
    )
    at = data.draw(st.integers(first, last - 1))
    quote = " ".join([*words[first:at], other, *words[at + 1 : last]])
    assert find_quote(quote, " ".join(words)) is None


@given(passages(), st.data())
def test_a_quote_without_one_of_its_words_is_not_found(
    passage: tuple[list[str], int, int], data: st.DataObject
) -> None:
    """Words left out from the middle are missed, also with an ellipsis in their place."""
    words, first, last = passage
    if last - first > 2:
        at = data.draw(st.integers(first + 1, last - 2))
        gap = data.draw(st.sampled_from([[], ["…"], ["..."], ["[...]"]]))
        assert find_quote(" ".join([*words[first:at], *gap, *words[at + 1 : last]]), " ".join(words)) is None


@given(passages(), st.data())
def test_a_quote_with_a_negation_more_or_less_is_not_found(
    passage: tuple[list[str], int, int], data: st.DataObject
) -> None:
    """A negation in one of quote and text alone is seen at any place, the ends of the quote included."""
    words, first, last = passage
    at = data.draw(st.integers(first, last - 1))
    negated = [*words[:at], "not", *words[at:]]
    assert find_quote(" ".join(words[first:last]), " ".join(negated)) is None
    assert find_quote(" ".join(negated[first : last + 1]), " ".join(words)) is None


@given(passages(), st.data())
def test_one_changed_digit_or_letter_is_not_found(passage: tuple[list[str], int, int], data: st.DataObject) -> None:
    """A single letter or digit that differs, and nothing is found."""
    words, first, last = passage
    quote, text = " ".join(words[first:last]), " ".join(words)
    places = [place for place, char in enumerate(quote) if char.isalnum()]
    if places:
        at, other = data.draw(st.sampled_from(places)), data.draw(st.sampled_from("2357qzQZşИ"))
        if other != quote[at] and not (at == 0 and other.lower() == quote[at].lower()):
            assert find_quote(quote[:at] + other + quote[at + 1 :], text) is None


@given(texts(), texts())
def test_nothing_raises_and_what_is_found_is_the_quote(quote: str, text: str) -> None:
    """Any two texts can be compared; the passage found has the letters and digits of the quote, up to the first."""
    for whole in (text, text + quote, f"{text} {quote} {text}"):
        found = find_quote(quote, whole)
        if found:
            start, end = found
            assert 0 <= start < end <= len(whole)
            words, passage = (letters(part.text) for part in agree(fold(quote), fold(whole[start:end])))
            assert words[1:] == passage[1:]


@given(st.text(max_size=30))
def test_an_empty_text_holds_nothing(quote: str) -> None:
    """No quote stands in a source without text."""
    assert find_quote(quote, "") is None


@pytest.mark.parametrize(
    "quote", ["", " ", "a", "5", "é", "e\u0301", "...", "—", "“”", "?!", "天", "कि", "👩\u200d👧", "\u200b"]
)
def test_less_than_two_letters_prove_nothing(quote: str) -> None:
    """One letter, one digit or punctuation would stand everywhere, so it is never found."""
    assert find_quote(quote, f"{quote} {quote}") is None


@pytest.mark.parametrize(
    "text",
    [
        "Returns are due within 21 days of delivery. " * 2300,
        unicodedata.normalize("NFD", "İade süresi 21 gündür; “kitaplar” geri alınır – ücretsiz… " * 1500),
        "退货 30 天 内 可以 21 days 退 款。" * 4500,
        "İade süresi 21 gündür; “kitaplar” geri alınır – ücretsiz… " * 1700,
        "يمكن إرجاع الكتب خلال ٢١ يومًا من تاريخ الاستلام. " * 2000,
        "退货期限为30天，\n自收到商品之日起计算。" * 1500,
    ],
)
def test_a_long_source_takes_milliseconds(text: str) -> None:
    """300 characters at the end of 100 kB are found quickly, the folding of both included."""
    text += "END OF PAGE " + text[:300]
    quote = "END OF PAGE " + text[:260].rsplit(" ", 1)[0]
    # 0.015 s at most on an idle machine
    assert assert_within(0.1, lambda: find_quote(quote, text)) is not None


@pytest.mark.parametrize(
    "quote, text",
    [
        ("a" * 300, "a" * 100_000),
        ("a not " * 1600 + "a", "x not " + "a not " * 16_000),
        ("一" * 300, "一" * 100_000),
        ("aa", "e\u0301" * 50_000),
        ("aa", "\n" * 100_000),
        ("aa", "-\n" * 50_000),
        ("ab-\ncd" * 300, "ab-\nce" * 16_000),
        ("aa" * 20, "天 " * 50_000 + " \u200b" * 50_000),
        ("aa", "天a" + " " * 100_000 + "，\n" * 20_000 + "\n" * 50_000),
        ("5 mg", "".join(f"1{at} to 5 mg/kg " for at in range(7000))),
        ("000", "".join(f"{at % 900} 000 " for at in range(100, 14_000))),
        ("million", "".join(f"x{at} {at} million " for at in range(6000))),
        ("aa", "*a_`" * 25_000),
        ("a b", "*a* *b* not " * 8000),
        ("aa b", "aa not a b " * 9000),
    ],
)
def test_a_hostile_source_takes_bounded_time(quote: str, text: str) -> None:
    """Repetition on both sides, with every place failing, ends in about a second at most."""
    assert assert_within(5, lambda: find_quote(quote, text)) is None
