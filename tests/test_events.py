"""Events are built only where somebody listens, and hold ids and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.base import BaseEvent

from llama_index_grounded.events import GroundedEndEvent, SelectionEvent, emit
from llama_index_grounded.schema import GroundedResult


class Listener(BaseEventHandler):
    """Keeps what it hears."""

    heard: list[BaseEvent]

    @classmethod
    def class_name(cls) -> str:
        """Name of the handler."""
        return "Listener"

    def handle(self, event: BaseEvent, **_: object) -> None:
        """Keep the event."""
        self.heard.append(event)


@pytest.fixture(params=["root", "llama_index_grounded.events"])
def listener(request: pytest.FixtureRequest) -> Iterator[Listener]:
    """Listen at the root, as observability tools do, or at our own dispatcher."""
    dispatcher, handler = get_dispatcher(request.param), Listener(heard=[])
    dispatcher.add_event_handler(handler)
    yield handler
    dispatcher.event_handlers.remove(handler)


def selection() -> SelectionEvent:
    """Make an event."""
    return SelectionEvent(stage="ScoreGate", decisions=[{"node_id": "n1", "value": 0.4}], received=3, returned=2)


def test_an_event_reaches_a_handler(listener: Listener) -> None:
    """A handler at the root or at our dispatcher gets each event once."""
    emit(selection)
    [event] = listener.heard
    assert isinstance(event, SelectionEvent)
    assert (event.stage, event.received, event.returned) == ("ScoreGate", 3, 2)
    assert event.class_name() == "GroundedSelectionEvent"


def test_without_a_handler_nothing_is_built() -> None:
    """Where nobody listens, the cost is one look and no event."""
    built: list[int] = []

    def build() -> BaseEvent:
        built.append(1)
        return selection()

    emit(build)
    assert built == []


def test_the_end_of_a_query_carries_the_audit(listener: Listener) -> None:
    """The last event holds the log record, ready for JSON."""
    result = GroundedResult(answerable=True, answer="secret")
    emit(lambda: GroundedEndEvent(audit=result.audit()))
    [event] = listener.heard
    assert isinstance(event, GroundedEndEvent)
    assert event.class_name() == "GroundedEndEvent"
    assert "secret" not in json.dumps(event.model_dump(mode="json"))
    assert event.audit["answerable"] is True
