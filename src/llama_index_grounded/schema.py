"""The records that pass between the stages: frozen, keyword-only, JSON-ready.

Scores keep the scale of whoever made them; counts are tokens; times are milliseconds; offsets are characters of the
included text. A decision holds ids and numbers, never document text.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from enum import Enum
from numbers import Real
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = [
    "Action",
    "CheckResult",
    "Citation",
    "Conflict",
    "Decision",
    "GroundedResult",
    "Refusal",
    "RefusalReason",
    "ResultEvent",
    "SourceRef",
    "SourcesEvent",
    "Span",
    "StreamEvent",
    "TextEvent",
    "Usage",
    "Verdict",
]

_KEY_SHAPE = re.compile(r"[Ss][0-9]{1,6}")


class _Name(str, Enum):
    """An enumeration that reads, prints and compares as its value."""

    def __str__(self) -> str:
        return str(self.value)


class Verdict(_Name):
    """What the model says about the question, given the sources; a cited ``no`` is an answer."""

    answered = "answered"
    yes = "yes"
    no = "no"
    conflicting = "conflicting"
    not_in_sources = "not_in_sources"


class RefusalReason(_Name):
    """Why there is no answer."""

    no_evidence = "no_evidence"
    low_score = "low_score"
    insufficient_evidence = "insufficient_evidence"
    not_in_sources = "not_in_sources"
    no_valid_citation = "no_valid_citation"
    invalid_citation = "invalid_citation"
    invalid_output = "invalid_output"
    failed_check = "failed_check"
    answer_too_long = "answer_too_long"
    prompt_too_long = "prompt_too_long"
    prompt_truncated = "prompt_truncated"
    provider_error = "provider_error"
    deadline_exceeded = "deadline_exceeded"
    stream_closed = "stream_closed"


Action = Literal["kept", "shortened", "dropped", "restored", "moved", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one stage did with one node, and why. Ids and numbers only."""

    stage: str
    """Class name of the stage, or ``CitingSynthesizer``."""
    action: Action
    node_id: str
    document_id: str
    reason: str
    """A short fixed word, for example ``low_score``, ``duplicate`` or ``over_budget``."""
    value: float | None = None
    """The measured number: a score, a count of tokens or of characters, a position."""
    limit: float | None = None
    """What the value was compared with, in the same unit."""
    twin: str | None = None
    """Node id of the node in whose favour this one was dropped or shortened."""


def _storable(value: Any) -> Any:
    """Replace what JSON can not hold: halves of surrogate pairs, and numbers that are none."""
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Decision):
        fields = ("node_id", "document_id", "twin", "value", "limit")
        return replace(value, **{name: _storable(getattr(value, name)) for name in fields})
    if isinstance(value, (tuple, list)):
        return tuple(map(_storable, value))
    if isinstance(value, Real) and not isinstance(value, int):
        return float(value) if math.isfinite(value) else None
    return value


class Record(BaseModel):
    """Base of the frozen records."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _round_trips(cls, data: Any) -> Any:
        """Models and PDF readers write halves of surrogate pairs, and retrievers scores that are no numbers."""
        return {name: _storable(value) for name, value in data.items()} if isinstance(data, dict) else data


class SourceRef(Record):
    """One source as it stood in the prompt."""

    key: str
    """S1, S2, … in prompt order; the only name that the model knows."""
    node_id: str
    document_id: str
    chunk_id: str
    revision: str | None = None
    version: str | None = None
    section: str | None = None
    title: str | None = None
    page: str | None = None
    url: str | None = None
    """From metadata or ``url_for``, never from the model; http, https, mailto or relative."""
    score: float | None = None
    """As the retriever or reranker gave it; None where it is missing or not a number."""
    tokens: int | None = None
    """Size of the rendered block, tags and attributes included."""
    cited: bool = False
    synthetic: bool = False
    """True for text that an engine wrote (a sub-answer), which is no document."""
    also_in: tuple[str, ...] = ()
    """Ids of documents that hold the same or nearly the same text and were left out for it."""


class Citation(Record):
    """A source that the answer cites. It proves that the source was shown, not that it says so."""

    key: str
    node_id: str
    document_id: str
    chunk_id: str
    revision: str | None = None
    version: str | None = None
    section: str | None = None
    title: str | None = None
    page: str | None = None
    url: str | None = None
    score: float | None = None
    quote: str | None = None
    start: int | None = None
    """First character of the quote in the included text."""
    end: int | None = None
    """One past the last character of the quote in the included text."""

    @classmethod
    def of(cls, source: SourceRef) -> Citation:
        """Cite a whole source."""
        shared = cls.model_fields.keys() & SourceRef.model_fields.keys()
        return cls(**{name: getattr(source, name) for name in shared})


class Refusal(Record):
    """Why there is no answer."""

    reason: RefusalReason
    detail: str = ""
    """One sentence that is safe to show: no document text, no provider text."""


class Usage(Record):
    """Tokens, summed over all calls of one query; None where a provider did not report, 0 where no call was made."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    estimated_prompt_tokens: int = 0
    """Our own count of what was sent."""


class Span(Record):
    """A part of the answer."""

    start: int
    """First character in the answer."""
    end: int
    """One past the last character in the answer."""


class CheckResult(Record):
    """What one answer check found. A check that could not run is ``skipped``, never ``passed``."""

    name: str
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""
    spans: tuple[Span, ...] = ()


class Conflict(Record):
    """Sources that disagree about something that the question asks."""

    keys: tuple[str, ...]
    detail: str = ""
    confirmed: bool = False
    """False: only a cheap filter says so."""


class GroundedResult(Record):
    """Everything about one answer or refusal; round-trips through JSON."""

    answerable: bool
    """True exactly where ``refusal`` is None."""
    verdict: Verdict | None = None
    """The model's verdict; None where no valid answer came from a model."""
    answer: str
    """The text that is shown: the cleaned answer, or the refusal text."""
    citations: tuple[Citation, ...] = ()
    sources: tuple[SourceRef, ...] = ()
    """Everything that stood in the prompt, in prompt order."""
    invalid_source_ids: tuple[str, ...] = ()
    """Ids that the model wrote and that name no source, as it wrote them."""
    refusal: Refusal | None = None
    checks: tuple[CheckResult, ...] = ()
    decisions: tuple[Decision, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[str, ...] = ()
    top_score: float | None = None
    """The gate's best signal, else the best score of the packed nodes."""
    usage: Usage = Usage()
    elapsed_ms: float = 0.0
    """From the start of synthesis to its end, retrieval excluded."""
    llm_calls: int = 0
    raw_output: str | None = None
    """The model's last reply as it came; None where no model was called."""
    fingerprint: str = ""
    """Hash of the options that shaped this answer: equal fingerprints, equal configuration."""

    def audit(self) -> dict[str, Any]:
        """Return the log record: ids, order, counts and decisions, JSON-ready, without document or answer text.

        Titles, sections and URLs are left out, and so is what a model wrote in place of a source id, since
        both can carry text of a document.
        """
        shown = {"key", "node_id", "document_id", "chunk_id", "revision", "version", "score", "tokens", "cited"}
        ids = [name if _KEY_SHAPE.fullmatch(name) else "(no key)" for name in self.invalid_source_ids]
        return {
            "fingerprint": self.fingerprint,
            "answerable": self.answerable,
            "verdict": str(self.verdict) if self.verdict else None,
            "refusal": str(self.refusal.reason) if self.refusal else None,
            "sources": [source.model_dump(mode="json", include=shown) for source in self.sources],
            "cited": [citation.key for citation in self.citations],
            "invalid_source_ids": ids,
            "checks": [{"name": check.name, "status": check.status} for check in self.checks],
            "decisions": [asdict(decision) for decision in self.decisions],
            "warnings": list(self.warnings),
            "top_score": self.top_score,
            "usage": self.usage.model_dump(),
            "elapsed_ms": self.elapsed_ms,
            "llm_calls": self.llm_calls,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesEvent:
    """The sources of an answer, before the model is called."""

    sources: tuple[SourceRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvent:
    """The next part of the answer or of the refusal text. All parts together are `GroundedResult.answer`."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEvent:
    """The end: everything about the answer."""

    grounded: GroundedResult


StreamEvent = SourcesEvent | TextEvent | ResultEvent
