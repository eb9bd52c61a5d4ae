"""Decide what of a reply may be shown: pure functions, no I/O.

A key that names no source never becomes a citation. Citations follow the ``sources`` field; valid keys that stand only
in the text are appended, but they do not rescue an answer whose ``sources`` are empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import AnswerClaim, RefusalReason, Verdict
from llama_index_grounded.synthesis.answer import AnswerModel, ClaimedAnswer, GroundedAnswer
from llama_index_grounded.synthesis.blank import has_words
from llama_index_grounded.synthesis.claims import join_claims
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.keys import resolve_ids
from llama_index_grounded.synthesis.unescaping import Escapes

__all__ = ["InvalidIdPolicy", "Judgement", "judge", "too_long"]

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
    claims: tuple[AnswerClaim, ...] = ()
    """The claims that stand, for an answer that came in claims."""
    left_out: int = 0
    """Claims that name no source that was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What an answer says, whatever its shape."""

    text: str
    blank: bool
    valid: Sequence[str]
    """Keys without which it does not stand."""
    cited: Iterable[str]
    invalid: Iterable[str]
    claims: Sequence[AnswerClaim] = ()
    left_out: int = 0


def judge(
    answer: AnswerModel,
    keys: Sequence[str],
    *,
    on_invalid_ids: InvalidIdPolicy = "drop",
    inline_citations: bool = True,
    max_answer_chars: int = 16_000,
    escapes: Escapes = "xml",
) -> Judgement:
    """Judge one parsed reply against the keys that were in the prompt, which was escaped in one of our ways."""
    said = _said(answer, keys, inline_citations=inline_citations, escapes=escapes)
    invalid = tuple(dict.fromkeys(said.invalid))
    refusal: RefusalReason | None = None
    detail = ""
    if not answer.answerable:
        refusal, detail = RefusalReason.not_in_sources, "the model finds no answer in the sources"
    elif said.blank:
        refusal, detail = RefusalReason.invalid_output, "the answer is blank"
    elif invalid and on_invalid_ids != "drop":
        refusal, detail = RefusalReason.invalid_citation, "the answer cites a source that does not exist"
    elif not said.valid:
        refusal, detail = RefusalReason.no_valid_citation, "the answer names no source that was shown"
    elif len(said.text) > max_answer_chars:
        refusal = RefusalReason.answer_too_long
        detail = too_long(max_answer_chars)
    again = refusal is RefusalReason.invalid_output or (
        refusal is RefusalReason.invalid_citation and on_invalid_ids == "retry"
    )
    return Judgement(
        verdict=answer.verdict,
        text=said.text,
        cited=tuple(dict.fromkeys(said.cited)),
        invalid=invalid,
        refusal=refusal,
        detail=detail,
        ask_again=again,
        claims=tuple(said.claims),
        left_out=said.left_out,
    )


def _said(answer: AnswerModel, keys: Sequence[str], *, inline_citations: bool, escapes: Escapes) -> _Said:
    # A class of the user's own may leave out what ours may not.
    valid, unknown = resolve_ids(answer.sources or (), keys)
    if isinstance(answer, ClaimedAnswer):
        text, found = join_claims(answer.claims or (), keys, inline_citations=inline_citations, escapes=escapes)
        own = [key for claim in found.kept for key in claim.keys]
        return _Said(
            text=text,
            blank=not found.kept and not found.without_source,
            valid=own,
            cited=[*valid, *own],
            invalid=[*unknown, *found.unknown],
            claims=found.kept,
            left_out=found.without_source,
        )
    # First of all, since an invisible character would hide a marker or a tag from the cleaner.
    written = clean(answer.answer or "") if isinstance(answer, GroundedAnswer) else ""
    cleaned = clean_answer(written, keys, inline_citations=inline_citations, escapes=escapes)
    text = cleaned.text.strip()
    return _Said(
        text=text,
        blank=_is_blank(written, text, keys, escapes),
        valid=valid,
        cited=[*valid, *cleaned.keys],
        invalid=[*unknown, *cleaned.unknown],
    )


def _is_blank(written: str, text: str, keys: Sequence[str], escapes: Escapes) -> bool:
    """Tell an answer of nothing but markers, keys, markup and white space."""
    first = text.split(maxsplit=1)[:1]
    if first and first[0].isalnum() and has_words(first[0], keys):  # no marker is in it
        return False
    return not has_words(clean_answer(written, keys, inline_citations=False, escapes=escapes).text, keys)


def too_long(most: int) -> str:
    """Say that an answer is too long."""
    return f"the answer has more than {most} characters"
