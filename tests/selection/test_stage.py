"""One method makes a stage: the base copies, reports, emits, pickles and serves sync and async engines."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.schema import MetadataMode, QueryBundle
from pydantic import BaseModel, Field, ValidationError

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.events import SelectionEvent
from llama_index_grounded.evidence import MetadataKeys, identity, with_text
from llama_index_grounded.selection import (
    AttentionReorder,
    Outcome,
    ScopedDedup,
    ScoreGate,
    Selection,
    Stage,
    TokenBudget,
)
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.stage import Kind
from llama_index_grounded.testing import ScriptedLLM, check_postprocessor, make_nodes
from tests.selection.parts import LONG, bodies, ids, repickled

STAGES = [ScoreGate(min_score=0.1), ScopedDedup(), TokenBudget(max_tokens=200), AttentionReorder()]


class Silent(Stage):
    """Keeps the nodes that it is told to keep, and says nothing."""

    keep: list[int]

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Keep some places."""
        return Outcome([nodes[place] for place in self.keep])


class Shorten(Stage):
    """Keeps the first word of each node."""

    kind: ClassVar[Kind] = "rewrite"

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Copy before changing."""
        return Outcome([with_text(scored, (scored.node.get_content().split() or [""])[0]) for scored in nodes])


class Recorder(BaseEventHandler):
    """Keeps the events of the stages."""

    seen: list[SelectionEvent] = Field(default_factory=list[SelectionEvent])

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Keep one."""
        if isinstance(event, SelectionEvent):
            self.seen.append(event)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Attach a handler to LlamaIndex's root dispatcher for one test."""
    handler, root = Recorder(), get_dispatcher()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.class_name())
def test_select_and_both_engine_methods_agree(stage: Stage) -> None:
    """``select`` gives nodes and decisions; the sync and async methods give the same nodes."""
    nodes = make_nodes([*LONG, f"{LONG[0]}\n\nNew."], metadata={"document_id": "d"})
    selection = stage.select(nodes, QueryBundle("q"))
    assert isinstance(selection, Selection)
    in_async = asyncio.run(stage.apostprocess_nodes(nodes, QueryBundle("q")))
    assert bodies(stage.postprocess_nodes(nodes, query_str="q")) == bodies(selection.nodes) == bodies(in_async)
    assert {decision.stage for decision in selection.decisions} <= {stage.class_name()}


def test_what_a_stage_drops_silently_is_reported() -> None:
    """Nothing disappears without a decision, not even one of two copies of a node."""
    nodes = make_nodes(["a", "b", "b"], ids=["x", "y", "y"])
    selection = Silent(keep=[0, 1]).select(nodes)
    assert [(d.action, d.reason, d.node_id) for d in selection.decisions] == [("dropped", "unreported", "y")]
    assert len(Silent(keep=[]).select(nodes).decisions) == 3
    bundle = QueryBundle("q")
    doubled = [*Silent(keep=[0]).postprocess_nodes(nodes, bundle)] * 2
    assert [d.node_id for d in Silent(keep=[0]).select(doubled, bundle).decisions] == ["x"]


def test_a_stage_can_not_invent_nodes() -> None:
    """A node that the stage was not given is a fault of the stage, and said so."""

    class Invents(Stage):
        def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
            return Outcome([*nodes, *make_nodes(["new"])])

    with pytest.raises(TypeError, match=r"Invents\.choose returned a node that it was not given"):
        Invents().select(make_nodes(["a"]))
    with pytest.raises(TypeError, match="Stage defines no choose"):
        Stage().select([])


def test_a_stage_that_returns_something_else_is_told() -> None:
    """A list in place of an outcome is a fault of the stage, and said so."""

    class Lists(Stage):
        def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
            return nodes  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"^Lists\.choose must return an Outcome, not Evidence$"):
        Lists().select(make_nodes(["a"]))


def test_an_outcome_may_be_made_of_iterators() -> None:
    """What can be read once is read once: no node and no decision is lost or told twice."""

    class Streams(Stage):
        def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
            told = (self.decision(scored, "dropped", "first") for scored in nodes[:1])
            return Outcome((scored for scored in nodes[1:]), told)  # type: ignore[arg-type]

    selection = Streams().select(make_nodes(["a", "b", "c"]))
    assert bodies(selection.nodes) == ["b", "c"]
    assert [(each.node_id, each.reason) for each in selection.decisions] == [("n0", "first")]


def test_a_subclass_writes_one_method() -> None:
    """A stage that only chooses is a complete postprocessor: it keeps the laws and leaves the given nodes alone."""
    nodes = make_nodes(["one two", "three four"])
    assert bodies(Shorten().postprocess_nodes(nodes)) == ["one", "three"]
    assert bodies(nodes) == ["one two", "three four"]
    check_postprocessor(Shorten)


def test_nodes_may_come_from_an_iterator() -> None:
    """A stage and a synthesizer read every node of what can be read once."""
    nodes = make_nodes(["one two", "three four"])
    assert bodies(Shorten().select(iter(nodes)).nodes) == ["one", "three"]  # type: ignore[arg-type]
    reply = {"verdict": "answered", "sources": ["S2"], "answer": "Four [S2]."}
    response = CitingSynthesizer(ScriptedLLM([reply])).synthesize("How many?", iter(nodes))  # type: ignore[arg-type]
    assert [scored.node.node_id for scored in response.source_nodes] == ["n0", "n1"]


def test_the_stamp_stays_out_of_every_text() -> None:
    """The one metadata key of the package is kept from the model and from embeddings, and the given node has none."""
    nodes = make_nodes(["text"], metadata={"title": "T"})
    (scored,) = ScopedDedup().postprocess_nodes(nodes)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert scored.node.get_content(mode) == nodes[0].node.get_content(mode)
    assert list(nodes[0].node.metadata) == ["title"]


def test_field_names_are_given_once() -> None:
    """The first stage's field names hold for the nodes that a foreign postprocessor adds later on."""
    keys = MetadataKeys(document_id="doc")
    first = ScoreGate(min_score=0.1, keys=keys).postprocess_nodes(make_nodes([LONG[0]], metadata={"doc": "d"}))
    added = make_nodes([LONG[0]], ids=["added"], metadata={"doc": "d"})
    both = [*first, *added]
    assert ids(ScopedDedup().postprocess_nodes(both, QueryBundle("q"))) == [
        "n0",
        "added",
    ]  # another bundle, another run
    bundle = QueryBundle("q")
    first = ScoreGate(min_score=0.1, keys=keys).postprocess_nodes(make_nodes([LONG[0]], metadata={"doc": "d"}), bundle)
    assert ids(ScopedDedup().postprocess_nodes([*first, *added], bundle)) == ["n0"]


def test_field_names_of_a_later_stage_count_from_there_on() -> None:
    """Field names that only a later stage was given are not ignored."""
    keys = MetadataKeys(document_id="doc")
    nodes = make_nodes([LONG[0], LONG[0]], metadata={"doc": "d"})
    gated = ScoreGate(min_score=0.1).postprocess_nodes(nodes)
    assert identity(gated[0].node).document_id == "n0"
    kept = AttentionReorder().postprocess_nodes(ScopedDedup(keys=keys).postprocess_nodes(gated))
    assert [identity(scored.node).document_id for scored in kept] == ["d"]


def test_events_carry_the_decisions_and_no_text(recorder: Recorder) -> None:
    """Each stage emits one event with ids and numbers, also when nothing survives."""
    nodes = make_nodes(["a secret text", "another"], scores=[0.3, 0.2])
    assert ScoreGate(min_score=0.5).postprocess_nodes(nodes) == []
    (event,) = recorder.seen
    assert (event.stage, event.received, event.returned) == ("ScoreGate", 2, 0)
    assert [(record["node_id"], record["value"]) for record in event.decisions] == [("n0", 0.3), ("n1", 0.2)]
    assert "secret" not in event.model_dump_json()


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.class_name())
def test_options_survive_dict_json_and_pickle(stage: Stage) -> None:
    """A stage comes back with all its options, under its own class name."""
    assert stage.to_dict()["class_name"] == type(stage).__name__
    for copied in (
        type(stage).from_dict(stage.to_dict()),
        type(stage).from_json(stage.to_json()),
        repickled(stage),
    ):
        assert copied.to_dict() == stage.to_dict()


def test_a_stage_stands_in_a_model_of_the_application() -> None:
    """What Pydantic writes of a configuration with a stage in it, it reads again; another name is refused."""

    class Settings(BaseModel):
        gate: ScoreGate

    settings = Settings(gate=ScoreGate(min_score=0.3))
    written = settings.model_dump()
    assert Settings.model_validate(written).model_dump() == written
    assert Settings.model_validate_json(settings.model_dump_json()).gate.min_score == 0.3
    with pytest.raises(ValidationError, match="class_name"):
        Settings.model_validate({"gate": {"class_name": "ScopedDedup", "min_score": 0.3}})


def test_an_option_that_does_not_pickle_fails_loudly() -> None:
    """No option is lost on the way to a worker process."""

    class Holds(Stage):
        predicate: Any

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(Holds(predicate=lambda: None))


def test_engines_may_set_their_callback_manager() -> None:
    """Query engines assign it to every postprocessor; an assignment of nonsense to an option is refused."""
    stage = ScoreGate(min_score=0.1)
    stage.callback_manager = CallbackManager()
    with pytest.raises(ValidationError):
        stage.min_score = float("nan")
