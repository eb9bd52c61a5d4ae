"""What answer checks and the search for conflicts find."""

from __future__ import annotations

from typing import Literal

from llama_index_grounded.schema.record import Record
from llama_index_grounded.schema.usage import Usage

__all__ = ["AnswerClaim", "CheckResult", "ClaimVerdict", "Conflict", "QuoteMatch", "Span"]


class Span(Record):
    """A part of the answer."""

    start: int
    """First character in the answer."""
    end: int
    """One past the last character in the answer."""


class AnswerClaim(Record):
    """One claim of an answer that came in claims."""

    text: str
    start: int
    """First character of the claim in the answer."""
    end: int
    """One past its last character."""
    keys: tuple[str, ...]
    """The sources that the model names for it; all of them were shown."""
    quote: str = ""
    """The passage that the model quotes for it, as it wrote it; empty for none."""


class QuoteMatch(Record):
    """Where a quote of the answer stands."""

    quote: str
    """As the model wrote it."""
    keys: tuple[str, ...]
    """The sources that the model named for it."""
    key: str | None = None
    """The source in which it stands; None where it stands in none."""
    start: int | None = None
    """First character of the passage in the included text of the source."""
    end: int | None = None
    """One past its last character."""
    text: str | None = None
    """The passage as it stands in the source."""
    moved: bool = False
    """True where the passage stands in another source than the model said."""
    claim: int | None = None
    """Place of its claim among the claims of the answer that was checked, from 0; None for one of the whole answer."""


class ClaimVerdict(Record):
    """What a judge says of one claim of the answer."""

    start: int
    """First character of the claim in the answer."""
    end: int
    """One past its last character."""
    label: Literal["supported", "contradicted", "not_found"]
    reason: str = ""
    """In the judge's words."""
    keys: tuple[str, ...] = ()
    """The sources that it was compared with."""


class CheckResult(Record):
    """What one answer check found. A check that could not run is ``skipped``, never ``passed``."""

    name: str
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""
    """What failed or why it was skipped, for the developer; it may hold words of the answer."""
    spans: tuple[Span, ...] = ()
    """The parts of the answer that failed."""
    quotes: tuple[QuoteMatch, ...] = ()
    """Where each quote stands, for a check that looks for them."""
    claims: tuple[ClaimVerdict, ...] = ()
    """What a judge says of each claim, for a check that asks one."""
    score: float | None = None
    """How well the answer is supported, 0 to 1, for a check that measures it; higher is better.

    A score outside of that is left out when the check has run.
    """
    llm_calls: int = 0
    usage: Usage = Usage()
    """What the check itself asked of a model; part of the sums of the query."""


class Conflict(Record):
    """Sources that disagree about something that the question asks."""

    keys: tuple[str, ...]
    detail: str = ""
    confirmed: bool = False
    """False: only a cheap filter says so."""
