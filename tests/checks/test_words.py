"""Which words are compared, and in which form."""

from __future__ import annotations

import pytest
from hypothesis import given

from llama_index_grounded.checks.words import content_words, is_turkish, main_script
from tests import hostile


def stems(text: str, *, turkish: bool = False) -> list[str]:
    """Return the stems of a text."""
    return [word.stem for word in content_words(text, turkish=turkish)]


@given(hostile.texts())
def test_no_text_is_too_odd(text: str) -> None:
    """Any text has words with a stem that stand in it, a language and a script."""
    for turkish in (True, False):
        assert all(word.stem and word.written in text for word in content_words(text, turkish=turkish))
    assert is_turkish(text) in {True, False}
    assert (main_script(text) != "") is any(map(str.isalpha, text))


@pytest.mark.parametrize(
    "words",
    [
        *("return returns returned returning", "library libraries library's LIBRARY", "policy policies"),
        *("café cafe Café's", "contract contractor contracts"),
    ],
)
def test_english_forms(words: str) -> None:
    """Plurals, tenses, possessives, accents and case do not matter."""
    assert len(set(stems(words))) == 1


@pytest.mark.parametrize(
    "words",
    [
        *("kitap kitabı kitaplar kitaplarımızdan", "gün günde günü günler günlerin", "süre süresi sürenin"),
        *("ücret ücreti ücretler", "Ankara Ankara'nın ANKARA'DAN", "IŞIK ışık ışıklar", "İade iade iadesi"),
    ],
)
def test_turkish_forms(words: str) -> None:
    """Cases, plurals, possessives, soft consonants, and dotted and dotless i do not matter."""
    assert len(set(stems(words, turkish=True))) == 1


def test_different_words_differ() -> None:
    """Words with other meanings keep other stems."""
    assert len(set(stems("day week month fee free book loan refund return member librarian"))) == 11
    assert len(set(stems("gün hafta ay ücret kitap dergi üye iade ceza", turkish=True))) == 9


def test_numbers_and_small_words_are_left_out() -> None:
    """Numbers alone and stop words are no content words; a name with a digit in it is one."""
    assert stems("It is 14 days or 2.5 % of the AMD64, ve 30 gün için") == ["day", "amd64", "gun"]


def test_scripts_without_spaces() -> None:
    """Han is compared by its neighbouring characters, Latin words and numbers within it apart."""
    assert stems("退货期30天AMD") == ["退货", "货期", "天", "amd"]


def test_arabic() -> None:
    """The article, the conjunction in front of it, and vowel signs do not matter."""
    assert len(set(stems("كتاب الكتاب والكتاب بالكتاب كِتَابٌ"))) == 1


def test_names() -> None:
    """A capitalised word is a name unless it begins the text."""
    assert [word.written for word in content_words("Members like Ankara and IBM") if word.name] == ["Ankara", "IBM"]


@pytest.mark.parametrize(
    "text, negated",
    [
        ("Books may not be returned early", ["returned"]),
        ("We don't refund tickets", ["refund"]),
        ("there is no fee, never a fine", ["fee", "fine"]),
        ("Bu kitap ücretsiz değil", ["ücretsiz"]),
        ("Gecikme cezası yok", ["cezası"]),
        ("No, members pay", []),
        ("not only members", []),
    ],
)
def test_negations(text: str, negated: list[str]) -> None:
    """The word behind an English negation and in front of a Turkish one is negated."""
    assert [word.written for word in content_words(text) if word.negated] == negated


def test_languages_and_scripts() -> None:
    """Turkish is told by its words and letters, a name alone is not enough; a script by most letters."""
    assert is_turkish("Kitaplar 14 gün içinde iade edilir.")
    assert not is_turkish("The branch in Beşiktaş opens at nine and closes at five.")
    assert not is_turkish("")
    assert [main_script(text) for text in ("退货 OK", "يجب", "книга", "14 %", "カナ")] == [
        *("CJK", "ARABIC", "CYRILLIC", "", "CJK"),
    ]
