"""Decide what of a reply may be shown: pure functions, no I/O.

A key that names no source never becomes a citation. Citations follow the ``sources`` field; valid keys that stand only
in the text are appended, but they do not rescue an answer whose ``sources`` are empty.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import RefusalReason, Verdict
from llama_index_grounded.synthesis.answer import GroundedAnswer
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.keys import resolve_ids

__all__ = ["InvalidIdPolicy", "Judgement", "has_words", "judge", "too_long"]

InvalidIdPolicy = Literal["drop", "refuse", "retry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What became of one reply."""

    verdict: Verdict
    text: str
    """The cleaned answer."""
    cited: tuple[str, ...]
    """Valid keys, in citation order."""
    invalid: tuple[str, ...]
    """Ids that name no source, as the model wrote them."""
    refusal: RefusalReason | None = None
    detail: str = ""
    """Why it is refused; holds nothing that the model wrote."""
    ask_again: bool = False
    """True where another reply could mend it."""


def judge(
    answer: GroundedAnswer,
    keys: Sequence[str],
    *,
    on_invalid_ids: InvalidIdPolicy = "drop",
    inline_citations: bool = True,
    max_answer_chars: int = 16_000,
) -> Judgement:
    """Judge one parsed reply against the keys that were in the prompt."""
    valid, unknown = resolve_ids(answer.sources, keys)
    # First of all, since an invisible character would hide a marker or a tag from the cleaner.
    written = clean(answer.answer)
    cleaned = clean_answer(written, keys, inline_citations=inline_citations)
    text = cleaned.text.strip()
    cited = tuple(dict.fromkeys([*valid, *cleaned.keys]))
    invalid = tuple(dict.fromkeys([*unknown, *cleaned.unknown]))

    refusal: RefusalReason | None = None
    detail = ""
    if not answer.answerable:
        refusal, detail = RefusalReason.not_in_sources, "the model finds no answer in the sources"
    elif _is_blank(written, text, keys):
        refusal, detail = RefusalReason.invalid_output, "the answer is blank"
    elif invalid and on_invalid_ids != "drop":
        refusal, detail = RefusalReason.invalid_citation, "the answer cites a source that does not exist"
    elif not valid:
        refusal, detail = RefusalReason.no_valid_citation, "the answer names no source that was shown"
    elif len(text) > max_answer_chars:
        refusal = RefusalReason.answer_too_long
        detail = too_long(max_answer_chars)
    again = refusal is RefusalReason.invalid_output or (
        refusal is RefusalReason.invalid_citation and on_invalid_ids == "retry"
    )
    return Judgement(
        verdict=answer.verdict,
        text=text,
        cited=cited,
        invalid=invalid,
        refusal=refusal,
        detail=detail,
        ask_again=again,
    )


def has_words(text: str) -> bool:
    """Tell whether a text holds anything besides punctuation and white space."""
    return any(unicodedata.category(ch)[0] not in "PZC" for ch in text)


def _is_blank(written: str, text: str, keys: Sequence[str]) -> bool:
    """Tell an answer of nothing but markers, punctuation and white space."""
    return not has_words(text[:1]) and not has_words(clean_answer(written, keys, inline_citations=False).text)


def too_long(most: int) -> str:
    """Say that an answer is too long."""
    return f"the answer has more than {most} characters"
