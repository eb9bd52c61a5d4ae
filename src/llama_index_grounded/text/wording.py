"""Whether a small difference in the words of two texts may be another number, date or negation.

`signature` finds those that are written with digits, in number words or with the usual negations, `symbols` those that
are no words. What is left are words in which two texts differ, and a rule for each kind:

1. Telling words (`telling`: January, twice, hardly, hours) must be the same in the same order.
2. Where a few words differ, a word of three letters or fewer may be a unit, a numeral or a code (mg, IV, GMT), a
   limiting word changes what is said (before, each), and a word that is not of English or Turkish, by its letters or
   by the sentence and text that it stands in, may be anything: such texts do not say the same.
3. A Turkish verb with -ma or -me in it denies the one without.
4. Two words that differ in nothing but a part in front that counts or measures (dioxide, monoxide; kilovolt, megavolt)
   say another number.

Articles, pronouns, auxiliaries, case, punctuation and markup do not matter, nor do words in paths and code, nor longer
additions that hold nothing telling. Names are not looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.counting import counting_prefix
from llama_index_grounded.text.scripts import UNSPACED
from llama_index_grounded.text.telling import FUNCTION_WORDS, LIMITING_WORDS, marks_of_a_language, telling

__all__ = ["Wording", "first_difference", "reworded", "wording"]

_FEW, _FEW_ADDED = 6, 4
"""Most words, of both texts or more than in the other one, that are a small difference."""
_SHORT, _LONGEST_CHUNK = 3, 200
_WORD = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_])+(?:'[^\W\d_]+)*")
_CHARACTER = re.compile(f"[{UNSPACED}]")
_SENTENCE_END = re.compile(r"(?<![.!?。！？।؟])[.!?。！？।؟]+(?=\s|$|[\"'”’)])|[。！？।\n]")
_CHUNK = re.compile(r"\S+")
_CODE = re.compile(r"://|\w_\w|\./|--\w|\w\.[a-z]{2,4}\b|\w/\w+/|\w=[\"\w]|\]\(|\{[#%]|\$\{")
_MARKUP = re.compile(r"(?:`{3,}|~{3,})[ \t]?\w*|\{\{[^{}]{0,200}\}\}")
_FOREIGN = re.compile(rf"[^\W\d_a-zçğıöşüâîû]|[{UNSPACED}]")
_WORDS_TO_A_MARK = 20
_MAY = re.compile(r"(?<=[a-z,;] )May\b")
_DENIAL = re.compile(r"m[ae]y?")
_HARMONY = str.maketrans("ıüuoöe", "iiiaaa")


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text as they are compared."""

    telling: tuple[str, ...] = ()
    words: Counter[str] = field(default_factory=Counter[str])
    unknown: frozenset[str] = frozenset()
    """Those that stand in a sentence of another language."""


def wording(text: str, numbers: Collection[tuple[int, int]] = ()) -> Wording:
    """Work out the words of a text, in linear time.

    Args:
        text: Any text.
        numbers: Where its numbers begin and end, in their order: these are compared elsewhere.

    Example:
        >>> found = wording("The shop is closed on Mondays.")
        >>> found.telling, list(found.words)
        (('monday',), ['shop', 'closed'])
    """
    worded = _without(text, numbers) if numbers else text
    plain = _CHUNK.sub(_without_code, _MARKUP.sub(" ", _MAY.sub("Maymonth", worded.replace("’", "'"))))
    sentences = [
        _WORD.findall(lower(sentence)) for sentence in _SENTENCE_END.split(unicodedata.normalize("NFKC", plain))
    ]
    marks = list(map(marks_of_a_language, sentences))
    known_text = sum(marks) * _WORDS_TO_A_MARK >= sum(map(len, sentences))
    tells: list[str] = []
    words = Counter[str]()
    unknown: set[str] = set()
    for sentence, marked in zip(sentences, marks, strict=True):
        others: list[str] = []
        for word in sentence:
            if told := telling(word):
                tells.append(told)
            elif word not in FUNCTION_WORDS and not any(map(str.isdigit, word)):
                others.append(word)
        words.update(others)
        if not (marked or (known_text and all(map(str.isascii, sentence)))):
            unknown.update(others)
        else:
            unknown.update(filter(_FOREIGN.search, others))
    return Wording(tuple(tells), words, frozenset(unknown))


def reworded(one: Wording, other: Wording) -> str:
    """Name a difference that may be one in numbers, dates or negations; empty where there is none.

    Example:
        >>> reworded(wording("Take it once."), wording("Take it twice."))
        'words: once against twice'
        >>> reworded(wording("It is sent quickly."), wording("It is sent promptly."))
        ''
    """
    told = first_difference("words", one.telling, other.telling)
    if told or one.words == other.words:
        return told
    mine, theirs = one.words - other.words, other.words - one.words
    if other_count := _other_count(mine, theirs):
        return f"words: {other_count[0]} against {other_count[1]}"
    if _size(mine) + _size(theirs) > (_FEW if mine and theirs else _FEW_ADDED):
        return ""
    doubted = _doubted(mine, one, other.words), _doubted(theirs, other, one.words)
    if any(doubted):
        return f"words: {' '.join(doubted[0]) or 'nothing'} against {' '.join(doubted[1]) or 'nothing'}"
    pairs = ((word, more) for word in mine for more in theirs)
    denied = next((pair for pair in pairs if _denies(*pair) or _denies(*pair[::-1])), None)
    return f"words: {denied[0]} against {denied[1]}" if denied else ""


def first_difference(what: str, one: Sequence[str], other: Sequence[str]) -> str:
    """Name the first place in which two rows differ; empty where they are the same."""
    pairs = zip_longest(one, other, fillvalue="nothing")
    return next((f"{what}: {mine} against {theirs}" for mine, theirs in pairs if mine != theirs), "")


def _without(text: str, numbers: Collection[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in numbers:
        pieces.append(text[at : max(at, start)])
        at = max(at, end)
    return " ".join([*pieces, text[at:]])


def _without_code(chunk: re.Match[str]) -> str:
    return " " if len(chunk[0]) <= _LONGEST_CHUNK and _CODE.search(chunk[0]) else chunk[0]


def _size(words: Counter[str]) -> float:
    """Count words; two characters of a script without spaces are about one."""
    return sum(count / 2 if _CHARACTER.match(word) else count for word, count in words.items())


def _doubted(more: Counter[str], where: Wording, others: Counter[str]) -> list[str]:
    """Return the words of a difference that may be a number, a unit, a date or a negation; a plural is none."""
    return [
        word
        for word in more
        if word in where.unknown
        or word in LIMITING_WORDS
        or (len(word) <= _SHORT and f"{word}s" not in others and not (word[-1] == "s" and word[:-1] in others))
    ]


def _other_count(mine: Iterable[str], theirs: Iterable[str]) -> tuple[str, str] | None:
    """Return two words that differ in nothing but a part in front that says how many: dioxide, monoxide."""
    alike = {found[1]: word for word in mine if (found := counting_prefix(word))}
    if not alike:
        return None
    pairs = ((alike[found[1]], word) for word in theirs if (found := counting_prefix(word)) and found[1] in alike)
    return next(pairs, None)


def _denies(word: str, base: str) -> bool:
    """Tell whether a Turkish verb is another one with -ma or -me in it, up to vowel harmony: alma, al."""
    if not base or word[:2] != base[:2] or not 0 < len(word) - len(base) <= len("mey"):
        return False
    plain = base.translate(_HARMONY)
    cuts = (word[: cut.start()] + word[cut.end() :] for cut in _DENIAL.finditer(word))
    return any(cut.translate(_HARMONY) == plain for cut in cuts)
