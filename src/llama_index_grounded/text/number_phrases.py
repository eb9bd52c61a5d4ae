"""Numbers and places that words spell out, as they follow each other in a text.

The rules stand in `quantities`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from decimal import Decimal

from llama_index_grounded.text import number_shapes as shapes
from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_forms import Quantity, one
from llama_index_grounded.text.number_words import Phrase, Term, terms_of
from llama_index_grounded.text.places import place_of, place_terms

__all__ = ["Spoken", "lone_word"]

_LAST_WEAK_PLACE = 3
_HUNDRED = Decimal(100)
_SCALE = re.compile(rf"(?P<scale>bin|milyon|milyar|trilyon){shapes.SCALE_ENDING}")


class Spoken:
    """Number words that follow each other."""

    def __init__(self, phrase: Phrase, atom: re.Match[str]) -> None:
        """Begin with the number that one word is."""
        self._phrase = phrase
        self._start, self._end = atom.span()
        self._reach = self._end
        self._words = [lower(atom[0])]
        self._place = self._over = False

    @classmethod
    def begin(cls, atom: re.Match[str]) -> Spoken | None:
        """Return a number that begins with this word, None if it is no number word."""
        terms = _terms(atom[0])
        phrase = _added(Phrase(terms[0]), terms[1:]) if terms else None
        return None if phrase is None else cls(phrase, atom)

    def goes_on(self, folded: str, atom: re.Match[str]) -> bool:
        """Take the next word, if it goes on with the number."""
        gap, after_and = folded[self._reach : atom.start()], self._reach != self._end
        if self._place or self._over or gap not in {" ", "-", "\n", "\u00a0"}:
            return False
        if atom[0].lower() == "and" and self._phrase.takes_and and not after_and:
            self._reach = atom.end()
            return True
        inflected = _inflected(atom[0])
        terms = _terms(atom[0]) or inflected
        places = () if terms else _places(atom[0], gap, after_and=after_and)
        terms = terms or places
        phrase = _added(self._phrase, terms) if terms and not (after_and and terms[0].value >= _HUNDRED) else None
        if phrase is None:
            return False
        self._phrase, self._end, self._reach, self._place = phrase, atom.end(), atom.end(), bool(places)
        # An ending closes the number: "on binde bir" is one in ten thousand.
        self._over = bool(inflected)
        self._words.append(lower(atom[0]))
        return True

    def quantity(self) -> Quantity:
        """Return the number."""
        several = len(self._words) > 1 and not shapes.ENGLISH_TOO.issuperset(self._words)
        return Quantity(
            start=self._start,
            end=self._end,
            kind="ordinal" if self._place else "number",
            readings=((self._phrase.value,),),
            certain=several or self._words[0] not in shapes.AMBIGUOUS,
        )


def lone_word(atom: re.Match[str]) -> Iterator[Quantity]:
    """Yield the place or the part of one that a word names."""
    word = lower(atom[0])
    place = place_of(word)
    if place is not None:
        listing = atom.string.startswith(",", atom.end())
        yield one("ordinal", atom.start(), atom[0], ((place,),), certain=place > _LAST_WEAK_PLACE and not listing)
    elif word in shapes.PARTS_OF_ONE:
        yield one("number", atom.start(), atom[0], ((shapes.PARTS_OF_ONE[word],),), certain=False)


def _terms(word: str) -> tuple[Term, ...]:
    """Return the number words in a word, also where its capital I is a Turkish ı."""
    return terms_of(lower(word)) or (terms_of(lower(word.replace("I", "ı"))) if "I" in word else ())


def _inflected(word: str) -> tuple[Term, ...]:
    """Return the Turkish scale that a word with an ending is ("milyona"), which only another number word makes sure."""
    found = _SCALE.fullmatch(lower(word))
    return () if found is None else terms_of(found["scale"])


def _places(word: str, gap: str, *, after_and: bool) -> tuple[Term, ...]:
    """Return what the last word of a place adds; "twenty second" is none, "twenty-second", "hundred and second" are."""
    return () if lower(word) == "second" and gap != "-" and not after_and else place_terms(lower(word))


def _added(phrase: Phrase, terms: tuple[Term, ...]) -> Phrase | None:
    """Return the number with more words, None if they do not go on with it."""
    longer = copy.copy(phrase)
    for term in terms:
        if not longer.takes(term):
            return None
        longer.add(term)
    return longer
