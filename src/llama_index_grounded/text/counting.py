"""Words that are made from numbers and that `quantities` does not read: "millions", "twofold", "yüzlerce", "üçlü".

They say how many without saying a number, so they are compared as words: whatever stands in both texts must be the
same one. Of Turkish ones, case, the dot on i and the ending do not matter, and what is mostly another word is left out:
"onu" is it, "yüzden" therefore, "altında" below.
"""

from __future__ import annotations

import re

from llama_index_grounded.text.number_words import ENGLISH_TENS, ENGLISH_UNITS, TEENS

__all__ = ["counted", "counting_prefix"]

_SCALES = "hundred|thousand|million|billion|trillion|quadrillion|quintillion"
_NUMBERS = "|".join((*ENGLISH_UNITS, *TEENS, *ENGLISH_TENS))
_PLACES = (
    "third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|twelfth|twentieth|hundredth|thousandth|(?:m|b|tr)illionth"
)
_ENGLISH = re.compile(
    rf"(?P<plural>(?:{_SCALES}|ten)s|quadrillion|quintillion|(?:{_PLACES})s|quarters|halves)"
    rf"|(?P<fold>(?:{_NUMBERS}|{_SCALES})(?:fold|some|score))"
    r"|(?P<rich>multi[mb]illion|(?:m|b|tr)illionaire)s?"
    r"|(?P<age>(?:quadra|quinqua|sexa|septua|octo|nona)gena|centena)rians?"
    r"|(?P<times>(?:quadr|quint|sext|sept|oct)upl|doubl|tripl|trebl|halv)(?:e[sd]?|ing|y)"
    r"|(?P<part>triplet|quadruplet|quintuplet)s?"
    r"|(?P<roman>(?=[ivxl]{4})(?:xl|l?x{0,3})(?:ix|iv|v?i{0,3}))"
)
_STEMS = (
    "iki|üç|dör[td]|beş|alti|yedi|sekiz|dokuz|yirmi|otuz|kirk|elli|altmiş|yetmiş|seksen|doksan|milyon|milyar|trilyon"
)
_JOINED = rf"(?:{_STEMS}|on|yüz|bin)"
_TURKISH = re.compile(
    rf"(?P<many>{_JOINED}+)l[ae]rc[ae](?:s[iuü]\w{{0,5}})?"
    r"|(?P<plural>(?:bin|milyon|milyar|trilyon)l[ae]r)(?:[iu]\w{0,5}|[ae]|[dt][ae]n?|l[ae])?"
    rf"|(?P<each>{_JOINED}+[sş]?[ae]r)(?:li\w{{0,6}}|l[ae]r)?"
    rf"|(?P<group>{_JOINED}l[iuü])(?:[kğ]\w{{0,6}}|l[ae]r\w{{0,5}}|y\w{{1,4}}|n[iuü]n|s[iuü]\w{{0,4}}|d[ae]n?)?"
    r"|(?P<rich>milyoner|milyarder|trilyoner)\w{0,8}"
    r"|(?P<twin>ikiz|üçüz|dördüz|beşiz)(?:ler\w{0,5})?"
    r"|(?P<few>tekli|çiftli|çifte)\w{0,4}"
    rf"|(?P<case>{_STEMS}|bin(?=[ei]))(?:y[aeiuü]|[dt][ae]n?|s[iuü]\w{{0,5}}|n?[iuü]n\w{{0,4}}|[aeiuü]|l[ae])"
)
_HARD = {"dörd": "dört"}
_LONGEST = 60
_PREFIX = re.compile(
    r"(?P<prefix>mon(?=ox)|mono|uni|bi|tri|di|tetra|quadri|quadru|quad|penta|quinqu|quint|hexa|sexa|sex|hepta|sept"
    r"|octa|octo|oct|nona|deca|semi|demi|hemi|multi|poly|pico|nano|micro|milli|centi|deci|hecto|kilo|mega|giga|tera|peta|exa"
    r"|kibi|mebi|gibi|tebi)(?P<rest>[^\W\d_]{4,40})"
)


def counted(word: str) -> str:
    """Return what a word in lower case says of how many, the same for its forms; empty if it says nothing of it.

    Example:
        >>> counted("twofold"), counted("yüzlerce"), counted("üçlüsü"), counted("ikişerli"), counted("bardak")
        ('twofold', 'yüz larca', 'üçlü', 'ikişer', '')
    """
    if len(word) > _LONGEST:
        return ""
    if english := _ENGLISH.fullmatch(word):
        kind, stem = english.lastgroup, english[english.lastgroup or 0]
        return f"{stem}e" if kind == "times" else stem
    turkish = _TURKISH.fullmatch(word.replace("ı", "i"))
    if turkish is None:
        return ""
    kind, stem = turkish.lastgroup, turkish[turkish.lastgroup or 0]
    return f"{_HARD.get(stem, stem)} larca" if kind == "many" else _HARD.get(stem, stem)


def counting_prefix(word: str) -> tuple[str, str] | None:
    """Return the part of a word in lower case that may say how many, and the rest; None without one.

    Example:
        >>> counting_prefix("dioxide"), counting_prefix("megavolts"), counting_prefix("oxide")
        (('di', 'oxide'), ('mega', 'volts'), None)
    """
    found = _PREFIX.fullmatch(word)
    return None if found is None else (found["prefix"], found["rest"])
