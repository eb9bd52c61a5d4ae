"""Instrumentation events: what the stages decided, and how a query ended.

They carry ids and numbers only. Building one costs some microseconds, so `emit` asks first whether anybody listens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events.base import BaseEvent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GroundedEndEvent", "SelectionEvent", "emit"]

_dispatcher = get_dispatcher(__name__)


class SelectionEvent(BaseEvent):
    """A stage has selected."""

    stage: str
    decisions: list[dict[str, Any]]
    """One mapping per decision, with the fields of `schema.Decision`."""
    received: int
    """Number of nodes that came in."""
    returned: int
    """Number of nodes that went out."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event for handlers."""
        return "GroundedSelectionEvent"


class GroundedEndEvent(BaseEvent):
    """A query has ended in a cited answer or in a refusal."""

    audit: dict[str, Any]
    """`schema.GroundedResult.audit` of the result."""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event for handlers."""
        return "GroundedEndEvent"


def _somebody_listens() -> bool:
    dispatcher = _dispatcher
    while True:
        if any(not isinstance(handler, NullEventHandler) for handler in dispatcher.event_handlers):
            return True
        if not dispatcher.propagate or not dispatcher.parent_name:
            return False
        dispatcher = dispatcher.parent


def emit(build: Callable[[], BaseEvent]) -> None:
    """Build the event and hand it to LlamaIndex's dispatcher, if a handler is attached."""
    if _somebody_listens():
        _dispatcher.event(build())
