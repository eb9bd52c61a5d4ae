"""How decisions travel from stage to stage, from query to answer, and never into another query.

A stage hands out an `Evidence` list: the nodes, and an immutable `Trail` of what has happened so far. The trail is also
mirrored on the query bundle, under the number of the run, because a foreign postprocessor between two stages returns a
plain list, perhaps an empty one. The stamps on the nodes carry the run's number, so the right trail is found even when
one bundle serves several queries at a time. The synthesizer takes the trail and removes the mirror.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys, mark_of, stamp, stamp_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import QueryBundle

    from llama_index_grounded.schema import Decision
    from llama_index_grounded.selection.stage import Remover, Stage

__all__ = ["Evidence", "Removal", "Trail", "collect", "receive"]

_MIRROR = "_llama_index_grounded"
_MIRRORED_RUNS = 64
_runs = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Removal:
    """What a remover took away from a node, or the whole node, in favour of a better-ranked one."""

    remover: Remover
    before: NodeWithScore
    """The node as it came to the remover."""
    after: NodeWithScore | None
    """The node as it left; None where it was dropped."""


@dataclass(frozen=True, slots=True)
class Trail:
    """What has happened to the nodes of one query so far."""

    run: int
    slots: int = 0
    """Number of nodes that were ever stamped in this run."""
    order: tuple[int, ...] = ()
    """Slots of the nodes that the last stage handed out, in that order."""
    stages: tuple[Stage, ...] = ()
    decisions: tuple[Decision, ...] = ()
    removals: tuple[Removal, ...] = ()
    sizes: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Token counts of rendered blocks, so that no block is encoded twice in a query."""

    def sealed(self) -> Trail:
        """Forget whole nodes that a remover dropped: what comes after it has not judged them, so they can not return."""
        return replace(self, removals=tuple(removal for removal in self.removals if removal.after is not None))


class Evidence(list[NodeWithScore]):
    """A list of stamped nodes that knows its trail. To everybody else it is a plain list."""

    def __init__(self, nodes: Iterable[NodeWithScore], trail: Trail) -> None:
        super().__init__(nodes)
        self.trail = trail

    def handed_on(self, bundle: QueryBundle | None) -> Evidence:
        """Mirror the trail on the bundle and return the list itself."""
        if bundle is not None:
            mirror: dict[int, Trail] = bundle.__dict__.setdefault(_MIRROR, {})
            mirror[self.trail.run] = self.trail
            for stale in list(mirror)[:-_MIRRORED_RUNS]:
                mirror.pop(stale, None)
        return self


def receive(
    nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, keys: MetadataKeys, stage: Stage
) -> Evidence:
    """Take nodes into a stage: continue the run that they belong to, or begin one.

    Nodes that come straight from a stage are taken as they are. After a foreign postprocessor, nodes that only became
    fewer keep their ranks; new nodes or another order are the new ranking.
    """
    trail = _find(nodes, bundle)
    if trail is None or (not nodes and any(stage is earlier for earlier in trail.stages)):
        return _begin(nodes, keys)
    if isinstance(nodes, Evidence) and _slots(nodes) == trail.order:
        return nodes
    return _resume(nodes, trail.sealed(), keys)


def collect(
    nodes: Sequence[NodeWithScore],
    bundle: QueryBundle | None,
    keys: MetadataKeys = DEFAULT_KEYS,
    *,
    ends: bool = True,
) -> Evidence:
    """Take nodes into the synthesizer, which ends the run: the mirror on the bundle is removed."""
    trail = _find(nodes, bundle)
    if ends and bundle is not None and trail is not None:
        bundle.__dict__.get(_MIRROR, {}).pop(trail.run, None)
    if trail is None:
        return _begin(nodes, keys)
    if _slots(nodes) == trail.order:
        return nodes if isinstance(nodes, Evidence) else Evidence(nodes, trail)
    return _resume(nodes, trail, keys, ranked=False)


def _find(nodes: Sequence[NodeWithScore], bundle: QueryBundle | None) -> Trail | None:
    if isinstance(nodes, Evidence):
        return nodes.trail
    mirror: dict[int, Trail] = {} if bundle is None else bundle.__dict__.get(_MIRROR, {})
    if not nodes:
        return list(mirror.values())[-1] if mirror else None
    runs = (mark["run"] for scored in nodes if (mark := stamp_of(scored.node)))
    return next((mirror[run] for run in runs if run in mirror), None)


def _slots(nodes: Sequence[NodeWithScore]) -> tuple[int | None, ...]:
    marks = (stamp_of(scored.node) for scored in nodes)
    return tuple(mark["slot"] if mark else None for mark in marks)


def _begin(nodes: Sequence[NodeWithScore], keys: MetadataKeys) -> Evidence:
    run = next(_runs)
    stamped = [stamp(scored, keys, run=run, slot=place, rank=place) for place, scored in enumerate(nodes)]
    return Evidence(stamped, Trail(run, slots=len(stamped), order=tuple(range(len(stamped)))))


def _resume(nodes: Sequence[NodeWithScore], trail: Trail, keys: MetadataKeys, *, ranked: bool = True) -> Evidence:
    """Continue a run after a foreign postprocessor. With ``ranked=False`` known nodes keep their ranks in any order."""
    own = set(trail.order)
    slots = [_own_slot(scored, trail.run, own) for scored in nodes]
    if None not in slots and (not ranked or _is_subsequence(slots, trail.order)):
        return Evidence(nodes, replace(trail, order=tuple(slot for slot in slots if slot is not None)))
    fresh = itertools.count(trail.slots)
    numbered = [next(fresh) if slot is None else slot for slot in slots]
    stamped = [
        stamp(scored, keys, run=trail.run, slot=slot, rank=place)
        for place, (scored, slot) in enumerate(zip(nodes, numbered, strict=True))
    ]
    return Evidence(stamped, replace(trail, slots=next(fresh), order=tuple(numbered)))


def _own_slot(scored: NodeWithScore, run: int, left: set[int]) -> int | None:
    """Find the slot of a node that this run handed out; a second copy of it counts as new."""
    mark = stamp_of(scored.node)
    if mark is None or mark["run"] != run or mark["slot"] not in left:
        return None
    left.remove(mark["slot"])
    return mark["slot"]


def _is_subsequence(part: Sequence[int | None], whole: Sequence[int]) -> bool:
    rest = iter(whole)
    return all(slot in rest for slot in part)
