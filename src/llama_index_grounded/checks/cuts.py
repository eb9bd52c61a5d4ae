"""Say where a passage may be cut out of a text without changing what it says.

- Not inside a word, a grapheme, a number or a hyphened compound, nor at an apostrophe within a word ("able" is not in
  "unable", "the store" not in "the store's", "Ankara" not in "Ankara'da"): what is left out may say what the rest does
  not. The one exception is the Turkish copula, which says no more than "is": "49 TL" is in "49 TL'dir".
- Not inside a quantity: numbers in groups or in words, their sign, currency or percent sign, million, "p.m.", a unit
  with a slash or "per", both ends of a range, dates ("5 mg" is not in "5 mg/kg", "$50" not in "US$50"). A unit may be
  left out as a whole: "21" is in "21 days".
- Not next to a negation ("refundable" is not in "not refundable"). Known are negations that are words of their own in
  English and Turkish, the commonest in Arabic, Chinese, Japanese, Korean, German, French, Spanish, Russian and Hindi,
  and the negative forms of Turkish auxiliaries (olmaz, edilemez). "No. 5" is a number.

What begins a block of its own, such as a list item, or a line with a capital, is not next to the line above.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from llama_index_grounded.checks.folding import Folded, in_word
from llama_index_grounded.text.case import lower
from llama_index_grounded.text.number_words import terms_of
from llama_index_grounded.text.quantities import Quantity, quantities

__all__ = ["begins_sentence", "joined", "may_begin", "may_end"]

_BESIDE = 40
_CLOSE = 24
_NEAR = 3
# Han, kana, and Thai to Myanmar: words are written without a space between them.
_UNSPACED = re.compile(
    r"[\u0e00-\u109f\u1780-\u17ff\u3001-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_MONEY = "$¢£¥₤₩₹₺₽€"
_TO = r"(?:-{1,2}|[–~]|(?<!\w)(?:to|or|through|ile|ila|veya|ya[ ]da|oder|bis|ou)(?!\w))"
_UNIT = rf"(?:[^\W\d_]{{1,12}}[²³]?|[{_MONEY}%°])"
_ARABIC_MONTH = "(?:يناير|فبراير|مارس|[أا]بريل|مايو|يونيو|يوليو|[أا]غسطس|سبتمبر|[أا]كتوبر|نوفمبر|ديسمبر)"
# The NUL stands where the passage begins or ends; folded texts hold none.
_BROKEN = re.compile(
    rf"""
      \d[.,:/'\u066b\u066c]\x00\d | \d\x00[.,:/'\u066b\u066c]\d   # 1.5, 1,000, 12:30, 1/2
    | (?<!\d)\d{{1,3}}[ ]?\x00[ ]?\d{{3}}(?!\d) | \d[ ]\d{{3}}[ ]?\x00[ ]?\d{{3}}(?!\d)   # 1 000
    | \w[-']\x00\w | \w\x00[-']\w                                 # non-refundable, don't, 50-199
    | (?:[-+%±~≈{_MONEY}]|(?:(?<!-)-|[+±~≈<>]|[<>]=)[ ]?)\x00\d   # -5, - 5, %20, $20, >= 18
    | [<>]\x00= | \w\x00[{_MONEY}][ ]?\d                          # US$50
    | \d\x00[ ]?(?:[%‰°٪]|[{_MONEY}](?![ ]?\w)) | \d\x00["'+](?!\w)          # 20 %, 20 €, 5', 18+
    | \d[ -]?{_UNIT}?(?:\x00[ ]?/[ ]?|[ ]?/[ ]?\x00|[ ]?\x00[ ]?per[ ]|[ ]per[ ]\x00)[^\W\d_]   # 5 mg/kg
    | (?<!\w)(?:(?:minus|eksi)[ ]\x00|negative[ ]\x00\d) | (?:[负負]|零下|マイナス|영하[ ]?)\x00\d
    | \d[ ]?{_TO}[ ]?\x00\d | \d\x00[ ]?{_TO}[ ]?\d               # 4 or 5
    | \d[ ]?\x00-\d                                             # 1185 -1226
    | \d[ ]\x00{_ARABIC_MONTH} | \d\x00[ ]{_ARABIC_MONTH} | {_ARABIC_MONTH}(?:[ ]\x00|\x00[ ])\d
    | \d[至到]\x00\d | \d\x00[至到]\d | [两兩几幾数數]\x00[十百千万亿萬億]
    | \d[ ]?({_UNIT})[ ]?{_TO}[ ]?\x00\d[\d.,]*[ ]?\1 | \d[ ]?({_UNIT})\x00[ ]?{_TO}[ ]?\d[\d.,]*[ ]?\2   # 4 kg - 5 kg
    """,
    re.VERBOSE | re.IGNORECASE,
)
_JOINT = re.compile(rf"[ ]?{_TO}[ ]?", re.IGNORECASE)
_MORE = re.compile(r"[ -](?:and an? (?:half|quarter)|dozen|düzine|point \w+)(?!\w)", re.IGNORECASE)
_LABEL = re.compile(r"(?:version|release|sürüm)\s", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_OLD_NOT = r"nicht|kein\w{0,2}|niemals|jamais|nunca|jamás|не|нет|नहीं|لا|لم|لن|ليس|ليست|غير|ممنوع"
_NO_CASE = r"no (?:circumstances?|conditions?|account|way|case|event|time|means|longer)"
_AFTER_NEGATION = re.compile(
    rf"""(?:(?<![^\W_])(?:not|no|never|cannot|without|nor|neither|asla|hiç|hiçbir|{_OLD_NOT}|ohne|بدون)|n't|(?<![^\W_])[안못])
      [ *_"'`(\[]{{1,6}}\x00
    | (?<![^\W_])(?:{_NO_CASE.replace(" ", "[ ]")}|hiçbir[ ]\w{{1,12}}),?[ *_]{{1,6}}\x00
    | (?<![^\W_])(?:none|neither)[ ]of(?:[ ](?:the|these|those|our|your|its))?[ ]\x00
    | (?:[不没沒未勿非无無]|禁止|[严嚴]禁|不得|不可)\x00""",
    re.VERBOSE | re.IGNORECASE,
)
_TURKISH_VERB = (
    r"(?:ol|ed|et|edil|yap|yapıl|alın|veril|bulun)[ae]?"
    r"(?:m[ae]z\w{0,8}|m[ae](?:y[ae]n|y[ae]c|d[ae]n|d[ıi]|m[ıi]ş|m[ae]l[ıi])\w{0,8}|m[ıiuü]yor\w{0,8})"
)
_BEFORE_NEGATION = re.compile(
    rf"""[\w%°{_MONEY}]["'*_`)]*\x00(?:[ *_"'`]{{0,6}}
    (?:(?:not|no(?![.:]?[ ]?(?:[a-z]-?)?\d)|never|cannot|without|nor|neither|n't
      |asla|hiç|hiçbir|değil\w*|yok(?:tu|tur|muş|sa)?|{_OLD_NOT}|ohne|بدون|{_TURKISH_VERB})(?![^\W_])
      |[不没沒未勿无無]|非(?![常洲])|禁止|[严嚴]禁|않|없|못|아니)
    | (?:でき|出来|し|され|られ|れ|では|じゃ|は)?(?:ません|ない|なかっ|なく))""",
    re.VERBOSE | re.IGNORECASE,
)
# What ends right behind one ends where the copula is left out; "'den", "'siz" and "n't" say more.
_COPULA = re.compile(r"(?<=\w)'[dt][ıiuü]r(?![^\W_])", re.IGNORECASE)
_MARKER = re.compile(r"[\s>]*(?:[-*+•·]|\#{1,6}|\d{1,3}[.)])\s+[\s*_\"'`]*")
_BEFORE_BLOCK = re.compile(r"[\s>*_\"'`]*")
_LINE = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_SENTENCE_ENDS = ".!?:…。！？："
_MOST_SEEN = 4096
_OPENERS = " *_\"'`([>#-"


def may_begin(source: Folded, at: int) -> bool:
    """Say whether a passage may begin in front of a folded character."""
    return at == 0 or (
        _whole(source, at)
        and (
            _begins_block(source, at)
            or not (_in_quantity(source, near := _around(source, at)) or _AFTER_NEGATION.search(near))
        )
    )


def may_end(source: Folded, at: int) -> bool:
    """Say whether a passage may end in front of a folded character."""
    if at == len(source.text):
        return True
    near = _without_copula(_around(source, at))
    if not _whole(source, at) or not (_in_quantity(source, near) or _BEFORE_NEGATION.search(near)):
        return _whole(source, at)
    following = at + (source.text[at] == " ")
    return following < len(source.text) and _begins_block(source, following)


def begins_sentence(source: Folded, at: int) -> bool:
    """Say whether a folded character is the first of the text, of a line or of a sentence."""
    before = source.text[max(0, at - _BESIDE) : at].rstrip(_OPENERS)
    if not before or (before[-1] in _SENTENCE_ENDS and before != source.text[:at]):
        return True
    return _LINE.search(_gap(source, at)) is not None


def joined(before: str, after: str) -> bool:
    """Say whether two neighbours belong to one word, number or grapheme.

    Example:
        >>> joined("2", "1"), joined("退", "货"), joined("e", "\u0301")
        (True, False, True)
    """
    if before.isascii() and after.isascii():
        return (before.isalnum() or before == "_") and (after.isalnum() or after == "_")
    if after == "\u200d" or before == "\u200d" or unicodedata.category(after)[0] == "M":
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or all("\U0001f1e6" <= char <= "\U0001f1ff" for char in (before, after)):
        return True
    if not (in_word(before) and in_word(after)):
        return False
    return (before.isnumeric() and after.isnumeric()) or not (_UNSPACED.match(before) or _UNSPACED.match(after))


def _whole(source: Folded, at: int) -> bool:
    """Say whether no word, number or grapheme is cut."""
    return source.parts(at) and not joined(source.text[at - 1], source.text[at])


def _around(source: Folded, at: int) -> str:
    """Return what stands on both sides, with the dashes that part words as they were."""
    start = max(0, at - _BESIDE)
    near = source.text[start : at + _BESIDE]
    if "-" in near:
        near = "".join(_dash(source, start + place) if char == "-" else char for place, char in enumerate(near))
    before, after = near[: at - start], near[at - start :]
    if start and joined(source.text[start - 1], source.text[start]):
        # Half a word at the edge of the window could be taken for a number.
        before = before[before.find(" ") + 1 :]
    return f"{before}\0{after}"


def _without_copula(near: str) -> str:
    before, after = near.split("\0", 1)
    copula = _COPULA.match(f"{before[-1:]}{after}", len(before[-1:]))
    return f"{before}\0{after[copula.end() - 1 :]}" if copula else near


def _dash(source: Folded, at: int) -> str:
    """Return an em dash, or an en dash between letters, as it was: it parts two words, where a hyphen joins them."""
    start, end = source.came_from(at)
    written = source.original[start:end]
    numbers = any(map(str.isnumeric, source.text[max(0, at - 1) : at + 2]))
    return written if written in {"—", "―"} or (written == "–" and not numbers) else "-"


def _gap(source: Folded, at: int) -> str:
    """Return what stands in the original in front of a folded character, back to a letter, digit or full stop."""
    end = source.came_from(at)[0]
    start = max(0, end - _BESIDE)
    while end > start and not (source.original[end - 1].isalnum() or source.original[end - 1] in _SENTENCE_ENDS):
        end -= 1
    return source.original[end : source.came_from(at)[0]]


def _begins_block(source: Folded, at: int) -> bool:
    """Say whether a list item, a heading, a paragraph or a line with a capital begins with a folded character."""
    place = source.came_from(at)[0]
    before = source.original[max(0, place - _BESIDE) : place]
    *lines, last = _LINE.split(before)
    if not lines and place > _BESIDE:
        return False
    if _MARKER.fullmatch(last):
        return True
    if not lines or not _BEFORE_BLOCK.fullmatch(last):
        return False
    while place < len(source.original) and source.original[place] in "*_\"'`“‘":
        place += 1
    word = source.original[place : place + 2]
    blank = len(lines) > 1 and not lines[-1].strip()
    return word.istitle() or (blank and not word[:1].islower() and not word[:1].isdigit())


def _in_quantity(source: Folded, near: str) -> bool:
    """Say whether the cut goes through a quantity. A source may repeat itself at thousands of places."""
    if near not in source.seen:
        if len(source.seen) >= _MOST_SEEN:
            source.seen.clear()
        source.seen[near] = _goes_through_quantity(near)
    return source.seen[near]


def _goes_through_quantity(near: str) -> bool:
    before, after = near.split("\0", 1)
    if _BROKEN.search(f"{before[-_CLOSE:]}\0{after[:_CLOSE]}"):
        return True
    words = [*_WORD.findall(before)[-_NEAR:], *_WORD.findall(after)[:_NEAR]]
    if not any(word[0].isdigit() or terms_of(lower(word)) for word in words):
        return False
    text, cut = before + after, len(before)
    return any(start < cut < end for start, end in _extents(text, quantities(text)))


def _extents(text: str, found: list[Quantity]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each quantity, and of two that a dash or a word such as "to" joins."""
    reach: list[tuple[int, int]] = []
    for quantity in found:
        start, end = quantity.start, quantity.end
        if quantity.kind == "date" and "may" in text[start:end]:
            # "21 may be" is no day.
            continue
        if label := _LABEL.match(text, start, end):
            start = label.end()
        more = _MORE.match(text, end)
        # The last point of "p.m." may be the sentence's.
        reach.append((start, more.end() if more else end - (text[end - 1] == ".")))
    yield from reach
    for (first, end), (start, last) in pairwise(reach):
        if _JOINT.fullmatch(text, end, start):
            yield first, last
