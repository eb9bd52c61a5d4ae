"""The content words of a text in a form in which inflected ones compare: which of them are names, which are negated.

1. A word is a run of letters and digits with a letter in it; numbers alone are for `quantities` to find. Of a word
   with an apostrophe the front counts ("Ankara'nın", "month's"), unless it is one letter ("l'homme").
2. Case, accents, dotted and dotless i do not matter. Stop words of English and Turkish, listed here, do not count.
3. The stem is the word without its common English endings and, where the text is Turkish, its Turkish case, plural and
   possessive endings; then its first six characters (after Can et al. 2008, "Information retrieval on Turkish texts",
   who found such prefixes as good as a lemmatizer). So "contract" and "contractor" are one; "go" and "went" are not.
4. Where words are written without spaces (Han, kana, Thai …), every two neighbouring characters are a word.
5. A name is a capitalised word that does not begin the text.
6. Negated is the next content word behind "not", "no", "never" …, and the last one in front of "değil" and "yok".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from llama_index_grounded.text.case import lower

__all__ = ["Word", "content_words", "is_turkish", "main_script"]

_PREFIX = 6
_TURKISH_SHARE = 6
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f\u064b-\u065f])*(?:['’][^\W\d_]+)*")
_UNSPACED = re.compile(r"[\u0e00-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff]+")
_MARKS = re.compile("[\u0300-\u036f\u064b-\u065f\u0670]")
_APOSTROPHE = re.compile("['’]")
_PLURAL = re.compile(r"(?<=[a-z]{3})(?:ies|(?<=[sx])es|(?<![su])s)\Z")
_ENGLISH_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|ly|er|e|y)\Z")
_TURKISH_ENDING = re.compile(
    r"(?<=[a-z]{3})(?:l[ae]r|n?[iu]n|[yns]?[iu]|y?[ae]|n?[dt][ae]n?|[dt][iu]r|[iu]m|m[iu]z|n[iu]z|ki|y?l[ae]|l[iu])\Z"
)
_HARD, _SOFT = "ptk", "bdg"
_ARABIC_ARTICLE = re.compile(r"[وف]?(?:[بك]?ال|لل)(?=...)")
_TURKISH_SIGN = re.compile(
    r"[ğşı]|(?:[^\W\d_]{2})(?:l[ae]r[ıi]?|[dt][ıiuü]r|[ıiuü]?n[dt][ae]n?|[ıiae]l[ıi]r|[ae]bilir|[ıiuü]yor|m[ae]z|n[ıi]z)\Z"
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP = _set(
    """
    a an the and or but nor if of in on at to from by for with about as into onto over under than then so that this
    these those there here it its itself he him his himself she her hers they them their we our us you your i me my is
    are was were be been being am do does did doing done don doesn didn isn aren wasn weren hasn haven hadn won wouldn
    couldn shouldn has have had having will would can could should may might must which who whom whose what when where
    why how all any both each every more most other some such only own same too very just up out off also one while
    during before after between because through however according per via well yes etc ve re ll s t m
    not no never cannot without neither none
    bir bu şu o ve veya ya da de ile için gibi kadar ki mi mı mu mü ne her çok daha en ise olarak olan oldu olduğu olur
    var ama fakat ancak sonra önce göre hem ben sen biz siz onlar onun bunun bunlar şey tüm bütün evet hayır
    değil yok hiç asla
    """
)
_TURKISH_ONLY = _set("bir bu ve veya ile için gibi kadar olarak çok daha göre")
_ENGLISH_ONLY = _set("the of and to is are was in for with that from by may on at it")
_NEGATES_NEXT = _set("not no never cannot without neither nor none hiç asla")
_NEGATES_LAST = frozenset(["değil", "yok"])


@dataclass(frozen=True, slots=True)
class Word:
    """A content word."""

    stem: str
    """What is compared."""
    written: str
    """As it stands in the text, with its endings."""
    name: bool = False
    """Whether it looks like a name."""
    negated: bool = False
    """Whether a negation stands next to it."""


def content_words(text: str, *, turkish: bool = False) -> list[Word]:
    """Return the content words of a text in their order, in linear time; nothing in it makes this raise.

    Args:
        text: Any text.
        turkish: Whether Turkish endings are taken off; see `is_turkish`. Texts compare only with the same choice.

    Example:
        >>> [word.stem for word in content_words("The books were returned to Ankara's libraries.")]
        ['book', 'return', 'ankara', 'librar']
        >>> [word.stem for word in content_words("Kitapları iade edin.", turkish=True)]
        ['kitab', 'iad', 'edin']
    """
    # For this text alone: what outlives a query must not hold words of documents.
    stems: dict[str, str] = {}
    found, negates_next = list[Word](), False
    for place, written in enumerate(_written(text)):
        small = lower(written)
        front = _front(small)
        if front in _NEGATES_LAST and found:
            found[-1] = replace(found[-1], negated=True)
        if (front in _NEGATES_NEXT and place > 0) or small.endswith(("n't", "n’t")):
            negates_next = True
        elif front == "only":
            negates_next = False
        elif front not in _STOP:
            if front not in stems:
                stems[front] = _stem(front, turkish=turkish)
            if stems[front]:
                found.append(Word(stems[front], written, name=place > 0 and written[0].isupper(), negated=negates_next))
                negates_next = False
    return found


def is_turkish(text: str) -> bool:
    """Say whether a text is Turkish, by its letters, endings and commonest words, against the commonest of English.

    Example:
        >>> is_turkish("Kitap iade edilir ve bir makbuz verilir."), is_turkish("Books go back to İzmir.")
        (True, False)
    """
    words = [lower(found[0]) for found in _WORD.finditer(text)]
    signs = sum(word in _TURKISH_ONLY or _TURKISH_SIGN.search(word) is not None for word in words)
    return signs * _TURKISH_SHARE >= len(words) > 0 and signs > sum(word in _ENGLISH_ONLY for word in words)


def main_script(text: str) -> str:
    """Return the script that most letters of a text are in, as Unicode calls it; empty without a letter.

    Example:
        >>> main_script("退货期限 OK"), main_script("14")
        ('CJK', '')
    """
    counts = Counter[str]()
    for char, count in Counter(text).items():
        if char.isalpha():
            counts[_script(char)] += count
    return max(counts, key=lambda script: counts[script], default="")


def _script(char: str) -> str:
    first = unicodedata.name(char, "UNKNOWN").partition(" ")[0]
    return "CJK" if first in {"HIRAGANA", "KATAKANA", "HALFWIDTH", "IDEOGRAPHIC"} else first


def _written(text: str) -> Iterator[str]:
    """Yield the words of a text, numbers left out."""
    for found in _WORD.finditer(text):
        word, done = found[0], 0
        for run in _UNSPACED.finditer(word):
            yield from _unless_number(word[done : run.start()])
            yield from ([run[0]] if len(run[0]) == 1 else map("".join, pairwise(run[0])))
            done = run.end()
        yield from _unless_number(word[done:])


def _unless_number(word: str) -> Iterator[str]:
    if word and not word.isnumeric():
        yield word


def _front(word: str) -> str:
    """Return the part of a word in front of its apostrophe, or behind it where there is but one letter in front."""
    parts = _APOSTROPHE.split(word)
    return parts[0] if len(parts) == 1 or len(parts[0]) > 1 else parts[1]


def _stem(word: str, *, turkish: bool) -> str:
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", word)).replace("ı", "i")
    plain = _ARABIC_ARTICLE.sub("", unicodedata.normalize("NFC", plain), count=1)
    if not turkish:
        return _ENGLISH_ENDING.sub("", _PLURAL.sub("", plain))[:_PREFIX]
    shorter = _TURKISH_ENDING.sub("", plain)
    while shorter != plain:
        plain, shorter = shorter, _TURKISH_ENDING.sub("", shorter)
    stem = plain[:_PREFIX]
    return stem[:-1] + _SOFT[_HARD.index(stem[-1])] if stem[-1:] and stem[-1] in _HARD else stem
