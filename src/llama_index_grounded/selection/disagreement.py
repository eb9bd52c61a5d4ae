"""Find texts that say the same thing with another number, date, negation, opposite or name, without a model.

Two sentences are compared if they are alike: of their content words, stop words and numbers left out, a good part is
common, words of the question counted twice. `text.signature` then says what differs; where it finds nothing and the two
are very much alike, the names and code words that the one has in place of the other's do. A list item, a table row and
a line of code are sentences, too. A sentence that both texts have contradicts nothing, and what one says and the other
leaves out is no disagreement; a negation is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from llama_index_grounded.text.case import lower
from llama_index_grounded.text.scripts import CJK
from llama_index_grounded.text.signature import Signature, differences, signature

__all__ = ["Disagreement", "disagreements"]

ALIKE = 0.45
"""Least share of common content words (Jaccard) of two sentences that are compared."""
NAMES_ALIKE = 0.7
"""The same for two that differ in names or code words alone, of which either has up to `_MOST_NAMES`."""
_MOST_NAMES = 5
_FEW, _FEWEST = 3, 2
_LONGEST = 64
_MOST_SENTENCES = 256
_MOST_PAIRS = 20_000
_MOST_TEXT = 50_000
_STEM = 6
_DETAIL = 120

_BLOCK = re.compile(r"\s*(?:\||[-*+•‣◦–]\s|\(?(?:\d{1,3}|[a-zA-Z])[.)]\s)")
_MARK = re.compile(r"[\s|>*+•‣◦–-]*(?:\(?(?:\d{1,3}|[a-zA-Z])[.)]\s+)?")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]{0,3}\s+(?=[^\W\d_a-zçğışöü]|[\"'“‘(\[\d])|(?<=[。！？])")
_WORD = re.compile(rf"[{CJK}]|[^\W\d_{CJK}]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|ies|es|s|ly|e|y)\Z")

_TOKEN = re.compile(r"[^\W_](?:[^\s|,;:()\[\]\"“”`']*[^\W_])?")
_NUMERAL = re.compile(r"[\d.,'’]+")
_NAME = re.compile(r"[^\W\d_a-zçğışöü]|.*[-_./=\d]")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP = _set(
    """
    a an the and or but nor if of in on at to from by for with about as into than then so that this these those there
    it its he him his she her they them their we our us you your i me my is are was were be been being am do does did
    have has had will would can could should may might must shall which who whom whose what when where why how all any
    both each every more most other some such only own same too very just also s t not no never none cannot without
    except unless one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty
    sixty seventy eighty ninety hundred thousand million billion first second third many much
    january february march april june july august september october november december
    bir bu şu o ve veya ya da de ile için gibi kadar ki mi mı mu mü ne her çok daha en ise olarak olan olur var ama
    değil yok hiç asla hariç iki üç dört beş altı yedi sekiz dokuz on yirmi otuz kırk elli yüz bin kaç hangi nasıl
    """
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two texts that seem to disagree."""

    first: int
    """Place of the one in the list, from 0; it stands before the other."""
    second: int
    score: float
    """How alike the two sentences are and how near to the question, 0 to 1."""
    detail: str
    """What each says: "21 days against 14 days"."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    place: int
    """Which text it stands in."""
    written: str
    stems: frozenset[str]


def disagreements(texts: Sequence[str], documents: Sequence[Hashable], question: str) -> list[Disagreement]:
    """Find pairs of texts that seem to disagree, the likeliest first, at most one finding for two texts.

    Args:
        texts: Any texts. Of a very long one the beginning counts.
        documents: For each text the document and version that it is from: texts of one version are not compared.
        question: Sentences that share words with it count more.

    Example:
        >>> texts = ["Printed books can be returned within 21 days.", "Books can be returned within 14 days."]
        >>> disagreements(texts, ["new", "old"], "How many days?")[0].detail
        '21 days against 14 days'
    """
    asked = _stems(question)
    sentences = [sentence for place, text in enumerate(texts) for sentence in _sentences(place, text)]
    signatures: dict[str, Signature] = {}
    best: dict[tuple[int, int], Disagreement] = {}
    for one, other, alike in _alike(sentences, documents, asked):
        places = one.place, other.place
        score = round(alike * (1 + _share(one.stems & other.stems, asked)) / 2, 4)
        if places in best and best[places].score >= score:
            continue
        for sentence in (one, other):
            if sentence.written not in signatures:
                signatures[sentence.written] = signature(sentence.written)
        detail = _detail(signatures[one.written], signatures[other.written])
        if not detail and alike >= NAMES_ALIKE:
            detail = _names(one.written, other.written)
        if detail:
            best[places] = Disagreement(*places, score, detail)
    return sorted(best.values(), key=lambda found: -found.score)


def _share(common: frozenset[str], asked: frozenset[str]) -> float:
    return len(common & asked) / len(asked) if asked else 0.0


def _alike(
    sentences: Sequence[_Sentence], documents: Sequence[Hashable], asked: frozenset[str]
) -> Iterator[tuple[_Sentence, _Sentence, float]]:
    """Yield pairs of sentences of different documents that share enough words, each the other's nearest.

    A sentence that both texts have has found its match, so the next row of a table does not contradict it.
    """
    in_both = {(sentence.place, sentence.written) for sentence in sentences}
    weights = [_weight(sentence.stems, asked) for sentence in sentences]
    found: list[tuple[int, int, float]] = []
    nearest = defaultdict[tuple[int, int], float](float)
    for at, later in sorted(_candidates(sentences, documents)):
        one, other = sentences[at], sentences[later]
        if weights[at] < ALIKE * weights[later] or weights[later] < ALIKE * weights[at]:
            continue
        if (other.place, one.written) in in_both or (one.place, other.written) in in_both:
            continue
        common = _weight(one.stems & other.stems, asked)
        alike = common / (weights[at] + weights[later] - common)
        if alike >= ALIKE:
            found.append((at, later, alike))
            for key in ((at, other.place), (later, one.place)):
                nearest[key] = max(nearest[key], alike)
    for at, later, alike in found:
        one, other = sentences[at], sentences[later]
        if alike >= nearest[at, other.place] and alike >= nearest[later, one.place]:
            yield one, other, alike


def _weight(stems: frozenset[str], asked: frozenset[str]) -> int:
    return len(stems) + len(stems & asked)


def _candidates(sentences: Sequence[_Sentence], documents: Sequence[Hashable]) -> set[tuple[int, int]]:
    """Collect pairs that share a word, by the rarest words first, up to a bound."""
    holders = defaultdict[str, list[int]](list)
    for at, sentence in enumerate(sentences):
        for stem in sentence.stems:
            holders[stem].append(at)
    pairs, looks = set[tuple[int, int]](), 0
    for _, places in sorted(holders.items(), key=lambda item: (len(item[1]), item[0])):
        looks += len(places) ** 2
        if looks > _MOST_PAIRS * 10 or len(pairs) > _MOST_PAIRS:
            break
        for number, at in enumerate(places):
            document = documents[sentences[at].place]
            pairs.update((at, later) for later in places[number + 1 :] if documents[sentences[later].place] != document)
    return pairs


def _detail(one: Signature, other: Signature) -> str:
    for found in differences(one, other):
        if found.one and found.other:
            return f"{found.one} against {found.other}"[:_DETAIL]
        if found.what == "negation":
            return f"{found.one or 'no negation'} against {found.other or 'no negation'}"[:_DETAIL]
    return ""


def _names(one: str, other: str) -> str:
    """Say which names or code words the one has in place of the other's, where little else differs."""
    mine, theirs = (dict.fromkeys(_TOKEN.findall(written)) for written in (one, other))
    # Numerals have been compared as numbers: 1200,50 and 1200.50 are one.
    left = [word for word in mine if word not in theirs and not _NUMERAL.fullmatch(word)]
    right = [word for word in theirs if word not in mine and not _NUMERAL.fullmatch(word)]
    if not all(0 < len(words) <= _MOST_NAMES and any(map(_NAME.match, words)) for words in (left, right)):
        return ""
    if all(_is_number(" ".join(words)) for words in (left, right)):
        # "21" and "twenty-one": numbers have been compared already.
        return ""
    return f"{' '.join(left)} against {' '.join(right)}"[:_DETAIL]


def _is_number(written: str) -> bool:
    return [mark.written for mark in signature(written).numbers] == [written]


def _sentences(place: int, text: str) -> Iterator[_Sentence]:
    count, above = 0, frozenset[str]()
    for block in _blocks(text[:_MOST_TEXT]):
        if _HEADING.match(block):
            above = _stems(block)
            continue
        for written in _SENTENCE_END.split(block):
            stems = _stems(written)
            if len(stems) < _FEW:
                # "default: 10" says something only below its heading.
                stems |= above
            if _FEWEST <= len(stems) <= _LONGEST:
                count += 1
                yield _Sentence(place, written.strip(), stems)
            if count == _MOST_SENTENCES:
                return


def _blocks(text: str) -> Iterator[str]:
    """Yield paragraphs on one line each, and headings, list items, table rows and lines of code."""
    held: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        fence, heading, begins = _FENCE.match(line), _HEADING.match(line), _BLOCK.match(line)
        if held and (fenced or fence or heading or begins or not line.strip()):
            yield " ".join(held)
            held = []
        if fence:
            fenced = not fenced
        elif heading and not fenced:
            yield line
        elif line.strip():
            held.append(_MARK.sub("", line, count=1).strip() if begins else line.strip())


def _stems(text: str) -> frozenset[str]:
    words = set(_WORD.findall(lower(text)))
    return frozenset(_ENDING.sub("", word)[:_STEM] for word in words if word not in _STOP and len(word) < _LONGEST)
