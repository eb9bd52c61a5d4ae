"""Measure how much of an answer's wording its cited sources have, without a model.

This measures words, not meaning. Each sentence that claims something gets a value from 0 to 1, the mean of two:

* **Together**: the share of its content words that stand in one place of a source, which is two neighbouring sentences.
  Names count double, and so do numbers, which may stand anywhere in the cited sources (`number_support` says when they
  do). What the question says already counts half, for to repeat it is easy.
* **In pairs**: the share of its neighbouring content words that are neighbours in a source too, in that order and with
  at most one other word in between. A single word has no pair, and its value is the first alone.

A sentence with a number that stands nowhere has half of that.

A word that is negated in the sentence and not in the place that fits best, or the other way round, does not count as
found. The value of an answer is that of its weakest sentence: one invented sentence is enough to fail.

What it can not see: who does what to whom, if the words are the same; a true conclusion in words of its own, which it
takes for invented; a translation. A cautious paraphrase scores low, a twisted copy high. `words` says what compares.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from llama_index_grounded._allowed import need_one_of, need_share
from llama_index_grounded.checks.claim_sources import claim_sources
from llama_index_grounded.checks.number_support import Facts, stands
from llama_index_grounded.checks.sentences import Part, claims_something, sentences, wording
from llama_index_grounded.checks.words import Word, content_words, is_turkish, main_script
from llama_index_grounded.schema import CheckResult, Span
from llama_index_grounded.synthesis.checking import CheckContext, OnFail, ShownSource
from llama_index_grounded.text.quantities import quantities

__all__ = ["DEFAULT_THRESHOLD", "OverlapCheck", "support"]

DEFAULT_THRESHOLD = 0.4
_DOUBLE, _HALF = 2.0, 0.5
_SHOWN = 60
_NAMED = 5
_WORDS_NAMED = 8


def support(answer: str, sources: Sequence[str], question: str = "") -> float:
    """Return how much of the wording of an answer's weakest sentence the sources have.

    Args:
        answer: The answer; inline markers do not matter.
        sources: The texts that should support it, together.
        question: What was asked.

    Returns:
        0 to 1; 1 where the answer claims nothing, or nothing that has a content word or a number.

    Example:
        >>> source = "Members may return a book within 30 days. There is no fee for that."
        >>> support("Members may return a book within 30 days.", [source])
        1.0
        >>> support("Members may return a book within 90 days. There is a fee.", [source])
        0.0
    """
    turkish = is_turkish(answer)
    shelf = [_Source.read(text, turkish=turkish) for text in sources]
    asked = _Asked.read(question, turkish=turkish)
    said = [part for part in sentences(answer) if claims_something(part.text)]
    found = (_judge(part, shelf, asked, turkish=turkish) for part in said)
    return min((judged.value for judged in found if judged is not None), default=1.0)


@dataclass(frozen=True, kw_only=True)
class OverlapCheck:
    """The wording of every sentence that claims something stands, for the most part, in the cited sources.

    A claim with sources of its own is compared with these and with the source in which its quote was found, everything
    else with all cited sources together; a source is its included text and what else the model saw of it (title,
    section, date). The score is that of the weakest sentence, because on long answers with one foreign sentence the
    mean found far fewer of them (AUROC 0.86 against 1.00).

    Skipped, not failed: an answer that cites nothing or claims nothing, and one in another script than all its sources.
    An answer in another language of the same script fails: words are all that is compared.

    Args:
        on_fail: What becomes of an answer that fails: ``"flag"``, ``"refuse"`` or ``"retry"``.
        threshold: The least score that passes, 0 to 1. The default is the greatest multiple of 0.05 at which at most a
            fifth of the supported answers fail, as a mean over four public sets (FaithBench, HaluEval, BEGIN, WiCE;
            ``bench/support.py``). Up to half of the unsupported ones pass too, so take a higher one for answers
            that stay close to their sources, a lower one for free summaries.

    Raises:
        ConfigurationError: When an option has another value.

    Example:
        >>> OverlapCheck(threshold=0.6).name
        'overlap'
    """

    local: ClassVar[bool] = True
    """It asks nobody, so it runs though the time of the query is over."""

    on_fail: OnFail = "flag"
    threshold: float = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        """Refuse what an option can not be."""
        need_one_of("on_fail", self.on_fail, OnFail)
        need_share("threshold", self.threshold)

    @property
    def name(self) -> str:
        """The name in results."""
        return "overlap"

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer; see the class."""
        pieces = list(_pieces(context))
        if not pieces:
            return self._skipped("no sentence of the answer claims something")
        used = dict.fromkeys(key for _, keys in pieces for key in keys)
        if not used:
            return self._skipped("the answer cites no source")
        scripts = {main_script(context.sources[key].text) for key in used}
        script = main_script("".join(wording(part.text) for part, _ in pieces))
        if script and not scripts & {script, ""}:
            return self._skipped("the answer is in another script than its sources")
        judged = _judge_all(pieces, used, context)
        if not judged:
            return self._skipped("no sentence of the answer has a word or number to compare")
        weak = [found for found in judged if found.value < self.threshold]
        score = min(found.value for found in judged)
        return CheckResult(
            name=self.name,
            status="failed" if weak else "passed",
            detail=_listed(weak) if weak else f"sentences compared: {len(judged)}",
            spans=tuple(Span(start=found.part.start, end=found.part.end) for found in weak),
            score=score,
        )

    def _skipped(self, why: str) -> CheckResult:
        return CheckResult(name=self.name, status="skipped", detail=why)


def _pieces(context: CheckContext) -> Iterator[tuple[Part, tuple[str, ...]]]:
    """Yield the sentences of the answer that claim something, cut where claims meet, and the sources of each."""
    at = 0
    bounds = list[tuple[int, int, tuple[str, ...]]]()
    for claim in sorted(context.claims, key=lambda claim: claim.start):
        start = max(at, claim.start)
        bounds += [(at, start, context.cited), (start, claim.end, claim_sources(claim, context) or context.cited)]
        at = max(at, claim.end)
    for start, end, keys in [*bounds, (at, len(context.answer), context.cited)]:
        for part in sentences(context.answer[start:end]):
            if claims_something(part.text):
                yield Part(start + part.start, start + part.end, part.text), keys


def _judge_all(
    pieces: Sequence[tuple[Part, tuple[str, ...]]], keys: Iterable[str], context: CheckContext
) -> list[_Judged]:
    turkish = is_turkish(context.answer)
    asked = _Asked.read(context.question, turkish=turkish)
    shelf = {key: _Source.of(context.sources[key], turkish=turkish) for key in keys}
    found = (_judge(part, [shelf[key] for key in own], asked, turkish=turkish) for part, own in pieces)
    return [judged for judged in found if judged is not None]


def _listed(weak: Sequence[_Judged]) -> str:
    more = f"; and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    return "; ".join(map(_remark, weak[:_NAMED])) + more


def _remark(judged: _Judged) -> str:
    """Say in one line what a sentence lacks."""
    text = " ".join(judged.part.text.split())
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    lacks = [f"missing: {', '.join(judged.missing[:_WORDS_NAMED])}"] if judged.missing else []
    lacks += [f"negated on one side only: {', '.join(judged.turned[:_WORDS_NAMED])}"] if judged.turned else []
    return f'"{shown}" has {judged.value:.2f}, {", ".join(lacks) or "its words stand apart in the sources"}'


_Key = tuple[str, bool]


def _key(word: Word) -> _Key:
    """Return what makes two words the same: the stem, and whether it is negated."""
    return word.stem, word.negated


def _opposite(word: Word) -> _Key:
    return word.stem, not word.negated


@dataclass(frozen=True, slots=True)
class _Source:
    """One source, read once."""

    places: tuple[tuple[Word, ...], ...]
    """The words of every two neighbouring sentences."""
    where: dict[_Key, list[int]]
    """For each word, the places that have it."""
    pairs: frozenset[tuple[str, str]]
    facts: Facts

    @classmethod
    def of(cls, source: ShownSource, *, turkish: bool) -> _Source:
        """Read a source as the model saw it."""
        return cls.read(source.text, *source.shown.values(), turkish=turkish)

    @classmethod
    def read(cls, text: str, *headings: str, turkish: bool) -> _Source:
        """Read a text; what its headings say stands beside each of its sentences."""
        lines = [tuple(content_words(part.text, turkish=turkish)) for part in sentences(text)]
        above = [tuple(content_words(heading, turkish=turkish)) for heading in headings]
        places = tuple(sum(above, first + second) for first, second in pairwise([*lines, (), ()]))
        where = dict[_Key, list[int]]()
        for at, words in enumerate(places):
            for key in {_key(word) for word in words}:
                where.setdefault(key, []).append(at)
        runs = [[word.stem for line in lines for word in line], *([word.stem for word in line] for line in above)]
        pairs = frozenset(pair for run in runs for pair in (*pairwise(run), *zip(run, run[2:], strict=False)))
        return cls(places, where, pairs, Facts.of(text, *headings))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question."""

    stems: frozenset[str]
    facts: Facts

    @classmethod
    def read(cls, question: str, *, turkish: bool) -> _Asked:
        """Read the question."""
        return cls(frozenset(word.stem for word in content_words(question, turkish=turkish)), Facts.of(question))


@dataclass(frozen=True, slots=True)
class _Judged:
    """One sentence and what it lacks."""

    part: Part
    value: float
    missing: tuple[str, ...]
    """Numbers, names and words that stand in none of the sources, in this order."""
    turned: tuple[str, ...]
    """Words that are negated on one side only."""


def _judge(part: Part, shelf: Sequence[_Source], asked: _Asked, *, turkish: bool) -> _Judged | None:
    """Compare one sentence with sources; None if it has nothing to compare."""
    said = wording(part.text)
    words = content_words(said, turkish=turkish)
    numbers = [found for found in quantities(said) if found.certain]
    if not words and not numbers:
        return None
    facts = (*(source.facts for source in shelf), asked.facts)
    absent = [said[number.start : number.end] for number in numbers if not stands(number, facts)]
    weights = [(_DOUBLE if word.name else 1.0) * (_HALF if word.stem in asked.stems else 1.0) for word in words]
    place = _best_place(words, weights, shelf)
    found = [_key(word) in place for word in words]
    together = sum(weight for weight, there in zip(weights, found, strict=True) if there)
    recall = (together + _DOUBLE * (len(numbers) - len(absent))) / (sum(weights) + _DOUBLE * len(numbers))
    turned = [word for word, there in zip(words, found, strict=True) if not there and _opposite(word) in place]
    value = (recall + _in_pairs(words, {word.stem for word in turned}, shelf, recall)) / 2 * (_HALF if absent else 1.0)
    lost = [word for word in words if not any({_key(word), _opposite(word)} & source.where.keys() for source in shelf)]
    by_weight = [word.written for name in (True, False) for word in lost if word.name is name]
    return _Judged(part, value, _once([*absent, *by_weight]), _once(word.written for word in turned))


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _best_place(words: Sequence[Word], weights: Sequence[float], shelf: Sequence[_Source]) -> frozenset[_Key]:
    """Return the words of the place in which the most words stand together."""
    best, place = 0.0, tuple[Word, ...]()
    total = dict[_Key, float]()
    for word, weight in zip(words, weights, strict=True):
        total[_key(word)] = total.get(_key(word), 0.0) + weight
    for source in shelf:
        sums = dict[int, float]()
        for key, weight in total.items():
            for at in source.where.get(key, ()):
                sums[at] = sums.get(at, 0.0) + weight
        at = max(sums, key=lambda at: sums[at], default=-1)
        if at >= 0 and sums[at] > best:
            best, place = sums[at], source.places[at]
    return frozenset(map(_key, place))


def _in_pairs(words: Sequence[Word], turned: Container[str], shelf: Sequence[_Source], otherwise: float) -> float:
    """Return the share of neighbouring words that are neighbours in a source; something else for a single word."""
    pairs = list(pairwise(word.stem for word in words))
    if not pairs:
        return otherwise
    kept = [pair for pair in pairs if not (pair[0] in turned or pair[1] in turned)]
    return sum(any(pair in source.pairs for source in shelf) for pair in kept) / len(pairs)
