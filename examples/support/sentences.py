"""Sentences of the sources, and how well each one fits a question.

A sentence fits as far as the words of the question stand in it. Rare words weigh more, numbers match by
range, and a question for a duration or a price also wants a number of that kind. Nothing here understands a
sentence.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .number_ranges import Kind, NumberRange, number_ranges
from .words import content_stems, is_turkish, plain_letters, related

if TYPE_CHECKING:
    from collections.abc import Sequence

CONTEXT_WEIGHT = 0.6
"""What a word is worth that stands only in the heading or the lead-in of a sentence."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-zçğıöşü]|[\"“'0-9])")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_FOCUS = re.compile(r"\b(?:which|what|hangi)\s+(\w+)")
_WANTED: tuple[tuple[re.Pattern[str], frozenset[Kind]], ...] = (
    (
        re.compile(r"\bhow long\b|\bhow many (?:\w+ )?(?:day|week|month|year)s?\b"),
        frozenset({"time"}),
    ),
    (re.compile(r"\bkac (?:is )?(?:gun|hafta|ay|yil)|\bsure"), frozenset({"time"})),
    (
        re.compile(r"\bhow much\b|\bwhat .*(?:price|cost|discount)\b|\bkac (?:tl|lira)"),
        frozenset({"money", "percent"}),
    ),
    (re.compile(r"\bhow many\b|\bkac\b|\bne kadar\b"), frozenset({"time", "money", "percent", "count"})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence or list item of a source."""

    key: str
    """Key of the source: S1, S2, …"""
    text: str
    context: str
    """The heading and the lead-in above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a question asks for."""

    text: str
    turkish: bool
    stems: tuple[str, ...]
    focus: str | None
    """The stem that a "which …" asks for; it weighs double."""
    numbers: tuple[NumberRange, ...]
    wanted: frozenset[Kind]
    """Kinds of number of which an answer should hold one; empty where none is asked for."""

    @classmethod
    def parse(cls, text: str) -> Question:
        """Read a question, English or Turkish."""
        turkish = is_turkish(text)
        plain = plain_letters(text)
        focus = _FOCUS.search(plain)
        asked = content_stems(focus[1], turkish=turkish) if focus else []
        return cls(
            text=text,
            turkish=turkish,
            stems=tuple(content_stems(text, turkish=turkish)),
            focus=asked[0] if asked else None,
            numbers=tuple(number_ranges(text)),
            wanted=next((kinds for pattern, kinds in _WANTED if pattern.search(plain)), frozenset[Kind]()),
        )


def split(key: str, text: str) -> list[Sentence]:
    """Cut a source into sentences; a heading and the line that leads into a list become context."""
    found: list[Sentence] = []
    heading = lead_in = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading, lead_in = line.lstrip("# "), ""
        elif line.strip():
            bullet = bool(_BULLET.match(line))
            lead_in = lead_in if bullet else ""
            parts = _SENTENCE_END.split(_BULLET.sub("", line).strip())
            found += [Sentence(key=key, text=part, context=f"{heading} {lead_in}".strip()) for part in parts]
            lead_in = parts[-1] if parts[-1].endswith(":") else lead_in
    return [sentence for sentence in found if not sentence.text.endswith(":")]


def fit(question: Question, sentences: Sequence[Sentence]) -> list[float]:
    """Rate sentences by the part of the question that each one covers.

    Args:
        question: A parsed question.
        sentences: All sentences of the prompt; a word is rare when few of them hold it.

    Returns:
        One number from 0 to 1 for each sentence, in order.
    """
    rows = [_held(question, sentence) for sentence in sentences]
    terms = len(rows[0]) if rows else 0
    counts = [sum(row[term] for row in rows) for term in range(terms)]
    weights = [math.log1p(len(rows) / max(count, 1.0)) for count in counts]
    if question.focus in question.stems:
        weights[question.stems.index(question.focus)] *= 2
    whole = sum(weights) or 1.0
    return [sum(w * h for w, h in zip(weights, row, strict=True)) / whole for row in rows]


def covers(question: Question, sentence: Sentence) -> bool:
    """Say whether a sentence, read with what stands above it, holds every term of a question."""
    return all(share > 0 for share in _held(question, sentence))


def _held(question: Question, sentence: Sentence) -> list[float]:
    """Say for each term of the question how far a sentence holds it (0 to 1)."""
    own = content_stems(sentence.text, turkish=question.turkish)
    above = content_stems(sentence.context, turkish=question.turkish)
    numbers = number_ranges(sentence.text)
    row = [_word(stem, own, above, turkish=question.turkish) for stem in question.stems]
    row += [float(any(number.holds(asked) for number in numbers)) for asked in question.numbers]
    if question.wanted:
        row.append(float(any(number.kind in question.wanted for number in numbers)))
    return row


def _word(stem: str, own: Sequence[str], above: Sequence[str], *, turkish: bool) -> float:
    if any(related(stem, other, turkish=turkish) for other in own):
        return 1.0
    return CONTEXT_WEIGHT if any(related(stem, other, turkish=turkish) for other in above) else 0.0


def contradicts(question: Question, sentence: Sentence) -> bool:
    """Say whether a sentence speaks of the asked kind of number but of none that holds it (another tier)."""
    for asked in question.numbers:
        alike = [number for number in number_ranges(sentence.text) if number.kind == asked.kind]
        if alike and not any(number.holds(asked) for number in alike):
            return True
    return False
