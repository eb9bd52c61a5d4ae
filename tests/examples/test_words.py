"""Which language a question is in."""

from __future__ import annotations

import unicodedata

import pytest

from support.words import is_turkish, plain_letters

TURKISH = (
    "Kitabı kaç gün içinde iade edebilirim?",
    "Hediye kartı nakde çevrilebilir mi?",
    "Sadakat puanlarım kaç ay geçerli?",
    "120 adet kitap alırsak indirim ne kadar?",
    "Kafeniz var mı?",
    "Pazar günü açık mısınız?",
    "Kitap kulübünüz var mı?",
    "Hangi kargo firmasıyla çalışıyorsunuz?",
)
OTHERS = (
    "How many days do I have to return a book?",
    "Is there a café in the store?",
    "When is the branch in Beşiktaş open?",
    "Wie lange kann ich ein Buch zurückgeben?",
    "Ist das Buch für Schüler da?",
    "Können Bücher zurückgegeben werden?",
    "Combien de jours pour retourner un livre reçu ?",
    "Ne livrez-vous pas en Suède ?",
    "",
)


@pytest.mark.parametrize("question", [*TURKISH, "Kitap iadesi kac gun?", "Kargo kac gunde gelir?", "Kaç gün?"])
def test_turkish_is_known_by_its_words_and_letters(question: str) -> None:
    """Both do, and the letters in either form of Unicode."""
    assert is_turkish(question)
    assert is_turkish(unicodedata.normalize("NFD", question))


@pytest.mark.parametrize("question", TURKISH)
def test_turkish_typed_without_its_letters_is_turkish(question: str) -> None:
    """A keyboard that has no ı, ğ or ş hides no question."""
    assert is_turkish(plain_letters(question))


@pytest.mark.parametrize("question", OTHERS)
def test_letters_and_words_that_others_have_too_do_not_decide(question: str) -> None:
    """German and French are not taken for Turkish because of ö, ü, ç, da, de or en, nor English because of a name."""
    assert not is_turkish(question)


@pytest.mark.parametrize("word", ["ıslak", "ağaç", "şişe", "İzmir"])
def test_a_letter_of_its_own_decides_where_no_word_does(word: str) -> None:
    """The letters ı, ğ, ş and İ stand in no neighbour of this corpus."""
    assert is_turkish(word)
