"""Fit the nodes of a query into the window, together with what the model is told about those that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from llama_index_grounded.evidence import identity
from llama_index_grounded.rendering.renderer import key_at
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.schema import Action, Conflict, Decision
from llama_index_grounded.selection.budget import TokenBudget
from llama_index_grounded.selection.carrier import Evidence, slot_of
from llama_index_grounded.synthesis.prompts import conflict_notes

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.rendering import Renderer
    from llama_index_grounded.selection.trail import Trail
    from llama_index_grounded.synthesis.parts import PromptParts
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["Packed", "Told", "decision_on", "pack"]

STAGE = "CitingSynthesizer"
_NO_ROOM = ("prompt_too_long", "over_budget")
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
    framing = parts.frame(query, sizes)
    told = _tell(nodes, trail, parts, sizes)
    room = _Room(parts.renderer, parts.counter, sum(framing.values()) + told.tokens, allowance)
    counts = _counts(nodes, parts, sizes)
    if parts.counter.estimate(room.frame + sum(counts)) <= allowance:
        return Packed(nodes=nodes, unfit=[], told=told, sizes=counts, framing=framing)
    kept, unfit = _fit(query, nodes, trail, room, sizes)
    # Those that stay have other keys now, and may have nobody left to disagree with.
    told, counts = _tell(kept, trail, parts, sizes), _counts(kept, parts, sizes)
    return Packed(nodes=kept, unfit=unfit, told=told, sizes=counts, framing=framing)


def _counts(nodes: Sequence[NodeWithScore], parts: PromptParts, sizes: dict[tuple[str, str], int]) -> list[int]:
    """Count the rendered nodes, in plain tokens."""
    blocks = BlockCounter(parts.renderer, parts.counter, sizes)
    return [blocks.tokens(scored, place) for place, scored in enumerate(nodes)]


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


@dataclass(frozen=True, slots=True)
class _Room:
    """The prompt that a `TokenBudget` packs for where none has packed before, or not enough."""

    renderer: Renderer
    counter: TokenCounter
    frame: int
    allowance: int
    num_output: int = 0

    def context_window(self) -> int:
        return self.allowance

    def frame_tokens(self, query: QueryBundle, sizes: dict[tuple[str, str], int]) -> int:
        return self.frame


def _fit(
    query: QueryBundle, nodes: list[NodeWithScore], trail: Trail, room: _Room, sizes: dict[tuple[str, str], int]
) -> tuple[list[NodeWithScore], list[Decision]]:
    """Drop nodes from the lowest rank until the prompt fits; what was removed in favour of them comes back.

    Where that leaves nothing, because the best node alone is too large, large nodes are skipped for smaller ones. The
    question and the rules always stay.
    """
    evidence = Evidence(nodes, replace(trail, sizes=sizes))
    by_rank, by_size = (TokenBudget.for_synthesizer(room, safety_margin=0, on_oversize=how) for how in ("stop", "skip"))
    outcome = by_rank.choose(evidence, query)
    if not outcome.nodes:
        outcome = by_size.choose(evidence, query)
    sizes.update(outcome.sizes)
    reports = [replace(decision, stage=STAGE) for decision in outcome.decisions]
    unfit = [replace(one, action="dropped", reason="over_window") for one in reports if one.reason in _NO_ROOM]
    return list(outcome.nodes), [*reversed(unfit), *(one for one in reports if one.reason not in _NO_ROOM)]


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
