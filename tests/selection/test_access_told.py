"""What a guard tells: counts to whoever asks, ids to the operator; and where in the chain it may stand."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.schema import QueryBundle
from pydantic import Field

from llama_index_grounded import (
    AttentionReorder,
    CitingSynthesizer,
    GroundedResponse,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
)
from llama_index_grounded.errors import AccessViolationError, ConfigurationError
from llama_index_grounded.selection.access import WITHHELD, AccessGuard
from llama_index_grounded.testing import ScriptedLLM
from tests.selection.parts import Foreign, backwards, decided, drop_all, ids, run, run_async
from tests.selection.test_access import TWO, ours


class Recorder(BaseEventHandler):
    """Keeps every event as text."""

    texts: list[str] = Field(default_factory=list[str])

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Keep one event."""
        self.texts.append(event.model_dump_json())


@contextmanager
def recorded() -> Generator[list[str], None, None]:
    """Listen to the package's own events."""
    dispatcher, recorder = get_dispatcher("llama_index_grounded.events"), Recorder()
    before = list(dispatcher.event_handlers)
    dispatcher.event_handlers = [*before, recorder]
    try:
        yield recorder.texts
    finally:
        dispatcher.event_handlers = before


def test_the_error_tells_counts_and_keeps_ids_as_data() -> None:
    """The message may reach the reader, so it has no id and no text; the ids are attributes and survive pickle."""
    with pytest.raises(AccessViolationError) as caught:
        AccessGuard(filters=ours()).select(TWO)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    for each in (caught.value, error):
        assert (each.stage, each.received, each.node_ids) == ("AccessGuard", 2, ("theirs#1",))
        assert "1 of 2 nodes may not be read by this query (filters)" in str(each)
        assert not [word for word in ("theirs", "SECRET", "t_8") if word in repr(each)]


def test_ids_of_dropped_nodes_are_withheld_from_the_reader(caplog: pytest.LogCaptureFixture) -> None:
    """Trail, response, audit log, events and log text hold no id of the dropped node; the log record and select do."""
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "Ours [S1]."}])
    guard, bundle = AccessGuard(filters=ours(), on_violation="drop"), QueryBundle("Whose?")
    with caplog.at_level(logging.DEBUG), recorded() as events:
        nodes = guard.postprocess_nodes(list(TWO), bundle)
        response = CitingSynthesizer(llm).synthesize(bundle, nodes)
    assert isinstance(response, GroundedResponse)
    assert [(d.node_id, d.document_id, d.reason) for d in response.grounded.decisions] == [
        (WITHHELD, WITHHELD, "access")
    ]
    told = [
        response.grounded.model_dump_json(),
        json.dumps(response.grounded.audit()),
        caplog.text,
        *events,
        *llm.prompts,
    ]
    told += [json.dumps(response.metadata, default=str), str(response.source_nodes)]
    assert len(events) == 2
    assert not [word for word in ("theirs", "SECRET", "t_8") if word in "".join(told)]
    (record,) = [each for each in caplog.records if each.name.endswith("selection.access")]
    assert vars(record)["access_violations"] == (("theirs#1", "filters"),)
    assert [decision.node_id for decision in guard.select(TWO).decisions] == ["theirs#1"]


def test_nothing_is_logged_where_nothing_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    """Nodes that may be read pass without a decision and without a word."""
    with caplog.at_level(logging.DEBUG):
        selection = AccessGuard(filters=ours()).select(TWO[:1])
    assert (ids(selection.nodes), selection.decisions, caplog.text) == (["ours#1"], (), "")


def test_a_query_of_which_nothing_is_left_ends_in_a_refusal() -> None:
    """When every node is dropped no model is called, and the refusal reads like any other empty retrieval."""
    llm, bundle = ScriptedLLM(["never"]), QueryBundle("Whose?")
    nodes = AccessGuard(filters=ours("t_9"), on_violation="drop").postprocess_nodes(list(TWO), bundle)
    response = CitingSynthesizer(llm).synthesize(bundle, nodes)
    assert isinstance(response, GroundedResponse)
    assert (response.refusal and response.refusal.reason, llm.prompts) == ("no_evidence", [])
    assert len(response.grounded.decisions) == 2


# Its place in the chain


def test_dropping_behind_other_stages_is_refused() -> None:
    """A stage that ran before may have named the node or removed our text in its favour, so the guard comes first."""
    late = AccessGuard(filters=ours(), on_violation="drop")
    for earlier in (ScoreGate(min_score=0.1), ScopedDedup()):
        with pytest.raises(ConfigurationError, match="put the guard first"):
            run([earlier, late], list(TWO[:1]))
    with pytest.raises(AccessViolationError):
        run([ScoreGate(min_score=0.1), AccessGuard(filters=ours())], list(TWO))


async def test_a_second_guard_behind_what_adds_nodes() -> None:
    """A node that a foreign postprocessor adds between two guards is dropped by the second, its ids withheld."""
    guard = AccessGuard(filters=ours(), on_violation="drop")
    adds = Foreign(act=lambda nodes: [*nodes, TWO[1]])
    chain: Sequence[Any] = [Foreign(act=backwards), guard, ScoreGate(min_score=0.1), adds, guard]
    for evidence in (run(chain, list(TWO)), await run_async(chain, list(TWO))):
        assert ids(evidence) == ["ours#1"]
        assert decided(evidence) == [
            ("dropped", "access", WITHHELD),
            ("kept", "best_score", "ours#1"),
            ("dropped", "access", WITHHELD),
        ]


def adding(nodes: Any) -> Any:
    """Add a node that may not be read, as a lookup of neighbours does."""
    return [*nodes, TWO[1]]


@pytest.mark.parametrize(
    "between",
    [
        [Foreign(act=adding), TokenBudget(top_n=1)],
        [Foreign(act=adding), ScoreGate(min_score=0.1)],
        [ScoreGate(min_score=0.1), Foreign(act=adding), AttentionReorder(placement="end")],
        [Foreign(act=adding), TokenBudget(top_n=1), Foreign(act=drop_all)],
    ],
)
def test_a_guard_behind_stages_that_saw_added_nodes_is_refused(between: list[Any]) -> None:
    """Once a stage may have named what no guard has seen, dropping in silence is too late, whatever is left of it."""
    first, last = (AccessGuard(filters=ours(), on_violation="drop") for _ in range(2))
    with pytest.raises(ConfigurationError, match="right behind whatever adds nodes"):
        run([first, *between, last], list(TWO[:1]))
    adds = next(place for place, stage in enumerate(between) if isinstance(stage, Foreign))
    evidence = run([first, *between[: adds + 1], last, *between[adds + 1 :]], list(TWO[:1]))
    assert "theirs#1" not in repr(evidence.trail.decisions)


def test_a_stricter_guard_behind_stages_is_refused_where_it_drops() -> None:
    """What the first guard let pass and a stage has named can not be withheld by a second guard with another rule."""
    chain: Sequence[Any] = [
        AccessGuard(require=["tenant"], on_violation="drop"),
        ScoreGate(min_score=0.1),
        AccessGuard(filters=ours(), on_violation="drop"),
    ]
    assert ids(run(chain, list(TWO[:1]))) == ["ours#1"]
    with pytest.raises(ConfigurationError, match="ScoreGate"):
        run(chain, list(TWO))
