"""Folding makes equal what is set otherwise, keeps what says something else, and knows the way back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.cuts import joined
from llama_index_grounded.checks.folding import agree, fold
from tests.hostile import texts

INVISIBLE = "\u00ad\u200b\ufeff\u200e\u200f\u202e\u2060"
LETTERS = st.text(st.characters(categories=["L", "N"]), max_size=30)


@given(texts())
def test_each_folded_character_comes_from_its_place(text: str) -> None:
    """The places of the folded characters are in order, within the text and never empty."""
    folded, last = fold(text), (0, 0)
    for index in range(len(folded.text)):
        start, end = folded.came_from(index)
        assert 0 <= start < end <= len(text)
        assert start >= last[1] or (start, end) == last
        assert folded.parts(index) is (start >= last[1])
        last = (start, end)


@given(texts())
def test_a_character_that_stays_comes_from_itself(text: str) -> None:
    """Where one ASCII letter or digit came from, the text holds it, also in full width."""
    folded = fold(text)
    for index, char in enumerate(folded.text):
        start, end = folded.came_from(index)
        if end - start == 1 and char.isascii() and char.isalnum():
            assert char in unicodedata.normalize("NFKC", text[start:end])


@given(texts())
def test_the_unicode_form_says_nothing(text: str) -> None:
    """NFC and NFD of a text fold to the same."""
    assert fold(unicodedata.normalize("NFD", text)).text == fold(unicodedata.normalize("NFC", text)).text


@given(LETTERS, st.sampled_from(INVISIBLE), st.data())
def test_what_can_not_be_seen_says_nothing(text: str, char: str, data: st.DataObject) -> None:
    """An invisible character in front of a letter or digit changes nothing."""
    at = data.draw(st.integers(0, len(text)))
    text = unicodedata.normalize("NFC", text)
    assert fold(text[:at] + char + text[at:]).text == fold(text).text


@given(st.lists(st.from_regex(r"[a-zşıİ0-9]{1,5}", fullmatch=True), min_size=1), st.data())
def test_any_run_of_white_space_is_one_space(words: list[str], data: st.DataObject) -> None:
    """Words fold to the same whatever white space stands between them."""
    gaps = st.text(" \t\n\r\x0b\x0c\x85\u00a0\u2009\u2028\u202f\u3000", min_size=1, max_size=4)
    text = words[0] + "".join(data.draw(gaps) + word for word in words[1:])
    assert fold(text).text == unicodedata.normalize("NFC", " ".join(words))


@given(st.text("0123456789²³½¼①②Ⅳ٣३-−.,%'\"", max_size=12), st.text("0123456789²³½¼①②٣३.,%", max_size=12))
def test_numbers_stay_apart(one: str, other: str) -> None:
    """Two texts of digits, signs and numerals fold to the same only if they are the same."""
    assert (fold(one).text == fold(other).text) is (one.replace("−", "-").replace("Ⅳ", "IV") == other)


@given(texts(), texts())
def test_agreeing_touches_no_unbroken_text(one: str, other: str) -> None:
    """Texts are folded otherwise only where a line's end broke a word."""
    first, second = fold(one), fold(other)
    if not first.wraps and not second.wraps:
        assert agree(first, second) == (first, second)


@pytest.mark.parametrize(
    "text, folded",
    [
        ("“a” „b‟ «c» 「d」", '"a" "b" "c" "d"'),
        ("it’s ‹so›", "it's 'so'"),
        ("a‐b‑c‒d–e—f−g", "a-b-c-d-e-f-g"),
        ("wait… ≥ 5 ≤ 7", "wait... >= 5 <= 7"),
        ("ﬁnd the oﬃce", "find the office"),
        ("ＡＢＣ１２３！", "ABC123!"),
        ("𝐇ello 𝟏𝟐", "Hello 12"),
        ("20 ℃, 5 µm, 3 Å", "20 °C, 5 μm, 3 Å"),
        ("ﻣﺮﺣﺒﺎ", "مرحبا"),
        ("ｶﾞ", "ガ"),
        ("e\u0301 I\u0307 각", "é İ 각"),
        ("क\u093c", "क\u093c"),
        ("退货\n期限 30\u3000天，\n“可”", '退货期限30天,"可"'),
        ("re-\nturn, re\u00ad\nturn, re\u00adturn", "return, return, return"),
        ("A-\n12", "A-12"),
        ("voila\u0300-\nle, कि-\nताब", "voilàle, किताब"),
        ("a - b -\nc --d", "a - b - c --d"),
    ],
)
def test_what_is_set_otherwise_folds(text: str, folded: str) -> None:
    """Quote marks, dashes, ligatures, widths, forms and line ends fold to the plainest of their kind."""
    assert fold(text).text == folded


@pytest.mark.parametrize(
    "text",
    [
        *("10²", "x₂", "½", "①", "⑴", "№", "™", "㎡", "ª", "ᵉ"),
        *("1,5", "1.5", "15", "-5", "5'", '5"', "5%", "5‰"),
        *("İ", "ı", "I", "i", "May", "may", "ß", "ss"),
        *("👩\u200d👩\u200d👧", "❤\ufe0f", "می\u200cخواهم", "१२", "٣", "二〇", "`code`", "--flag"),
    ],
)
def test_what_says_something_else_stays(text: str) -> None:
    """Digits, signs, case, numerals and joined emoji stay as they are."""
    assert fold(text).text == text


@pytest.mark.parametrize(
    "broken, other, word",
    [
        ("non-\nbreaking", "a non-breaking x", "non-breaking"),
        ("non\u2011\nbreaking", "a non-breaking x", "non-breaking"),
        ("pre-\nand post-war", "pre- and post-war", "pre- and post-war"),
        ("re-\n   turn", "return", "return"),
    ],
)
def test_the_other_text_shows_what_belongs_at_a_lines_end(broken: str, other: str, word: str) -> None:
    """A hyphen at a line's end is kept where the other text has it, on whichever side the break is."""
    assert agree(fold(broken), fold(other))[0].text == word
    assert agree(fold(other), fold(broken))[1].text == word


def test_offsets_count_the_original() -> None:
    """A ligature, an ellipsis and a broken word lead back to all their characters."""
    text = "The oﬃce re-\nturns “x”…"
    folded = fold(text)
    assert folded.text == 'The office returns "x"...'
    assert text[slice(*folded.span(4, 10))] == "oﬃce"
    assert text[slice(*folded.span(11, 18))] == "re-\nturns"
    assert text[slice(*folded.span(19, 25))] == "“x”…"
    assert not folded.parts(6)
    assert not folded.parts(23)


@pytest.mark.parametrize(
    "before, after, together",
    [
        *(("a", "b", True), ("2", "1", True), ("a", "1", True), ("_", "a", True), ("a", " ", False), ("a", ".", False)),
        *(("e", "\u0301", True), ("退", "货", False), ("二", "十", True), ("a", "货", False), ("ก", "ข", False)),
        *(
            ("👩", "\u200d", True),
            ("\u200d", "👧", True),
            ("👍", "🏽", True),
            ("🇹", "🇷", True),
            ("🇩", "🇪", True),
            ("👩", "👧", False),
        ),
        *(("0", "²", True), ("6", "½", True), ("ح", "ر", True), ("책", "은", True), ("ی", "\u200c", True)),
    ],
)
def test_neighbours_of_one_word_number_or_grapheme(before: str, after: str, together: bool) -> None:
    """Words, numbers and graphemes hold together; scripts without spaces may be cut between characters."""
    assert joined(before, after) is together
