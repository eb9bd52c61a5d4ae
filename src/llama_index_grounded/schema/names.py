"""The words in which verdicts and refusals are told."""

from __future__ import annotations

from enum import Enum

__all__ = ["RefusalReason", "Verdict"]


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
