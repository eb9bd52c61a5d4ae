"""Numbers and dates that are said by a name: weekdays, months, "twice a week", "Chapter IV", "millions of".

What an answer says (`said`) and what a source may say (`names_in`, `values_in`) are read differently, so that only what
is surely another number or date differs:

* **Weekdays and months** of an answer are whole names, English or Turkish with their endings. "May", "March" and
  "Mart" count behind a word such as "in", or with an ending of their own; "pazar", "ocak", "ekim", "aralık", which are
  other words too, with "günü", "ayı" or an apostrophe. A source has them in short forms and in numeric dates too.
* A source that says "Mon–Fri", "weekdays", "daily", "tomorrow" has every weekday, one that says "June to August",
  "summer", "quarter", "Christmas" every month: what follows from these can not be seen, so nothing is said of it.
* **How often**: "twice" and "thrice" in front of "a week", "daily" …; "once" never: a source has other words for it.
* **Roman numerals** behind a word such as "Chapter"; in a source wherever they stand. A lone I is mostly no number.
* **Millions**: "millions of" and "milyonlarca" differ from a source without that word and without a number as large.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_forms import Quantity

__all__ = ["SCALE_NAMES", "month_name", "names_in", "said", "scale_name", "values_in", "weekday_name"]

_WEEKDAYS = (
    ("monday", "mon", "pazartesi", "pzt"),
    ("tuesday", "tue", "tues", "sali", "sal"),
    ("wednesday", "wed", "çarşamba", "çar"),
    ("thursday", "thu", "thur", "thurs", "perşembe", "per"),
    ("friday", "fri", "cuma", "cum"),
    ("saturday", "sat", "cumartesi", "cmt"),
    ("sunday", "sun", "pazar", "paz"),
)
_MONTHS = (
    ("january", "jan", "ocak", "ocağ", "oca"),
    ("february", "feb", "şubat", "şub"),
    ("march", "mar", "mart"),
    ("april", "apr", "nisan", "nis"),
    ("may", "mayis"),
    ("june", "jun", "haziran", "haz"),
    ("july", "jul", "temmuz", "tem"),
    ("august", "aug", "ağustos", "ağu"),
    ("september", "sept", "sep", "eylül", "eyl"),
    ("october", "oct", "ekim", "eki"),
    ("november", "nov", "kasim", "kas"),
    ("december", "dec", "aralik", "araliğ", "ara"),
)
_SCALE_OF = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_TURKISH_SCALE_OF = {"yüz": 2, "bin": 3, "milyon": 6, "milyar": 9, "trilyon": 12}
SCALE_NAMES = {zeros: f"scale {zeros}" for zeros in _SCALE_OF.values()}
"""What a text with a number of so many zeros or more has."""


def weekday_name(day: int) -> str:
    """Return the name under which a weekday is looked up; Monday is 0."""
    return f"weekday {day}"


def month_name(month: int) -> str:
    """Return the name under which a month is looked up; January is 1."""
    return f"month {month}"


_NAME_OF = {
    **{word: weekday_name(at) for at, words in enumerate(_WEEKDAYS) for word in words},
    **{word: month_name(at) for at, words in enumerate(_MONTHS, 1) for word in words},
}
_EVERY_WEEKDAY = frozenset(map(weekday_name, range(len(_WEEKDAYS))))
_EVERY_MONTH = frozenset(map(month_name, range(1, len(_MONTHS) + 1)))


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


# All patterns expect lower case with i for ı.
_B, _E = r"(?<![^\W_])", r"(?![^\W_])"
_ENDING = r"'?(?:l[ae]r(?:i(?:n[ae]?|nd[ae]n?)?)?|y?[aeiuü]|[dt][ae]n?|[nds]?[iuü]n?|l[iuü][kğ]\w{0,6}|y?l[ae])?"
_SAID = re.compile(
    rf"""{_B}(?:
      (?P<english>(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?{_E}))
    | (?P<capital>january|february|april|june|july|august|september|october|november|december)(?={_E})
    | (?:in|since|until|till|during|throughout|by|from|before|after|through|of|early|late|mid|every|each|last|next|this)
      [ -](?P<verb>march|may){_E}
    | (?P<turkish>pazartesi|sali|çarşamba|perşembe|cuma|cumartesi
      |şubat|nisan|mayis|haziran|temmuz|ağustos|eylül|kasim){_ENDING}{_E}
    | (?P<day>pazar)(?=[ ](?:gün|sabah|akşam|gece))
    | (?P<month>ocak|mart|ekim|aralik)(?:'\w{{1,6}}{_E}|(?=[ ]ayi))
    | (?P<march>mart)ta?n?{_E}(?<=ta|an)
    )""",
    re.VERBOSE,
)
_IN_SOURCE = re.compile(
    rf"{_B}(?:(?P<long>{_any_of(word for word in _NAME_OF if len(word) > 3)})'?\w{{0,8}}"  # noqa: PLR2004 - short forms
    rf"|(?P<short>{_any_of(word for word in _NAME_OF if len(word) <= 3)})(?:'\w{{1,6}})?{_E})"  # noqa: PLR2004
)
_RANGE = re.compile(r"\.?,?[ \n]?(?:[-–—/]|to|through|thru|until|till|ile|ila)[ \n]?(?:on )?")
_FROM = re.compile(r"[dt][ae]n\Z")
_BETWEEN = re.compile(r"between (?:the )?\Z")
_ANY_WEEKDAY = re.compile(
    rf"{_B}(?:week-?days?|week-?ends?|week days?|daily|every ?day|each day|all week|days? a week|(?:seven|7) days|24/7"
    r"|(?:business|working) days?|(?:next|following|previous) day|tomorrow|yesterday|today|tonight"
    rf"|hafta(?:nin|lari)? (?:içi|sonu|her)|haftasonu|her gün|iş gün\w*|yarin|bugün|dün|ertesi gün){_E}"
)
_ANY_MONTH = re.compile(
    rf"{_B}(?:(?:every|each) month|monthly|all year|year-?round|quarter(?:s|ly)?|q[1-4]|spring|summer|autumn|fall"
    r"|winter|christmas|easter|halloween|thanksgiving|ramadan|new year(?:'s)?|(?:next|following|previous|last) month"
    rf"|her ay|ayda bir|yil boyu\w*|çeyre[kğ]\w*|ilkbahar\w*|yazin|yaz aylar\w*|sonbahar\w*|kişin|kiş aylar\w*){_E}"
)
_NUMERIC_MONTH = re.compile(
    r"(?<![0-9])(0?[1-9]|1[0-2])[./](0?[1-9]|1[0-2]|[0-3][0-9]|(?:19|20)[0-9]{2})(?![0-9])|(?<![0-9])[0-3]?[0-9][./](0?[1-9]|1[0-2])(?![0-9])"
)

_OFTEN = (
    r"(?:[ -](?:a|an|per|each|every)[ -](?:second|minute|hour|day|week|fortnight|month|quarter|season|term|year|decade)"
    r"|[ -](?:daily|weekly|monthly|yearly|annually|nightly))"
)
_TIMES_OF = {"once": 1, "twice": 2, "thrice": 3}
_TIMES_SAID = re.compile(rf"{_B}(?P<times>twice|thrice){_OFTEN}{_E}")
_TIMES = re.compile(
    rf"{_B}(?:(?P<times>twice|thrice|once(?={_OFTEN})){_E}"
    r"|(?P<two>(?:bi|semi-?)(?:daily|weekly|monthly|annual|yearly)\w{0,2}|half-yearly|every (?:12|twelve) hours"
    r"|every (?:6|six) months|morning and evening|sabah akşam|alti ayda bir|6 ayda bir|12 saatte bir)"
    rf"|(?P<three>every (?:8|eight) hours|every (?:4|four) months|8 saatte bir){_E})"
)
_DOZEN = re.compile(rf"{_B}(?:dozen|düzine)")
_LABEL = (
    r"(?:chapter|part|article|section|title|volume|vol\.|book|act|scene|appendix|annex|phase|type|class|tier|level|stage"
    r"|table|figure|grade|schedule|division|category|bölüm|kisim|madde|cilt|ek|tablo|şekil|aşama|evre|sinif|tip)"
)
_PART = r"(?:bölüm|kisim|kism|madde|cilt|cild)"
# In capitals, looked for in the text as it is written.
_ROMAN = r"(?:X{1,3}(?:IX|IV|V?I{0,3})|IX|IV|V?I{1,3}|V)"
_ROMAN_SAID = re.compile(
    rf"(?i:{_B}{_LABEL})[ \u00a0](?P<roman>(?!I{_E}){_ROMAN}){_E}|{_B}(?P<place>{_ROMAN})\.[ \u00a0](?i:{_PART})"
)
_ROMAN_IN_SOURCE = re.compile(
    rf"{_B}(?P<first>{_ROMAN})[ ]?(?:[-–—]|to|through|and|ile|ila|ve)[ ]?(?P<last>{_ROMAN}){_E}"
    rf"|{_B}(?:WW)?(?P<long>(?=[IVX]{{2}}){_ROMAN})(?=[A-Za-z]?{_E})"
    rf"|(?i:{_B}{_LABEL})[ \u00a0](?P<one>[IVX]){_E}|{_B}(?P<place>[IVX])\.(?=[ \u00a0]?\w)"
)
_DIGIT_OF = {"I": 1, "V": 5, "X": 10}
_SCALE_SAID = re.compile(
    rf"{_B}(?:(?P<english>{'|'.join(_SCALE_OF)})s(?=[ ]of{_E})|(?:of|in the)[ ](?P<after>{'|'.join(_SCALE_OF)})s{_E}"
    rf"|(?:on|yüz)?(?P<turkish>{'|'.join(_TURKISH_SCALE_OF)})l[ae]rc[ae](?:s[iuü]\w{{0,5}})?{_E})"
)
_SCALE_IN_SOURCE = re.compile(
    rf"(?P<english>{'|'.join(_SCALE_OF)})|{_B}(?:on|yüz)?(?P<turkish>{'|'.join(_TURKISH_SCALE_OF)})(?:l[ae]r|l[iu]k)"
    r"|(?P<hundreds>centur(?:y|ies)|yüzyil)|(?P<thousands>millenni(?:um|a|al)|binyil)"
)


def said(text: str) -> Iterator[Quantity]:
    """Yield what an answer says, in no order, in linear time.

    Example:
        >>> [found.name or str(found.readings[0][0]) for found in said("Twice a week, on Monday, in May; Chapter IV")]
        ['weekday 0', 'month 5', '2', '4']
    """
    plain = _plain(text)
    if len(plain) != len(text):
        return
    for found in _SAID.finditer(plain):
        kind = found.lastgroup or ""
        start, end = found.span(kind)
        if _meant(kind, text[start:end]):
            yield _named(start, found.end() if kind != "english" else end, _NAME_OF[found[kind]], date=True)
    for found in _TIMES_SAID.finditer(plain):
        yield _counted(*found.span(), _TIMES_OF[found["times"]])
    for found in _ROMAN_SAID.finditer(text):
        yield _counted(*found.span(), _roman(found["roman"] or found["place"]))
    for found in _SCALE_SAID.finditer(plain):
        start = found.start("after") if found["after"] else found.start()
        yield _named(start, found.end(), scale_name(found), date=False)


def names_in(text: str) -> frozenset[str]:
    """Return the weekdays, months and scales that a source may speak of, in linear time.

    Example:
        >>> sorted(names_in("Closed on Tue. and in April")), len(names_in("Mon-Fri"))
        (['month 4', 'weekday 1'], 7)
    """
    plain = _plain(unicodedata.normalize("NFC", text))
    found = list(_IN_SOURCE.finditer(plain))
    names = {_NAME_OF[one[one.lastgroup or 0]] for one in found}
    for first, second in pairwise(found):
        if _is_range(plain, first, second):
            names |= _EVERY_WEEKDAY if _name_of(first) in _EVERY_WEEKDAY else _EVERY_MONTH
    if _ANY_WEEKDAY.search(plain):
        names |= _EVERY_WEEKDAY
    if _ANY_MONTH.search(plain):
        names |= _EVERY_MONTH
    for month in _NUMERIC_MONTH.finditer(plain):
        names |= {month_name(int(part)) for part in month.groups() if part and 1 <= int(part) <= len(_MONTHS)}
    return frozenset(names.union(scale_name(scale) for scale in _SCALE_IN_SOURCE.finditer(plain)))


def values_in(text: str) -> Iterator[Decimal]:
    """Yield the numbers that words such as "twice" and "dozen", and Roman numerals, of a source may stand for.

    Example:
        >>> [str(value) for value in values_in("Chapter IV: twice a day, a dozen; Types I-III")]
        ['2', '12', '4', '1', '2', '3']
    """
    plain = _plain(unicodedata.normalize("NFC", text))
    for found in _TIMES.finditer(plain):
        yield Decimal(_TIMES_OF[found["times"]] if found["times"] else 2 if found["two"] else 3)
    if _DOZEN.search(plain):
        yield Decimal(12)
    for found in _ROMAN_IN_SOURCE.finditer(text):
        if found["first"]:
            first, last = _roman(found["first"]), _roman(found["last"])
            yield from map(Decimal, range(first, last + 1) if first < last else (first, last))
        else:
            yield Decimal(_roman(found[found.lastgroup or 0]))


def scale_name(found: re.Match[str]) -> str:
    """Return the name under which the scale that a pattern found is looked up."""
    kind, word = found.lastgroup, found[found.lastgroup or 0]
    if kind in {"hundreds", "thousands"}:
        return SCALE_NAMES[_SCALE_OF[str(kind)[:-1]]]
    return SCALE_NAMES[(_TURKISH_SCALE_OF if kind == "turkish" else _SCALE_OF)[word]]


def _plain(text: str) -> str:
    return lower(text).replace("ı", "i").replace("’", "'").replace("\u00a0", " ")


def _meant(kind: str, written: str) -> bool:
    """Say whether a word is written as the name of a date: April, SALI, and not april or the name Sali."""
    if kind in {"capital", "verb"}:
        return written[0].isupper()
    return not lower(written).startswith("sali") or written.isupper()


def _is_range(plain: str, first: re.Match[str], second: re.Match[str]) -> bool:
    """Say whether two days or two months are the ends of a range."""
    if (_name_of(first) in _EVERY_WEEKDAY) is not (_name_of(second) in _EVERY_WEEKDAY):
        return False
    gap = plain[first.end() : second.start()]
    if _RANGE.fullmatch(gap) or (gap == " " and _FROM.search(first[0])):
        return True
    return gap == " and " and _BETWEEN.search(plain, max(0, first.start() - 12), first.start()) is not None


def _name_of(found: re.Match[str]) -> str:
    return _NAME_OF[found[found.lastgroup or 0]]


def _roman(numeral: str) -> int:
    digits = [_DIGIT_OF[letter] for letter in numeral]
    return sum(-digit if digit < after else digit for digit, after in zip(digits, [*digits[1:], 0], strict=True))


def _named(start: int, end: int, name: str, *, date: bool) -> Quantity:
    return Quantity(start=start, end=end, kind="date" if date else "number", readings=(), name=name)


def _counted(start: int, end: int, value: int) -> Quantity:
    return Quantity(start=start, end=end, kind="number", readings=((Decimal(value),),))
