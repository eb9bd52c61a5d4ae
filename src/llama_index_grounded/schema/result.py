"""Sources, citations, refusals, and the result that holds them all."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from llama_index_grounded.schema.checks import AnswerClaim, CheckResult, Conflict
from llama_index_grounded.schema.names import RefusalReason, Verdict
from llama_index_grounded.schema.record import Decision, Record
from llama_index_grounded.schema.usage import Usage

__all__ = ["Citation", "GroundedResult", "Refusal", "SourceRef"]

_KEY_SHAPE = re.compile(r"[Ss][0-9]{1,6}")


class _Named(Record):
    """What names one source to people and programs."""

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


class SourceRef(_Named):
    """One source as it stood in the prompt."""

    tokens: int | None = None
    """Size of the rendered block, tags and attributes included."""
    cited: bool = False
    synthetic: bool = False
    """True for text that an engine wrote (a sub-answer), which is no document."""
    also_in: tuple[str, ...] = ()
    """Ids of documents that hold the same or nearly the same text and were left out for it."""


class Citation(_Named):
    """A source that the answer cites. It proves that the source was shown, not that it says so."""

    quote: str | None = None
    start: int | None = None
    """First character of the quote in the included text."""
    end: int | None = None
    """One past the last character of the quote in the included text."""

    @classmethod
    def of(cls, source: SourceRef) -> Citation:
        """Cite a whole source."""
        return cls(**{name: getattr(source, name) for name in _Named.model_fields})


class Refusal(Record):
    """Why there is no answer. ``str()`` is the reason and, where there is one, the detail.

    Example:
        >>> print(Refusal(reason=RefusalReason.no_evidence, detail="no source was left to answer from"))
        no_evidence: no source was left to answer from
    """

    reason: RefusalReason
    detail: str = ""
    """One sentence that is safe to show: no document text, no provider text."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


class GroundedResult(Record):
    """Everything about one answer or refusal; round-trips through JSON."""

    answerable: bool
    """True exactly where ``refusal`` is None."""
    verdict: Verdict | None = None
    """The model's verdict; None where no valid answer came from a model."""
    answer: str
    """The text that is shown: the cleaned answer, or the refusal text."""
    citations: tuple[Citation, ...] = ()
    claims: tuple[AnswerClaim, ...] = ()
    """The answer in claims with their own sources, where the answer model asks for them."""
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
