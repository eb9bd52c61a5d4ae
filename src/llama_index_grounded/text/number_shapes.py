"""What numbers and their units look like in a text: the patterns and word lists of `quantities`.

Every pattern either has a bound, or takes what it has seen, so that a scan is linear. They expect text that `FOLDED`
has made uniform: ASCII digits, one apostrophe, one dash, one no-break space.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from llama_index_grounded.text.number_words import MONTH, SCALES

_END = r"(?![^\W_])"
_YEAR = r"[0-9]{4}(?![0-9]|[.,][0-9])"
ATOM = re.compile(
    rf"""
    (?=[^\W_]|[+(.¼-¾⅐-⅞])(?:
    (?P<date>
      [0-9]{{4}}(?P<iso>[-/.])[0-9]{{1,2}}(?P=iso)[0-9]{{1,2}}(?![0-9]|[-/.][0-9])
    | [0-9]{{1,2}}(?P<dmy>[-/.])[0-9]{{1,2}}(?P=dmy)[0-9]{{4}}(?![0-9]|[-/.][0-9])
    | [0-9]{{1,2}}/[0-9]{{1,2}}/[0-9]{{2}}(?![0-9]|[-/.][0-9])
    | [0-9]{{2}}\.[0-9]{{2}}\.[0-9]{{2}}(?![0-9]|[-/.][0-9])
    | [0-9]{{4}}-0[1-9](?![-0-9])
    | [0-9]{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s)?{MONTH}{_END}(?:\.?,?\s(?:of\s)?{_YEAR})?
    | (?<![^\W_]){MONTH}\.?\s[0-9]{{1,2}}(?:st|nd|rd|th)?(?![0-9]|[.,:][0-9])(?:,?\s{_YEAR})?
    | (?<![^\W_]){MONTH}\.?,?\s(?:of\s)?{_YEAR}
    )
    |(?P<time>
      [0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?(?![:0-9])(?:\s?(?:[ap]m|[ap]\.m\.){_END})?
    | [0-9]{{1,2}}(?:\.[0-5][0-9])?\s?(?:[ap]m|[ap]\.m\.){_END}
    )
    |(?P<version>
      (?<![^\W_])(?:v\.?|(?:version|release|sürüm)\s)[0-9]+(?:\.[0-9]+)*(?:\.x{_END})?
    | [0-9]+(?:\.[0-9]+)+(?:-?(?:rc|alpha|beta|dev|post)\.?[0-9]*)(?![0-9])
    | [0-9]+(?:\.[0-9]+)*\.x{_END}
    | [0-9]+(?:\.[0-9]+){{2,}}(?![0-9]|[.,][0-9])
    )
    |(?P<digits>
      \+[0-9]{{8,15}}(?![0-9])
    | \+[0-9]{{1,3}}(?:[ -]\(?[0-9]{{2,5}}\)?){{1,6}}(?![0-9])
    | \([0-9]{{2,5}}\)[ -]?[0-9]{{2,4}}(?:[ -][0-9]{{2,4}}){{1,4}}(?![0-9])
    | 0[0-9]{{2,4}}(?:[ -][0-9]{{2,4}}){{2,4}}(?![0-9])
    | [0-9]+(?:-[0-9]+){{2,}}(?:-[0-9X])?(?![0-9])
    | [0-9]+-0[0-9]+
    )
    |(?P<fraction>(?:[0-9]{{1,3}}\s)?[0-9]{{1,6}}/[0-9]{{1,6}}(?![0-9/]|[.,][0-9])|[0-9]{{0,9}}[¼-¾⅐-⅞])
    |(?P<number>
      [0-9]+(?:\.[0-9]+)?e[+-]?[0-9]{{1,2}}{_END}
    | (?<![^\W_])(?<![].,)'"])\.[0-9]+(?![.,]?[0-9])
    |
      [0-9]{{1,3}}(?P<gap>[ '\u00a0])[0-9]{{3}}(?:(?P=gap)[0-9]{{3}})*(?![0-9])(?:[.,][0-9]+)?(?![.,]?[0-9])
    | [0-9]+(?:[.,][0-9]+)*
    )
    |(?P<word>[^\W\d_]+)
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)

FOLDED: Final = {
    **{ord(space): "\u00a0" for space in "\u2007\u2009\u202f"},
    **dict.fromkeys(map(ord, "’ʼ＇"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2212－"), "-"),
    **dict.fromkeys(map(ord, "\u2012\u2013\u2014"), "–"),
    **{ord(mark): plain for mark, plain in zip("％٪．，／：＋＄＃", "%%.,/:+$#", strict=True)},
    **{ord(mark): plain for mark, plain in zip("٫٬", ".,", strict=True)},
}
OTHER_DIGIT = re.compile(r"[^\D0-9]")
URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"]+|(?<=\]\()[^\s()]{1,2048}(?=\))")
TURKISH, ENGLISH = re.compile("[ıİğĞşŞ]"), re.compile(r"\b(?:the|of|and|is|to)\b")

AMBIGUOUS: Final = frozenset({"one", "bir", "two", "iki", "three", "üç", "altı", "yedi", "yüz", "on", "bin", "elli"})
NEVER_ALONE: Final = frozenset({"one", "bir", "half", "yarım", "quarter"})
ENGLISH_TOO: Final = frozenset({"on", "bin"})
PARTS_OF_ONE: Final = {"half": Decimal("0.5"), "yarım": Decimal("0.5"), "quarter": Decimal("0.25")}
MEASURE = re.compile(
    r"[\s-](?:days?|weeks?|months?|years?|hours?|minutes?|seconds?|people|cop(?:y|ies)|times|gün|hafta|ay|yıl|saat|dakika|kişi|kopya|adet|tane|lira|tl|kez|kere)"
    rf"(?:l[ıiuü]k|d[ae]n?|l[ae]r)?{_END}",
    re.IGNORECASE,
)

_NAMES: Final = {
    "USD": ("$", "US$", "dollar", "dolar"),
    "EUR": ("€", "euro", "avro"),
    "GBP": ("£", "pound", "sterlin"),
    "TRY": ("₺", "TL", "lira"),
    "JPY": ("¥", "yen"),
    "INR": ("₹", "rupee"),
    "KRW": ("₩",),
    "RUB": ("₽",),
    "CNY": ("yuan",),
    "CHF": ("franc",),
    "¢": ("¢", "cent", "cents"),
    "kuruş": ("kuruş",),
    "pence": ("pence",),
    "AUD": ("A$", "AU$"),
    "CAD": ("C$", "CA$"),
    "NZD": ("NZ$",),
    "HKD": ("HK$",),
}
SYMBOLS: Final = {name: code for code, names in _NAMES.items() for name in names}
"""The code of each currency by its symbols and words."""
MINOR: Final = {"¢": "¢", "kuruş": "TRY", "pence": "GBP"}
"""The currency of each hundredth; a cent is one of several."""
_CODES = "USD|EUR|GBP|TRY|TL|JPY|CHF|CAD|AUD|CNY|INR|KRW|RUB"
_SIGNS = r"(?:US|AU?|CA?|NZ|HK)?\$|[€£¥₺₹₩₽]"
BEFORE = re.compile(
    rf"(?:(?P<percent>%|(?<![^\W_])(?i:yüzde))|(?P<money>{_SIGNS}|(?<![^\W_])(?:{_CODES})))[ \u00a0]?-?\Z"
)
_ENDING = r"(?:s|y?[aeıiuü]|n[ıiuü]n|d[ae]n?|d[ıiuü]r|l[ıiuü]k|s[ıiuü])?"
AFTER = re.compile(
    rf"[ \u00a0]?%(?![0-9])|[\s-]?(?i:percent|per\scent|pct|percentage\spoints?){_END}"
    rf"|[ \u00a0-]?(?P<money>(?:{_SIGNS})(?![0-9])|(?:{_CODES}){_END}"
    rf"|(?i:dollar|dolar|euro|avro|pound|sterlin|lira|rupee|franc)(?={_ENDING}{_END})|(?i:yen|yuan|cents?|pence){_END}"
    rf"|(?i:kuruş)(?={_ENDING}{_END})|¢)"
)
MINUS = re.compile(r"(?<![^\W_])(?:minus|eksi)[ \u00a0]\Z", re.IGNORECASE)
AND_A_HALF = re.compile(rf"[ \u00a0]buçuk{_END}", re.IGNORECASE)
CLOCK = re.compile(r"(?:[01]?[0-9]|2[0-4])\.[0-5][0-9]")
CLOCK_BEFORE = re.compile(r"(?<![^\W_])(?:saat(?:i|ler[ie]?)?|at)[: \u00a0]{1,2}\Z", re.IGNORECASE)
NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
# "5 milyona", "5 milyarı", "5 binlik".
SCALE_ENDING: Final = r"(?:[aeıiu]n?|d[ae]n?|d[ıiu]r|l[ıiu][kğ]\w{0,6}|l[ae])"
MULTIPLIER = re.compile(
    rf"(?:(?P<sure>[kKM])|(?P<maybe>[mbB])){_END}|[ \u00a0]?(?P<short>mn|bn|tn|mio|Mio|Mrd){_END}"
    rf"|[\s-]?(?P<word>(?i:{'|'.join(SCALES)}))(?:s|(?i:(?<=bin|yon|yar){SCALE_ENDING}))?{_END}"
)
ZEROS: Final = {"k": 3, "m": 6, "mn": 6, "mio": 6, "b": 9, "bn": 9, "mrd": 9, "tn": 12} | SCALES
PLACE = re.compile(rf"(?:st|nd|rd|th|'?(?:[ıiuü]nc[ıiuü]|nc[ıiuü])){_END}", re.IGNORECASE)
JOINT = re.compile(r"\s?[-–~]\s?|\s(?:to|ile|ila|through)\s", re.IGNORECASE)
