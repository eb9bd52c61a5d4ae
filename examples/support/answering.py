"""Choose the sentences that answer a question, and the verdict that they allow."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from llama_index_grounded import Verdict

from .sentences import Question, Sentence, contradicts, covers, fit, split
from .words import is_negative, plain_letters, words

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPPORT = 0.5
"""Share of a question that its best sentence must cover; below it the sources count as silent."""
MORE_HERE, MORE_ELSEWHERE = 0.5, 0.9
"""Share of the best sentence's fit from which another joins it, from its source or from a different one."""
SENTENCES = 3

_POLAR = re.compile(
    r"^\W*(?:am|are|can|could|did|do|does|has|have|is|may|must|shall|should|was|were|will|would)\b"
    r"|\bm[iu](?:s[iu]n|y[iu]m|y[iu]z|d[iu]r|s[iu]n[iu]z|y?d[iu])?\W*$"
)
_CLAUSE = re.compile(r"[,;:]\s|\s(?:but|ama|ancak|fakat)\s")
_CONDITIONS = frozenset(
    {"after", "before", "except", "if", "once", "only", "unless", "until", "when", "without"}
    | {"ancak", "halinde", "kadar", "once", "sadece", "sonra", "yalniz", "yalnizca"}
)
_SILENT = ("The sources do not answer this question.", "Kaynaklar bu soruyu yanıtlamıyor.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedAnswer:
    """An answer made of sentences of the sources."""

    verdict: Verdict
    keys: tuple[str, ...]
    """Keys of the sources, in the order in which the text uses them."""
    text: str


def extract(text: str, sources: Sequence[tuple[str, str]]) -> ExtractedAnswer:
    """Answer a question by the sentences that fit it best.

    Args:
        text: The question.
        sources: Pairs of a key and a source's text, best first.

    Returns:
        The sentences, each with its key, or ``not_in_sources`` where none covers enough of the question.
    """
    question = Question.parse(text)
    sentences = [sentence for key, body in sources for sentence in split(key, body)]
    fits = fit(question, sentences)
    best = max(range(len(fits)), key=lambda place: fits[place], default=None)
    if best is None or fits[best] < SUPPORT:
        return ExtractedAnswer(verdict=Verdict.not_in_sources, keys=(), text=_SILENT[question.turkish])
    chosen = _with_companions(question, sentences, fits, best)
    return ExtractedAnswer(
        verdict=_verdict(question, sentences[best]),
        keys=tuple(dict.fromkeys(sentence.key for sentence in chosen)),
        text=" ".join(f"{sentence.text} [{sentence.key}]" for sentence in chosen),
    )


def _with_companions(
    question: Question, sentences: Sequence[Sentence], fits: Sequence[float], best: int
) -> list[Sentence]:
    """Return the best sentence and those that say more about the same, its own source first."""
    chosen = [best]
    for place in sorted(range(len(sentences)), key=lambda place: -fits[place]):
        here = sentences[place].key == sentences[best].key
        enough = fits[best] * (MORE_HERE if here else MORE_ELSEWHERE)
        told = any(sentences[place].text == sentences[other].text for other in chosen)
        other_tier = contradicts(question, sentences[place])
        if len(chosen) < SENTENCES and fits[place] >= enough and not told and not other_tier:
            chosen.append(place)
    chosen.sort(key=lambda place: (sentences[place].key != sentences[best].key, place))
    return [sentences[place] for place in chosen]


def _verdict(question: Question, sentence: Sentence) -> Verdict:
    """Say yes or no only where the question is polar and a clause plainly affirms or denies it."""
    turkish = question.turkish
    polar = _POLAR.search(plain_letters(question.text)) and not is_negative(question.text, turkish=turkish)
    if not polar or any(word in _CONDITIONS for word in words(sentence.text)):
        return Verdict.answered
    clauses = [replace(sentence, text=clause) for clause in _CLAUSE.split(sentence.text)]
    denied = [clause for clause in clauses if is_negative(clause.text, turkish=turkish)]
    if any(covers(question, clause) for clause in clauses if clause not in denied):
        return Verdict.yes
    return Verdict.no if denied else Verdict.answered
