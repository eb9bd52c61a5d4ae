"""Words that are made from numbers keep two texts apart, and ordinary words are none of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.text.counting import counted, counting_prefix
from llama_index_grounded.text.statement import apart, statement
from tests.hostile import texts
from tests.timing import assert_linear

FRAME = (
    "Please note before you use this product at home or at work that {} of it are sold in all the shops that we run."
)
TURKISH_FRAME = "Lütfen bu ürünü evde veya işte kullanmadan önce {} olduğunu ve kılavuzun kutuda durduğunu unutmayın."
GROUPS = [
    ["tens", "hundreds", "thousands", "millions", "billions", "trillions", "dozens"],
    ["tens of thousands", "hundreds of thousands", "hundreds of millions"],
    ["twofold", "threefold", "tenfold", "hundredfold", "threescore"],
    ["doubled", "tripled", "quadrupled", "quintupled", "halved"],
    ["single", "double", "triple", "quadruple", "dual"],
    ["two-thirds", "two-fifths", "two-tenths", "two-hundredths", "two quarters"],
    ["decades", "centuries", "millennia", "a decade", "a dozen"],
    ["millionaires", "billionaires", "a multimillion sum", "a multibillion sum"],
    ["kilovolts", "megavolts", "millivolts"],
    ["carbon monoxide", "carbon dioxide"],
    ["bilateral", "trilateral"],
    ["Chapter XVII", "Chapter XVIII", "Chapter XXIII"],
    ["three lakh", "three crore"],
]
TURKISH_GROUPS = [
    ["onlarca", "yüzlerce", "binlerce", "milyonlarca", "milyarlarca", "onbinlerce", "yüz binlerce"],
    ["iki kat", "üç kat", "iki katı", "dört katına"],
    ["ikişer", "üçer", "altışar", "yedişer", "onar"],
    ["ikişerli", "üçerli", "dörderli"],
    ["tek", "çift"],
    ["ikili", "üçlü", "dörtlü", "beşli", "altılı", "altılık", "onluk"],
    ["ikiye", "üçe", "dörde", "beşe", "yirmiye"],
    ["5 milyona", "5 milyara", "5 bine"],
    ["beş milyona", "beş milyara", "beş bine"],
    ["milyoner", "milyarder"],
    ["ikiz", "üçüz", "dördüz"],
    ["binler", "milyonlar", "milyarlar"],
]
PAIRS = [(one, other) for group in GROUPS for one in group for other in group if one < other]
TURKISH_PAIRS = [(one, other) for group in TURKISH_GROUPS for one in group for other in group if one < other]
SAME = {("altılı", "altılık")}


def differ(frame: str, one: str, other: str) -> bool:
    """Tell whether two texts that differ in nothing but a few words are kept apart, both ways round."""
    first, second = statement(frame.format(one)), statement(frame.format(other))
    assert bool(apart(first, second)) == bool(apart(second, first))
    return bool(apart(first, second))


# Laws


@given(texts())
def test_nothing_raises(text: str) -> None:
    """Any word has an answer, and a part in front and the rest are the word."""
    assert isinstance(counted(text), str)
    found = counting_prefix(text)
    assert found is None or "".join(found) == text


@given(st.sampled_from(PAIRS), st.sampled_from([str, str.upper, str.title]))
def test_other_counts_are_other_statements(pair: tuple[str, str], written: Callable[[str], str]) -> None:
    """Whatever the case, two texts that differ in such a word do not say the same."""
    assert differ(FRAME, written(pair[0]), written(pair[1]))
    assert not differ(FRAME, pair[0], pair[0].upper() if "XV" not in pair[0] else pair[0])


@given(st.sampled_from(TURKISH_PAIRS), st.booleans(), st.sampled_from(["NFC", "NFD"]))
def test_other_turkish_counts_are_other_statements(pair: tuple[str, str], capitals: bool, form: Any) -> None:
    """Turkish ones in Turkish capitals, and decomposed."""
    words = [word.replace("i", "İ").upper() if capitals else word for word in pair]
    one, other = (unicodedata.normalize(form, word) for word in words)
    assert differ(TURKISH_FRAME, one, other) is (pair not in SAME)


# Words


@pytest.mark.parametrize(
    "words",
    [
        *("doubles doubled doubling", "millionaire millionaires", "yüzlerce yüzlercesi", "üçlü üçlüler üçlüsü"),
        *("ikişer ikişerli", "milyonlar milyonları", "dörde dördü dörtte", "binlerce binlercesi"),
    ],
)
def test_forms_of_one_word_are_one(words: str) -> None:
    """Endings do not matter."""
    assert len({counted(word) for word in words.split()} - {""}) == 1


@pytest.mark.parametrize(
    "words",
    [
        *("onlar onun onu ona yüzden yüzünden altında altın altı yediği birlik ellerinde beşik", "uzun ucuz uçlu ucu"),
        *("onaylı onarım otuzbir üçgen dörtgen besin kiracı", "mild civil livid vivid mix double-u thousandth hundred"),
    ],
)
def test_ordinary_words_say_no_count(words: str) -> None:
    """Pronouns, verbs and other words that begin like a number, and numbers that are read as such, are left alone."""
    assert [word for word in words.split() if counted(word)] == []


@pytest.mark.parametrize("piece", ["on", "yüz", "onbin", "double", "mono", "lxx", "l", "üçlü "])
def test_time_grows_with_length_only(piece: str) -> None:
    """Hostile repetition takes no more than linear time."""
    assert_linear(lambda size: statement(piece * (size // len(piece))), 7_500)
