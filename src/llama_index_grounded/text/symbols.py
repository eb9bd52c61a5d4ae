"""Signs, operators, and units whose case matters: what a text has besides words and numbers, as it is written.

1. **Units** that are another one in other case, wherever they stand: ``mW`` and ``MW``, ``Mb`` and ``MB``, ``pA`` and
   ``Pa``. In the spelling in which `measures` and `telling` know a unit it is left to them: ``5 mg`` is
   ``5 milligrams``.
2. **Operators** of code and formulas: ``<``, ``>=``, ``==``, ``!=``, ``!ready``, ``&&``, ``||``, ``a | b``, ``2^3``,
   ``a * b``; ``+`` wherever it stands (``UTC+3``, ``18+``, ``C++``); ``C#``, ``~5``; the brackets of ``[0, 5)``.
3. **A dash that may be a minus**: in front of a number, behind a word or nothing, and not read as its sign; ``= -x``.
4. **Signs**: ``≥``, ``³``, ``①``, ``°``, ``‰``, ``″``, and those of currencies that `quantities` does not know.

Markup is none of it, as far as it can be told: bullets, tags, tables, block quotes, arrows, addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from llama_index_grounded.text.number_shapes import SYMBOLS, URL

__all__ = ["symbols"]

_CASED = re.compile(
    r"(?<![^\W\d_])(?:m(?:[gwvajnlsfhkt]|hz|wh|va|ev|pa|bar|mol|bps|ib|b|[ωΩ\u2126])|[kgtp](?:b|bps|ib)|p[afjw]|nm|cal)"
    r"(?![^\W_])",
    re.IGNORECASE,
)
"""m is milli and M mega, b a bit and B a byte. Plain ``m`` and ``k`` are left out: they are mostly no units."""
_USUAL = frozenset({"mg", "MW", "ml", "mL", "ms", "KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"})

_SIGN = re.compile(r"[^\x00-\x7f]")
_SIGNS = frozenset({"No", "Nl", "Sm", "So", "Sc"})
_MORE_SIGNS = frozenset("‰‱′″‴")
_NO_SIGNS = frozenset(SYMBOLS) | frozenset("©®™¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞¬￼\ufffd")
_BULLET = re.compile(r"(?m)^[ \t]*[●○■□▪▫◆◇►▶‣★☆→➤⁃]")

_TAG = re.compile(r"<[A-Za-z/!][^<>]{0,300}>")
_LAYOUT = re.compile(r"(?m)^[ \t]*(?:\|.*|[-+=|:]{3,}[ \t]*$|(?:[-*+][ \t]+)+|(?:>[ \t]*)+(?![ \t\d]))")
"""Rows and lines of tables, bullets, block quotes."""
_OPERATOR = re.compile(
    r"""
      (?<![=!<>])(?:[!=]={1,2}|[<>]=|=<)(?![=<>])
    | (?<![-=])[<>](?=\s?[-+]?\.?\d)
    | (?:(?<=[\w)\]])|(?<=[\w)\]]\ ))(?:(?:<<|>>)=?|[<>])(?=\ ?[\w(])
    | (?<=[\w)\]]\ )(?:[-*/%&^]=|[*^/]{1,2})(?=\ [\w(-])
    | (?<=[\w)])(?:\^|\*{1,2}(?=\d))(?=[\w({+-])
    | && | \|+ | \++
    | (?<![\w.!?)\]])!+(?=[\w(]) | (?<!\w)¬(?=[\w(])
    | (?<=\w)\#(?!\w) | (?<![~\w])~(?=\s?\d|[^\W\d]|\()
    """,
    re.VERBOSE,
)
_INTERVAL = re.compile(r"([\[(])[ ]?[-+]?[\d.]{1,20}[ ]?[,;][ ]?[-+]?[\d.∞]{1,20}[ ]?([\])])")
_MINUS = re.compile(
    r"(?:(?<=(?:[^\W\d_]|[,;:=(\[])[ \u00a0])|(?<=[(\[=:,]))[-\u2212\u2013][ \u00a0]?(?=[.,]?\d)"
    r"|(?<![\w)\]%.])\u2013(?=\d)|(?:(?<=[(\[=])|(?<== ))-(?=[^\W\d_])"
)


def symbols(text: str, signed: Collection[int] = ()) -> tuple[str, ...]:
    r"""Return the symbols of a text, each kind in the order of the text; in linear time.

    Args:
        text: Any text.
        signed: Where its numbers begin; a minus that one begins with is a part of its value.

    Example:
        >>> symbols("500 Mb if !ready and x >= 5, UTC+3, 5 °C")
        ('Mb', '!', '>=', '+', '°')
        >>> symbols("* 500 MB\n| a | b |\n<b>File</b> -> [Save](/a?b=c+d)!")
        ()
    """
    plain = URL.sub(" ", text)
    units = (unit for unit in _CASED.findall(plain) if unit not in _USUAL)
    intervals = map("".join, _INTERVAL.findall(plain))
    return (*units, *_operators(plain), *intervals, *_minuses(text, signed), *_signs(text))


def _operators(text: str) -> list[str]:
    return _OPERATOR.findall(_LAYOUT.sub(" ", _TAG.sub(" ", text)))


def _minuses(text: str, signed: Collection[int]) -> Iterator[str]:
    bullets = {found.end() for found in _LAYOUT.finditer(text)}
    for dash in _MINUS.finditer(text):
        if dash.start() not in signed and dash.end() not in bullets:
            yield "-"


def _signs(text: str) -> list[str]:
    if text.isascii():
        return []
    others = set(_SIGN.findall(text))
    wanted = {sign for sign in others - _NO_SIGNS if sign in _MORE_SIGNS or unicodedata.category(sign) in _SIGNS}
    return [sign for sign in _BULLET.sub("", text) if sign in wanted] if wanted else []
