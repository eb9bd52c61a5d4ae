"""Gates out of other gates, and out of a rule of the application.

Place: where a `ScoreGate` stands, or behind the budget for a rule about what was packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, field_serializer, field_validator

from llama_index_grounded import selection
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import RefusalReason
from llama_index_grounded.selection.carrier import Evidence, Notes, Trail
from llama_index_grounded.selection.gate import ScoreGate
from llama_index_grounded.selection.rules import is_true, refuse_async
from llama_index_grounded.selection.stage import Kind, Outcome, Stage, refuse_to_write

__all__ = ["CombinedGate", "EvidenceGate"]

_TAKEN = {"low_margin", "over_budget", "over_window", *(reason.value for reason in RefusalReason)} - {
    "insufficient_evidence"
}
"""Reasons that say something else than that a rule of the application does not hold."""


class CombinedGate(Stage):
    """Reject when all of several gates reject, or when any does; otherwise pass every node.

    Each gate judges the same nodes and passes all of them or none; the reason is that of the first gate that rejected.
    What drops single nodes is none of these gates, an `AccessGuard` least of all: it stands in front of the gate.

    Args:
        gates: Two or more of `ScoreGate` (without ``drop_below``), `EvidenceGate`, `SufficiencyGate`, `CombinedGate`,
            and stages of your own that declare ``judges_together = True``.
        reject_when: ``"all"`` or ``"any"``.
        keys: Names of the identifying metadata fields.

    Raises:
        ConfigurationError: On use, when a gate of your own leaves out single nodes all the same (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> weak, strict = ScoreGate(min_score=0.3), ScoreGate(min_score=0.8)
        >>> nodes = make_nodes(["a"], scores=[0.5])
        >>> gates = [CombinedGate(gates=[weak, strict], reject_when=when) for when in ("all", "any")]
        >>> [len(gate.postprocess_nodes(nodes)) for gate in gates]
        [1, 0]
    """

    kind: ClassVar[Kind] = "filter"
    judges_together: ClassVar[bool] = True

    gates: Annotated[list[Stage], Field(min_length=2)]
    reject_when: Literal["all", "any"] = "all"

    @field_serializer("gates")
    def _written(self, gates: list[Stage]) -> list[dict[str, Any]]:
        return [gate.to_dict() for gate in gates]

    @field_validator("gates", mode="before")
    @classmethod
    def _read(cls, gates: Any) -> Any:
        if not isinstance(gates, (list, tuple)):
            return gates
        return [_class_of(gate).from_dict(dict(gate)) if isinstance(gate, dict) else gate for gate in gates]

    @field_validator("gates")
    @classmethod
    def _pass_together(cls, gates: list[Stage]) -> list[Stage]:
        other = next((gate for gate in gates if not _passes_together(gate)), None)
        if other is not None:
            raise ConfigurationError(
                f"a CombinedGate combines gates that pass every node or none; {other.class_name()} is none: put it in "
                "front, or behind"
            )
        if any(isinstance(gate, ScoreGate) and gate.drop_below is not None for gate in gates):
            raise ConfigurationError("nodes pass a CombinedGate together: drop_below has no place in it")
        return gates

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Ask every gate about the same nodes."""
        if not nodes:
            return Outcome(nodes)
        outcomes: list[Outcome] = []
        asked = nodes
        for gate in self.gates:
            outcomes.append(self._asked(gate, asked, query))
            # Two gates with one embedding model ask it once, and what both would warn of is said once.
            asked = Evidence(nodes.plain(), _after(asked.trail, outcomes[-1]))
        return replace(self._together(nodes, outcomes), embedded=asked.trail.embedded)

    def _together(self, nodes: Evidence, outcomes: Sequence[Outcome]) -> Outcome:
        rejecting = [outcome for outcome in outcomes if not outcome.nodes]
        notes = sum((outcome.notes for outcome in outcomes if outcome.notes), Notes())
        signals = [outcome.top_score for outcome in outcomes if outcome.top_score is not None]
        top_score = signals[0] if signals else None
        if len(rejecting) < (len(outcomes) if self.reject_when == "all" else 1):
            kept = [one for outcome in outcomes for one in outcome.decisions if one.action == "kept"]
            return Outcome(nodes, kept, top_score=top_score, notes=notes)
        return Outcome([], rejecting[0].decisions, top_score=top_score, notes=notes)

    def _asked(self, gate: Stage, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        outcome = gate.choose(nodes, query)
        if not _passes_together(gate) or (outcome.nodes and len(outcome.nodes) != len(nodes)):
            # All nodes would pass, with those that the gate has just left out.
            raise ConfigurationError(f"{gate.class_name()} left out single nodes inside of a {self.class_name()}")
        return outcome


def _after(trail: Trail, outcome: Outcome) -> Trail:
    """Tell the next gate what the models and the gate before it have said."""
    known = trail.knowing(outcome.embedded)
    return known if outcome.notes is None else replace(known, notes=known.notes + outcome.notes)


def _passes_together(gate: Stage) -> bool:
    """Tell a gate from a guard, whatever its class says of itself: a guard would let its own drops pass."""
    return gate.judges_together and not gate.guards


def _class_of(written: dict[str, Any]) -> type[Stage]:
    name = written.get("class_name")
    if not isinstance(name, str):
        raise ConfigurationError("a gate that is written as a dict needs its class_name")
    if name in selection.__all__:
        # A class of this package may not have been imported yet.
        getattr(selection, name)
    known = {stage.class_name(): stage for stage in _kinds_of(Stage)}
    if name not in known:
        raise ConfigurationError(f"no stage {name} is known: import the module of its class first")
    return known[name]


def _kinds_of(base: type[Stage]) -> list[type[Stage]]:
    return [base, *(kind for child in base.__subclasses__() for kind in _kinds_of(child))]


class EvidenceGate(Stage):
    """Reject by a rule of the application, such as "at least one node of type policy".

    The rule sees all nodes in order and must return True itself for them to pass. What it raises is raised: a rule with
    a fault is no reason to answer. It answers at once: an async function is refused.

    Args:
        predicate: From the list of nodes to True or anything else.
        reason: Why nodes were rejected, a few fixed words; it stands in the decisions and the refusal.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> rule = lambda nodes: any(scored.node.metadata.get("type") == "policy" for scored in nodes)
        >>> gate = EvidenceGate(rule, reason="no policy")
        >>> [decision.reason for decision in gate.select(make_nodes(["a note"])).decisions]
        ['no policy']
    """

    kind: ClassVar[Kind] = "filter"
    judges_together: ClassVar[bool] = True

    predicate: Any
    reason: Annotated[str, Field(min_length=1, max_length=80)] = "insufficient_evidence"

    # None is refused as all else that can not be called; without it Python would name the missing argument another way.
    def __init__(self, predicate: Any = None, **more: Any) -> None:
        options: dict[str, Any] = {**more, "predicate": predicate}
        super().__init__(**options)

    @field_serializer("predicate")
    def _without_rule(self, predicate: Any) -> None:
        refuse_to_write(predicate, "predicate")

    @field_validator("reason")
    @classmethod
    def _is_no_word_of_ours(cls, reason: str) -> str:
        if reason in _TAKEN:
            raise ConfigurationError(f"the reason {reason!r} has a meaning of its own in results; choose other words")
        return reason

    @field_validator("predicate")
    @classmethod
    def _can_be_called(cls, predicate: Any) -> Any:
        if not callable(predicate):
            raise ConfigurationError("predicate must be callable")
        refuse_async(predicate)
        return predicate

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Ask the rule."""
        if not nodes or self._holds(nodes.plain()):
            return Outcome(nodes)
        return Outcome([], [self.decision(scored, "refused", self.reason) for scored in nodes])

    def _holds(self, nodes: Sequence[NodeWithScore]) -> bool:
        return is_true(self.predicate, nodes)
