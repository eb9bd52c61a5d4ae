"""One query from its plan to its response, without I/O: what is yielded, logged, emitted and raised at its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation import get_dispatcher  # pyright: ignore[reportPrivateImportUsage] - its own name for it
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent
from llama_index.core.instrumentation.span import active_span_id

from llama_index_grounded.errors import GenerationError
from llama_index_grounded.events import GroundedEndEvent, emit
from llama_index_grounded.llm.call import status_of
from llama_index_grounded.schema import Refusal, RefusalReason, ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.synthesis.conversation import Conversation, Outcome, Sent, Step
from llama_index_grounded.synthesis.respond import GroundedResponse, build_response, build_result

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.synthesis.plan import Plan

__all__ = ["Session"]

_logger = logging.getLogger(__name__)
_dispatcher = get_dispatcher(__name__)
_FAULTS_OF_THE_REQUEST = frozenset({400, 401, 403, 404, 422})
"""Statuses for a request that is refused as it is: what it says, its key, its model."""
_ERRORS = frozenset({RefusalReason.provider_error, RefusalReason.deadline_exceeded, RefusalReason.invalid_output})


@dataclass(slots=True, kw_only=True)
class Session:
    """The state of one query.

    Args:
        query: The question, for the events.
        plan: What to send.
        conversation: How to send it; not used where the plan is a refusal.
        additional: Further source nodes of the engine, for the response.
        words: The text for a refusal.
        fingerprint: Hash of the configuration.
        raises: Raise errors of the model instead of refusing.
        live: Somebody watches: yield the text of a refusal too.
    """

    query: QueryBundle
    plan: Plan
    conversation: Conversation
    additional: Sequence[NodeWithScore]
    words: Callable[[Refusal], str]
    fingerprint: str
    raises: bool
    live: bool
    started: float = field(default_factory=time.perf_counter)
    span_id: str | None = field(default_factory=active_span_id.get)
    stopping: bool = False
    """Set by whoever wants the stream to stop; the driver looks at it between the pieces."""
    response: GroundedResponse | None = None
    """Set at the end."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """The metadata of a streaming response; its ``"grounded"`` comes at the end."""

    def steps(self) -> Generator[Step | StreamEvent, Sent, None]:
        """Yield the events of the query, and between them what the conversation wants."""
        yield SourcesEvent(sources=self.plan.sources)
        outcome = None if self.plan.refusal else (yield from self.conversation.steps())
        response = self._end(outcome)
        if self.live and not (outcome and outcome.shown):
            yield TextEvent(text=str(response))
        yield ResultEvent(grounded=response.grounded)

    def close(self) -> None:
        """End the query where it is, if it has not come to its end."""
        if self.response is None:
            self._respond(self.conversation.break_off())

    def _end(self, outcome: Outcome | None) -> GroundedResponse:
        response = self._respond(outcome)
        if outcome is not None:
            self._report(outcome)
        return response

    def _respond(self, outcome: Outcome | None) -> GroundedResponse:
        result = build_result(
            self.plan,
            outcome,
            words=self.words,
            elapsed_ms=round((time.perf_counter() - self.started) * 1000, 3),
            fingerprint=self.fingerprint,
        )
        parsed = outcome.assessment.answer if outcome else None
        response = build_response(result, self.plan, self.additional, parsed)
        self.response = response
        self.metadata |= response.metadata or {}
        emit(lambda: GroundedEndEvent(audit=result.audit(), span_id=self.span_id))
        _dispatcher.event(SynthesizeEndEvent(query=self.query, response=response, span_id=self.span_id))
        return response

    def _report(self, outcome: Outcome) -> None:
        """Log what went wrong outside of the evidence, and raise it where that is wanted."""
        refusal, error = outcome.assessment.refusal, outcome.assessment.error
        if refusal is None or refusal.reason not in _ERRORS:
            return
        _logger.error("no answer, %s: %s", refusal.reason, refusal.detail, exc_info=error)
        if self.raises:
            message = f"{refusal.reason}: {refusal.detail}"
            raise GenerationError(message, reason=refusal.reason, retryable=_retryable(refusal, error)) from error


def _retryable(refusal: Refusal, error: Exception | None) -> bool:
    """Tell whether the same query may succeed later: not where the server answered that the request is at fault."""
    if refusal.reason is RefusalReason.provider_error:
        return status_of(error) not in _FAULTS_OF_THE_REQUEST
    return refusal.reason is not RefusalReason.invalid_output
