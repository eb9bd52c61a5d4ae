"""Words of a text in a form that can be compared: folded, without endings, without function words.

The rules are light on purpose: a handful of English endings, and for Turkish the first five letters of a
word, which serve retrieval nearly as well as a morphological analyser (Can et al., "Information retrieval
on Turkish texts", 2008).
"""

from __future__ import annotations

import re
import unicodedata

STEM_LETTERS = 5
_LETTERS = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_HARD = str.maketrans("bdg", "ptk")
_ENDINGS = ("ments", "ment", "ings", "ing", "ed", "es", "s", "ly", "e")

ENGLISH_FUNCTION_WORDS = frozenset(
    _LETTERS.findall(
        """a about after all am an and any anything are as at be been before by can cannot could
        did do does dont for from get gets got had happen happens has have how i if in into is
        it its long many may me must much my need no not of off on one or our so some something
        than that the their them then there these they this to up us use want was we were what
        when where which who why will with would you your"""
    )
)
TURKISH_FUNCTION_WORDS = frozenset(
    _LETTERS.findall(
        """acaba ama bana ben beni benim bir biz bizim bu da daha de diye edebilir edebilirim eder edilebilir
        edilir en gibi hangi hangisi icin icinde icindeki ile ise kac kacta kadar ki kim mi midir misiniz
        miyim mu mudur musunuz muyum nasil ne neden nedir nelerdir nerede o olarak olur onu sonra su var varsa
        ve veya ya yok zaman"""
    )
)
_SHARED = frozenset({"da", "de", "en", "ile", "ne", "su"})
"""Turkish function words that German or French have as well."""
_TURKISH_SIGNS = (TURKISH_FUNCTION_WORDS - _SHARED) | {
    *("adet", "gun", "gunde", "hafta", "iade", "kitabi", "kitap", "lira", "odeme", "siparis", "ucret", "ucreti", "yil")
}
# Not ç, ö and ü, which French and German have as well.
_TURKISH_LETTERS = re.compile(r"[ğışĞİŞ]")
_ENGLISH_NO = frozenset({"arent", "cannot", "cant", "doesnt", "dont", "isnt", "never", "no", "nor", "not", "wont"})
_TURKISH_NO = re.compile(r"(?:m[ae]z(?:l[ae]r)?|degil(?:dir)?|yoktur|yok)$")


def plain_letters(text: str) -> str:
    """Lower-case a text and take off accents and dots, so that "İade", "iade" and "IADE" are one word."""
    plain = unicodedata.normalize("NFKD", text.replace("ı", "i"))
    return "".join(char for char in plain if not unicodedata.combining(char)).casefold()


def words(text: str) -> list[str]:
    """Return the folded words of a text in order; a hyphen or an apostrophe joins ("e-book" is one word)."""
    return [re.sub(r"['’\-]", "", word) for word in _LETTERS.findall(plain_letters(text))]


def is_turkish(text: str) -> bool:
    """Tell Turkish from English and other languages by its words, also without their dots, or by letters of its own."""
    found = words(text)
    turkish = sum(word in _TURKISH_SIGNS for word in found)
    english = sum(word in ENGLISH_FUNCTION_WORDS for word in found)
    own_letter = _TURKISH_LETTERS.search(unicodedata.normalize("NFC", text))
    return turkish > english or (turkish == english and own_letter is not None)


def stem(word: str, *, turkish: bool) -> str:
    """Cut a folded word down to what its forms share ("returned" and "returning" become "retur")."""
    if not turkish:
        if word.endswith("ies") and len(word) > STEM_LETTERS:
            word = word[:-3] + "y"
        ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) > 2), "")  # noqa: PLR2004
        word = word.removesuffix(ending)
        if ending.startswith(("ed", "ing")) and word[-1] == word[-2]:
            word = word[:-1]
    # A Turkish p, t or k turns soft before a vowel: kitap, kitabı.
    return word.translate(_HARD)[:STEM_LETTERS] if turkish else word[:STEM_LETTERS]


def related(one: str, other: str, *, turkish: bool) -> bool:
    """Say whether two stems belong together; a short Turkish stem may begin a longer form (gün, günde)."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    return turkish and len(shorter) > 2 and longer.startswith(shorter)  # noqa: PLR2004


def content_stems(text: str, *, turkish: bool) -> list[str]:
    """Return the stems of the words that carry meaning, each once, in order."""
    skipped = TURKISH_FUNCTION_WORDS if turkish else ENGLISH_FUNCTION_WORDS
    kept = [stem(word, turkish=turkish) for word in words(text) if word not in skipped and len(word) > 1]
    return list(dict.fromkeys(kept))


def is_negative(text: str, *, turkish: bool) -> bool:
    """Say whether a clause denies something."""
    return any(_TURKISH_NO.search(word) if turkish else word in _ENGLISH_NO for word in words(text))
