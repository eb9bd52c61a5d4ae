"""The base of every selection stage: a pure choice, wrapped for LlamaIndex.

A subclass writes one method, `choose`: stamped nodes in, an `Outcome` out. The base does the rest: it stamps what comes
in, keeps the trail, reports nodes that vanished without a decision, emits an event, and serves sync and async engines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, ConfigDict, model_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.events import SelectionEvent, emit
from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys, identity
from llama_index_grounded.schema import Action, Decision
from llama_index_grounded.selection.carrier import Embedded, Evidence, Notes, Passage, Place, Removal
from llama_index_grounded.selection.mirror import Mirror, carried_origin
from llama_index_grounded.selection.trail import receive

if TYPE_CHECKING:
    from llama_index_grounded.rendering import Renderer

__all__ = ["Kind", "Outcome", "Selection", "Stage", "refuse_to_write"]

Kind = Literal["filter", "rewrite", "reorder"]
"""What a stage may do: leave nodes out; also change their text; or only change their order."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What one stage did when it was used alone."""

    nodes: list[NodeWithScore]
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage chose."""

    nodes: Sequence[NodeWithScore]
    decisions: Sequence[Decision] = ()
    removals: Sequence[Removal] = ()
    """What a remover took away; a budget may undo it."""
    sizes: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Token counts that a later stage need not repeat."""
    top_score: float | None = None
    """The best signal, from a stage that judged one."""
    notes: Notes | None = None
    """What a stage that asked a model leaves beside the nodes."""
    passages: Sequence[Passage] = ()
    """What was joined; a budget may take it apart."""
    embedded: Sequence[Embedded] = ()
    """What embedding models have said in this query, one record for each that was asked."""
    renderer: Renderer | None = None
    """How the nodes will be shown, from a stage that counted them so."""
    prompt_limit: int | None = None
    """Most tokens that the prompt may take, from a stage that packs for one."""
    turned_away: Collection[int] = ()
    """Slots of nodes that a remover had dropped, and that found no room when a budget asked for them again."""

    def __post_init__(self) -> None:
        """Keep what can be read only once."""
        for name in ("nodes", "decisions", "removals"):
            value = getattr(self, name)
            if not isinstance(value, Sequence):
                object.__setattr__(self, name, list(value))


def refuse_to_write(part: object, name: str) -> None:
    """Refuse to write a stage down without a part that can not be written: read back, it would behave differently."""
    if part is not None:
        msg = f"{name} ({type(part).__name__}) can not be written down: build the stage anew"
        raise ConfigurationError(msg)


class Stage(BaseNodePostprocessor):
    """A node postprocessor that reports every decision and changes nothing that it was given.

    Args:
        keys: Names of the metadata fields that identify a node. Only the first stage of a chain needs them.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", validate_assignment=True)

    kind: ClassVar[Kind] = "filter"
    packs: ClassVar[bool] = False
    """True for a stage whose dropped nodes were not judged: they count as never seen, or stand in another node."""
    judges: ClassVar[bool] = True
    """False for a filter that judges nothing: what was removed before it may still come back."""
    judges_together: ClassVar[bool] = False
    """True for a gate that passes every node or none, so that a `CombinedGate` can ask it."""
    guards: ClassVar[bool] = False
    """True for a stage that has seen to it that this query may read the nodes."""

    keys: MetadataKeys = DEFAULT_KEYS

    @model_validator(mode="before")
    @classmethod
    def _read_as_written(cls, data: Any) -> Any:
        """Take what `model_dump` wrote: LlamaIndex puts the class name among the options."""
        ours = isinstance(data, dict) and data.get("class_name") == cls.class_name()
        return {name: value for name, value in data.items() if name != "class_name"} if ours else data

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the stage."""
        return cls.__name__

    # Not declared abstract: LlamaIndex wraps every abstract method in a second span, which costs more than most stages.
    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Choose among stamped nodes, in the incoming order. Copy before changing one (`evidence.with_text`)."""
        msg = f"{type(self).__name__} defines no choose({len(nodes)} nodes, {query})"
        raise TypeError(msg)

    def select(self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | str | None = None) -> Selection:
        """Run the stage alone and return the nodes together with this stage's decisions."""
        query_bundle = QueryBundle(query_bundle) if isinstance(query_bundle, str) else query_bundle
        evidence = receive(nodes, query_bundle, self.keys, self)
        outcome = self.choose(evidence, query_bundle)
        if not isinstance(outcome, Outcome):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"{type(self).__name__}.choose must return an Outcome, not {type(outcome).__name__}"
            raise TypeError(msg)
        handed = self._handed(evidence, outcome)
        decisions = (*outcome.decisions, *self._unreported(evidence, outcome, handed))
        told = self.disclosed(decisions)
        chosen = Evidence(outcome.nodes, evidence.trail.after(self, outcome, handed, told))
        if query_bundle is not None:
            Mirror.of(query_bundle).keep(chosen.trail)
        emit(lambda: self._event(told, len(evidence), len(chosen)))
        return Selection(chosen, decisions)

    def disclosed(self, decisions: Sequence[Decision]) -> Sequence[Decision]:
        """Return the decisions as they may leave with the answer and in events; `select` returns them as they are."""
        return decisions

    def decision(
        self,
        scored: NodeWithScore,
        action: Action,
        reason: str,
        *,
        value: float | None = None,
        limit: float | None = None,
        twin: str | None = None,
    ) -> Decision:
        """Make the record of a decision about one node."""
        node = scored.node
        return Decision(
            stage=self.class_name(),
            action=action,
            node_id=node.node_id,
            document_id=identity(node).document_id,
            reason=reason,
            value=value,
            limit=limit,
            twin=twin,
        )

    def _handed(self, evidence: Evidence, outcome: Outcome) -> tuple[Place, ...]:
        try:
            return evidence.places_of(outcome.nodes)
        except (KeyError, TypeError) as error:
            msg = (
                f"{type(self).__name__}.choose returned a node that it was not given; copy one with evidence.with_text"
            )
            raise TypeError(msg) from error

    def _unreported(self, evidence: Evidence, outcome: Outcome, handed: tuple[Place, ...]) -> list[Decision]:
        """Nothing disappears silently: report what `choose` left out without a word."""
        came = evidence.trail.handed
        if handed == came:
            return []
        left = {place.slot for place in handed}
        missing = [scored for scored, place in zip(evidence.came, came, strict=True) if place.slot not in left]
        if not missing:
            return []
        reported = Counter(d.node_id for d in outcome.decisions if d.action in ("dropped", "refused"))
        silent: list[Decision] = []
        for scored in missing:
            if reported[scored.node.node_id] > 0:
                reported[scored.node.node_id] -= 1
            else:
                silent.append(self.decision(scored, "dropped", "unreported"))
        return silent

    def _event(self, decisions: Sequence[Decision], received: int, returned: int) -> SelectionEvent:
        records = [asdict(decision) for decision in decisions]
        return SelectionEvent(stage=self.class_name(), decisions=records, received=received, returned=returned)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return self.select(nodes, query_bundle).nodes

    def postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None, query_str: str | None = None
    ) -> list[NodeWithScore]:
        """Run the stage as LlamaIndex's engines do."""
        with carried_origin():
            return super().postprocess_nodes(nodes, query_bundle, query_str)

    async def apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None, query_str: str | None = None
    ) -> list[NodeWithScore]:
        """Run the stage on a worker thread, as LlamaIndex's async engines do."""
        with carried_origin():
            return await super().apostprocess_nodes(nodes, query_bundle, query_str)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle every option or fail: LlamaIndex's own base would drop what does not pickle and go on without it."""
        state = BaseModel.__getstate__(self)
        state["__dict__"] = {name: value for name, value in state["__dict__"].items() if name != "callback_manager"}
        return state
