"""Units of time, length and weight behind a number, in English and Turkish.

"5 weeks" and "5 haftalık" have one measure, "5 days" another. Working days are a measure of their own, calendar days
are days. A unit in front of the number ("week 5") is none.
"""

from __future__ import annotations

import re

from llama_index_grounded.text.case import any_case

__all__ = ["MEASURES", "measure_at"]

MEASURES = {
    "second": "sec secs second seconds saniye sn",
    "minute": "min mins minute minutes dakika dk",
    "hour": "h hr hrs hour hours saat",
    "day": "day days gün",
    "week": "week weeks wk wks hafta",
    "month": "month months ay",
    "year": "year years yr yrs yıl sene",
    "mm": "mm millimetre millimetres millimeter millimeters milimetre",
    "cm": "cm centimetre centimetres centimeter centimeters santimetre santim",
    "metre": "metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "mile": "mile miles",
    "inch": "inch inches inç",
    "foot": "foot feet ft",
    "mg": "mg milligram milligrams miligram",
    "gram": "gram grams gramme grammes gr",
    "kg": "kg kgs kilo kilos kilogram kilograms",
    "tonne": "ton tons tonne tonnes",
    "pound": "lb lbs",
}
_OF = {any_case(word): measure for measure, words in MEASURES.items() for word in words.split()}
_ENDINGS = r"(?:l[ıiuü][kğ]\w{0,6}|[üıui]|[dt][ae]n?|[ae]|s[ıi]|[ıiuü]n|l[ae]r\w{0,4})?"
_BEHIND = re.compile(
    rf"[\s-]?(?:(?:full |clear )?(?P<of>business|working|calendar|iş|takvim)[\s-])?"
    rf"(?P<unit>{'|'.join(sorted(_OF, key=len, reverse=True))}){_ENDINGS}(?![^\W_])",
    re.IGNORECASE,
)


def measure_at(text: str, at: int) -> str:
    """Return the measure of a number that ends at a place of a text; empty without one.

    Example:
        >>> measure_at("21-day", 2), measure_at("5 iş günü", 1), measure_at("5 books", 1)
        ('day', 'working day', '')
    """
    behind = _BEHIND.match(text, at)
    if behind is None:
        return ""
    measure = _OF[any_case(behind["unit"])]
    working = any_case(behind["of"] or "") in {"business", "working", "iş"}
    return f"working {measure}" if working else measure
