"""Words for places in a row, "first" and "yirmi birinci", as the number words that they stand for."""

from __future__ import annotations

from decimal import Decimal

from llama_index_grounded.text.number_words import Phrase, Term, terms_of

__all__ = ["place_of", "place_terms"]

_LONGEST_WORD = 120
_ENDINGS = ("nci", "ncı", "ncu", "ncü")
_TH = ("four", "six", "seven", "ten", "eleven", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PLACES = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
    "hundredth": "hundred",
    "thousandth": "thousand",
    "millionth": "million",
    **{f"{word}th": word for word in (*_TH, "nineteen")},
    **{f"{word[:-1]}ieth": word for word in _TENS},
    "birinci": "bir",
    "ikinci": "iki",
    "üçüncü": "üç",
    "dördüncü": "dört",
    "beşinci": "beş",
    "altıncı": "altı",
    "yedinci": "yedi",
    "sekizinci": "sekiz",
    "dokuzuncu": "dokuz",
    "onuncu": "on",
    "yirminci": "yirmi",
    "otuzuncu": "otuz",
    "kırkıncı": "kırk",
    "ellinci": "elli",
    "altmışıncı": "altmış",
    "yetmişinci": "yetmiş",
    "sekseninci": "seksen",
    "doksanıncı": "doksan",
    "yüzüncü": "yüz",
    "bininci": "bin",
}


def place_terms(word: str) -> tuple[Term, ...]:
    """Return the number words that a word for a place in lower case stands for; none if it is no place.

    Example:
        >>> [str(term.value) for term in place_terms("yirmibirinci")]
        ['20', '1']
    """
    if word in _PLACES:
        return terms_of(_PLACES[word])
    if not word.endswith(_ENDINGS) or len(word) > _LONGEST_WORD:
        return ()
    last = next((place for place in _PLACES if word.endswith(place)), word)
    front = terms_of(word.removesuffix(last))
    return (*front, *terms_of(_PLACES[last])) if front else ()


def place_of(word: str) -> Decimal | None:
    """Return the place that one word in lower case names, None if it names none.

    Example:
        >>> str(place_of("twelfth")), place_of("twelve")
        ('12', None)
    """
    if word == "ilk":
        return Decimal(1)
    terms = place_terms(word)
    if not terms:
        return None
    phrase = Phrase(terms[0])
    for term in terms[1:]:
        if not phrase.takes(term):
            return None
        phrase.add(term)
    return phrase.value
