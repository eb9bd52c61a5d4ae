"""Fit the nodes of a query into the window, together with what the model is told about those that disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from llama_index_grounded.evidence import identity, mark_of
from llama_index_grounded.rendering.renderer import key_at, size_of
from llama_index_grounded.schema import Action, Conflict, Decision
from llama_index_grounded.selection.carrier import slot_of
from llama_index_grounded.synthesis.prompts import conflict_notes

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.selection.trail import Trail
    from llama_index_grounded.synthesis.parts import PromptParts

__all__ = ["Packed", "Told", "decision_on", "pack"]

STAGE = "CitingSynthesizer"


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
    kept, unfit = _fit(nodes, parts, sum(framing.values()) + told.tokens, allowance, sizes)
    if unfit:  # those that stay have other keys now, and may have nobody left to disagree with
        told = _tell(kept, trail, parts, sizes)
    counts = [size_of(scored, place, parts.renderer, parts.counter, sizes) for place, scored in enumerate(kept)]
    return Packed(nodes=kept, unfit=unfit, told=told, sizes=counts, framing=framing)


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


def _fit(
    nodes: list[NodeWithScore],
    parts: PromptParts,
    frame: int,
    allowance: int,
    sizes: dict[tuple[str, str], int],
) -> tuple[list[NodeWithScore], list[Decision]]:
    """Drop nodes from the lowest rank until the prompt fits; the question and the rules always stay."""
    kept = list(nodes)
    dropped: list[Decision] = []
    used = sum(size_of(scored, place, parts.renderer, parts.counter, sizes) for place, scored in enumerate(kept))
    while kept and parts.counter.estimate(frame + used) > allowance:
        weakest = max(range(len(kept)), key=lambda place: mark_of(kept[place])["rank"])
        size = size_of(kept[weakest], weakest, parts.renderer, parts.counter, sizes)
        left = allowance - parts.counter.estimate(frame + used - size)
        dropped.append(decision_on(kept.pop(weakest), "over_window", value=size, limit=left))
        used -= size
    return kept, dropped


def decision_on(scored: NodeWithScore, reason: str, *, action: Action = "dropped", **numbers: float) -> Decision:
    """Report what the synthesizer did with a node, and why.

    Args:
        scored: A stamped node.
        reason: A short fixed word.
        action: What was done.
        numbers: ``value`` and ``limit`` of the decision, as far as it has them.
    """
    return Decision(
        stage=STAGE,
        action=action,
        node_id=scored.node.node_id,
        document_id=identity(scored.node).document_id,
        reason=reason,
        value=numbers.get("value"),
        limit=numbers.get("limit"),
    )
