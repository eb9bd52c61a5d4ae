"""What an answer check is given, and what it has to offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from llama_index_grounded.rendering import unescape
from llama_index_grounded.schema import AnswerClaim, CheckResult, QuoteMatch, SourceRef, Verdict

__all__ = ["AnswerCheck", "CheckContext", "OnFail", "ShownSource"]

OnFail = Literal["flag", "refuse", "retry"]
"""What becomes of an answer that fails: it is shown and marked, refused, or asked for again and then refused.

It is asked for again at most as often as the synthesizer's ``max_retries`` says, in all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSource:
    """One source as the model saw it."""

    ref: SourceRef
    text: str
    """The included text; offsets of quotes count its characters."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """What describes the source to the model: title, section, heading, page and date, as far as it has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """Everything that a check may look at."""

    question: str
    answer: str
    """The text that would be shown, inline markers included; offsets of spans count its characters."""
    sources: Mapping[str, ShownSource]
    """All sources of the prompt by key, in prompt order."""
    cited: tuple[str, ...]
    """Keys of the sources that the answer cites, all of them in ``sources``."""
    verdict: Verdict = Verdict.answered
    claims: tuple[AnswerClaim, ...] = ()
    """The claims of a `ClaimedAnswer`; empty for a plain answer."""
    found: tuple[QuoteMatch, ...] = ()
    """Where the checks that ran before found the quotes of the answer."""
    seconds: float | None = None
    """What is left of the query's time; None without a deadline."""
    unescape: Callable[[str], str] = unescape
    """Undoes the escapes of the prompt in what the model copied from it, such as a quote."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    """The fields that a subclass of the answer model adds."""

    @property
    def cited_sources(self) -> tuple[ShownSource, ...]:
        """The sources that the answer cites, in citation order."""
        return tuple(self.sources[key] for key in self.cited)


@runtime_checkable
class AnswerCheck(Protocol):
    """Judges an answer that is otherwise ready to be shown.

    Its result may be a subclass of `CheckResult`; what that adds is left out of the query's. A check that raises is
    reported as ``skipped``; one that takes longer than the query's deadline too, but for the two
    seconds that a check with a true attribute ``local`` has in any case: it asks nobody and is soon done. Where a check
    has a coroutine method ``acheck`` of the same form, async queries await it; without, ``check`` runs in a thread.
    """

    @property
    def on_fail(self) -> OnFail:
        """What becomes of an answer that fails."""
        ...

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        ...
