"""Where a quote may not be cut, by patterns of the bench's own: inside quantities, and beside negations."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MONTHS", "NEGATIONS", "NEGATIVE", "letters", "negations", "quantity_cuts"]

NEGATIONS = {
    "en": ["not", "no", "never", "cannot", "n't", "nor", "neither", "without"],
    "tr": ["değil", "yok"],
    "ar": ["لا", "لم", "لن", "ليس", "ليست", "غير", "بدون"],
    "zh": ["不", "没", "未", "勿", "非", "无"],
}
# Endings of negations that are part of a word.
NEGATIVE = re.compile(r"n't$|^değil|^yok|^hiç|^asla|.m[ae](?:d[ıi]ğ|z$|zd|yan|yen|yac|yec|m[ıi]ş)|.m[ıiuü]yor")
MONTHS = {
    "en": "January|February|March|April|May|June|July|August|September|October|November|December",
    "tr": "Ocak|Şubat|Mart|Nisan|Mayıs|Haziran|Temmuz|Ağustos|Eylül|Ekim|Kasım|Aralık",
    "ar": "يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر",
}
# Where a quantity may not be cut, between two groups, by patterns of the bench's own.
UNITS = {
    "en": "one|two|three|four|five|six|seven|eight|nine",
    "tr": "bir|iki|üç|dört|beş|altı|yedi|sekiz|dokuz",
}
TENS = {
    "en": "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety",
    "tr": "yirmi|otuz|kırk|elli|altmış|yetmiş|seksen|doksan",
}
NUMERAL = r"\d+(?:[.,]\d+)*"
PARTED = [
    rf"(?<![\w.,])({NUMERAL}) ((?:million|billion|thousand|milyon|milyar|bin|percent|per cent|dollars)(?!\w))",
    rf"(?<!\w)((?:yüzde|minus|eksi)) ({NUMERAL})",
    r"(?<!\w)([A-Z]{1,2})([$£€]\d)",
    r"([$£€%])(\d)",
    r"(\d)( ?%)",
    r"(?<![\d.,])(\d{1,3})([.,]\d{3})(?![\d.,])",
    rf"(?<![\w.,/-])({NUMERAL}(?: ?[-–]){{1,2}})( ?\d+)(?![\w.,/-])",
    rf"(?<![\w.,/-])({NUMERAL})( ?[-–]{{1,2}} ?\d+)(?![\w.,/-])",
    rf"(?<![\w.,])({NUMERAL}) ((?:to|or|ile|ila|veya) {NUMERAL})(?![\w.,])",
    rf"(?<![\w.,])({NUMERAL} (?:to|or|ile|ila|veya)) ({NUMERAL})(?![\w.,])",
    r"(\d)( ?(?:[ap]\.m\.|[ap]m(?!\w)))",
    r"(\d ?(?:k?m|[km]?g|[kMG]?B|km²))(/(?:h|s|kg|km²)(?!\w))",
    *(rf"(?i:(?<!\w)({TENS[lang]})([ -](?:{UNITS[lang]})(?!\w)))" for lang in UNITS),
    *(rf"(?i:(?<!\w)({UNITS[lang]}) ((?:hundred|thousand|million|yüz|bin|milyon)(?!\w)))" for lang in UNITS),
    *(rf"(?<![\w.,])(\d{{1,2}}) ((?:{names})(?!\w))" for names in MONTHS.values()),
    *(rf"(?<![\w.,])(\d{{1,2}} (?:{names})),? (\d{{4}})(?!\d)" for names in MONTHS.values()),
    *(rf"(?<!\w)((?:{names})) (\d{{1,2}}|\d{{4}})(?![\d:])" for names in MONTHS.values()),
    rf"(\d%)( ?[-–] ?{NUMERAL}%)",
    rf"(?<!\w)((?:{MONTHS['en']}) \d{{1,2}}),? (\d{{4}})(?!\d)",
    r"(\d)([万亿])",
]


def quantity_cuts(text: str) -> list[tuple[int, int]]:
    """Return where a quantity could be cut: the end of its first part and the start of its second."""
    return [(found.end(1), found.start(2)) for pattern in PARTED for found in re.finditer(pattern, text)]


def negations(text: str, lang: str) -> list[tuple[int, str]]:
    """Return where a quote may not end or start beside a negation; a Turkish one negates what stands before it."""
    words = "|".join(NEGATIONS[lang])
    pattern = rf"(?<!（)(?:{words})(?![洲常])" if lang == "zh" else rf"(?i:(?<=\w )(?:{words})(?= \w))(?!\W+\d)"
    found = list(re.finditer(pattern, text))
    return [(one.start(), "end") for one in found] + [(one.end(), "start") for one in found if lang != "tr"]


def letters(text: str) -> str:
    """Keep letters and digits only."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFC", text)))
