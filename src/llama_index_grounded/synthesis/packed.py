"""Fit the nodes of a query into the window, together with what the model is told about those that disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from llama_index_grounded.evidence import identity
from llama_index_grounded.rendering.renderer import key_at
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.schema import Action, Conflict, Decision
from llama_index_grounded.selection.budget import TokenBudget
from llama_index_grounded.selection.carrier import Evidence, slot_of
from llama_index_grounded.selection.packing import OnOversize
from llama_index_grounded.synthesis.prompts import conflict_notes

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.rendering import Renderer
    from llama_index_grounded.selection.trail import Trail
    from llama_index_grounded.synthesis.parts import PromptParts
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["Packed", "Told", "decision_on", "pack"]

STAGE = "CitingSynthesizer"
_NO_ROOM = ("prompt_too_long", "over_budget", "top_n")
"""How a budget names what the synthesizer calls ``over_window``."""


class Told(NamedTuple):
    """What the model is told about sources that disagree."""

    conflicts: tuple[Conflict, ...]
    notes: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The nodes that fit, and what the prompt takes with them, in plain tokens."""

    nodes: list[NodeWithScore]
    unfit: list[Decision]
    told: Told
    sizes: list[int]
    """Of the rendered nodes."""
    framing: Mapping[str, int]
    """Of everything else but the notes, by part."""

    @property
    def frame(self) -> int:
        """Tokens of everything but the sources."""
        return sum(self.framing.values()) + self.told.tokens


def pack(query: QueryBundle, nodes: list[NodeWithScore], trail: Trail, parts: PromptParts, allowance: int) -> Packed:
    """Fit the nodes into the window, together with the notes on those that disagree."""
    sizes = dict(trail.sizes)
    prompt = _Prompt(trail=trail, parts=parts, framing=parts.frame(query, sizes), sizes=sizes, allowance=allowance)
    whole = prompt.packed(nodes)
    return whole if prompt.holds(whole) else prompt.fitted(nodes, query)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """The prompt that a `TokenBudget` packs for where none has packed before, or not enough."""

    trail: Trail
    parts: PromptParts
    framing: Mapping[str, int]
    sizes: dict[tuple[str, str], int]
    allowance: int
    num_output: int = 0

    @property
    def renderer(self) -> Renderer:
        return self.parts.renderer

    @property
    def counter(self) -> TokenCounter:
        return self.parts.counter

    def context_window(self) -> int:
        return self.allowance

    def frame_tokens(self, query: QueryBundle, sizes: dict[tuple[str, str], int]) -> int:
        return sum(self.framing.values())

    def packed(self, nodes: list[NodeWithScore], unfit: Sequence[Decision] = ()) -> Packed:
        """Count the nodes, and say what is told of them under the keys that they have now."""
        blocks = BlockCounter(self.renderer, self.counter, self.sizes)
        return Packed(
            nodes=nodes,
            unfit=list(unfit),
            told=_tell(nodes, self.trail, self.parts, self.sizes),
            sizes=[blocks.tokens(scored, place) for place, scored in enumerate(nodes)],
            framing=self.framing,
        )

    def holds(self, packed: Packed) -> bool:
        return self.counter.estimate(packed.frame + sum(packed.sizes)) <= self.allowance

    def fitted(self, nodes: list[NodeWithScore], query: QueryBundle) -> Packed:
        """Drop nodes from the lowest rank until the prompt fits; what was removed in favour of them comes back.

        Where that leaves nothing, because the best node alone is too large, large nodes are skipped for smaller ones.
        The question and the rules always stay. What is told of nodes that disagree goes with them: for its tokens one
        node more may have to go, but never the last.
        """
        how: OnOversize = "stop"
        packed = self._budgeted(nodes, query, how)
        if not packed.nodes:
            how = "skip"
            packed = self._budgeted(nodes, query, how)
        while len(packed.nodes) > 1 and not self.holds(packed):
            packed = self._budgeted(nodes, query, how, top_n=len(packed.nodes) - 1)
        return packed

    def _budgeted(
        self, nodes: list[NodeWithScore], query: QueryBundle, how: OnOversize, *, top_n: int | None = None
    ) -> Packed:
        budget = TokenBudget.for_synthesizer(self, safety_margin=0, on_oversize=how, top_n=top_n)
        outcome = budget.choose(Evidence(nodes, replace(self.trail, sizes=self.sizes)), query)
        self.sizes.update(outcome.sizes)
        return self.packed(list(outcome.nodes), _unfit(outcome.decisions))


def _tell(nodes: Sequence[NodeWithScore], trail: Trail, parts: PromptParts, sizes: dict[tuple[str, str], int]) -> Told:
    """Write what is told about sources that disagree, as it is sent: its details are words of documents."""
    conflicts = _conflicts(nodes, trail)
    notes = parts.renderer.escape(conflict_notes(conflicts))
    return Told(conflicts, notes, parts.count(notes, sizes))


def _conflicts(nodes: Sequence[NodeWithScore], trail: Trail) -> tuple[Conflict, ...]:
    """Name the keys of what stages found to disagree, of the nodes that are shown."""
    keys = {slot_of(scored): key_at(place) for place, scored in enumerate(nodes)}
    return tuple(
        Conflict(keys=tuple(keys[slot] for slot in found.slots), detail=found.detail, confirmed=found.confirmed)
        for found in trail.notes.findings
        if all(slot in keys for slot in found.slots)
    )


def _unfit(decisions: Iterable[Decision]) -> list[Decision]:
    """Report what the budget did in the synthesizer's name, first what it turned away, from the lowest rank."""
    reports = [replace(decision, stage=STAGE) for decision in decisions]
    unfit = [_over_window(one) for one in reversed(reports) if one.reason in _NO_ROOM]
    return [*unfit, *(one for one in reports if one.reason not in _NO_ROOM)]


def _over_window(one: Decision) -> Decision:
    # Beside the other reasons stand figures that are no sizes of a source.
    sized = one if one.reason == "over_budget" else replace(one, value=None, limit=None)
    return replace(sized, action="dropped", reason="over_window")


def decision_on(
    scored: NodeWithScore, reason: str, *, action: Action = "dropped", value: float | None = None
) -> Decision:
    """Report what the synthesizer did with a node, and why.

    Args:
        scored: A stamped node.
        reason: A short fixed word.
        action: What was done.
        value: The number that says so, where there is one.
    """
    return Decision(
        stage=STAGE,
        action=action,
        node_id=scored.node.node_id,
        document_id=identity(scored.node).document_id,
        reason=reason,
        value=value,
    )
