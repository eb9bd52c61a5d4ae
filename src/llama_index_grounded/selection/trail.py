"""How decisions travel from stage to stage, from query to answer, and never into another query.

A stage hands out an `Evidence` list: the nodes, and an immutable `Trail` of what has happened so far. The trail is also
mirrored on the query bundle, because a foreign postprocessor between two stages returns a plain list, perhaps an empty
one. The synthesizer takes the trail and removes the mirror.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llama_index_grounded._allowed import need_nodes
from llama_index_grounded.evidence import (
    DEFAULT_KEYS,
    MetadataKeys,
    identity_under,
    mark_of,
    stamp,
    stamp_of,
    with_stamp,
)
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Evidence, Trail, places, rank_of
from llama_index_grounded.selection.mirror import Entry, Mirror, calling_events, calling_span

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.selection.stage import Stage

__all__ = ["FOREIGN", "Evidence", "Trail", "collect", "receive"]

FOREIGN = "ForeignPostprocessor"
"""Who dropped a node that left between two stages."""

_runs = itertools.count(1)


def receive(nodes: Iterable[NodeWithScore], bundle: QueryBundle | None, keys: MetadataKeys, stage: Stage) -> Evidence:
    """Take nodes into a stage: continue the run that they belong to, or begin one.

    Nodes that come straight from a stage are taken as they are. After a foreign postprocessor, nodes that only became
    fewer keep their ranks; new nodes or another order are the new ranking. Field names that only a later stage was
    given count from there on.
    """
    nodes = nodes if isinstance(nodes, Sequence) else list(nodes)
    trail = _find(nodes, bundle, stage)
    if trail is None:
        return _begin(nodes, keys)
    straight = isinstance(nodes, Evidence) and not nodes.read_by_others()
    return _reread(_continue(nodes, trail if straight else trail.sealed(), ranked=True), keys)


def collect(
    nodes: Iterable[NodeWithScore],
    bundle: QueryBundle | None,
    keys: MetadataKeys = DEFAULT_KEYS,
    *,
    ends: bool = True,
) -> Evidence:
    """Take nodes into the synthesizer, which ends the run: the mirror on the bundle is removed.

    Field names that only the synthesizer was given count for the sources.
    """
    nodes = nodes if isinstance(nodes, Sequence) else list(nodes)
    trail = _find(nodes, bundle)
    if trail is None:
        return _begin(nodes, keys)
    if ends and bundle is not None:
        Mirror.of(bundle).release(trail.run)
    return _reread(_continue(nodes, trail, ranked=False), keys)


def _find(nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, stage: Stage | None = None) -> Trail | None:
    if isinstance(nodes, Evidence):
        return nodes.trail
    need_nodes(nodes)
    if bundle is None:
        return None
    mirror = Mirror.of(bundle)
    runs = [mark["run"] for scored in nodes if (mark := stamp_of(scored.node))]
    if runs:
        trails = (mirror.trail_of(run) for run in runs)
        return next((trail for trail in trails if trail), None)
    entry = mirror.here()
    return entry.trail if entry is not None and _is_same_query(entry, nodes, stage) else None


def _is_same_query(entry: Entry, nodes: Sequence[NodeWithScore], stage: Stage | None) -> bool:
    """Tell a query of which somebody dropped or rebuilt every node from another one over a reused bundle.

    Inside of an engine its span tells. By hand, new nodes begin a new query, and so does an empty list that comes to a
    stage for the second time. When in doubt it is another query.
    """
    if stage is None:
        return _is_answered_here(entry, nodes)
    span, repeated = calling_span(), any(stage is earlier for earlier in entry.trail.stages)
    if span is not None or entry.span is not None:
        # A function of the application may run several queries in one span; an engine's own event is one query.
        return span == entry.span and (not repeated or len(entry.events) > 1)
    return not nodes and not repeated


def _is_answered_here(entry: Entry, nodes: Sequence[NodeWithScore]) -> bool:
    """Tell whether the synthesizer is called by who called the stages.

    It runs in a span of its own, and in an event of its own inside of the engine's. Some engines put one around the
    stages, too. Outside of an engine's event a synthesizer can not see its caller, and new nodes begin a new query.
    """
    now, then = calling_events(), entry.events
    if now == then:
        return calling_span() == entry.span and (not nodes or entry.span is not None)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(now, then, strict=False)))
    if common > 1:
        return len(now) <= common + 1 and len(then) <= common + 1
    return not nodes and now[:-1] == then


def _begin(nodes: Sequence[NodeWithScore], keys: MetadataKeys) -> Evidence:
    run = next(_runs)
    stamped = [stamp(scored, keys, run=run, slot=place, rank=place) for place, scored in enumerate(nodes)]
    return Evidence(stamped, Trail(run=run, keys=keys, slots=len(stamped), handed=places(stamped)))


def _continue(nodes: Sequence[NodeWithScore], trail: Trail, *, ranked: bool) -> Evidence:
    """Continue a run. With ``ranked=False`` known nodes keep their ranks in any order."""
    nodes = nodes.plain() if isinstance(nodes, Evidence) else list(nodes)
    order = [place.slot for place in trail.handed]
    slots = _known_slots(nodes, trail.run, order)
    if slots == order:
        return Evidence(nodes, trail)
    trail = replace(trail, decisions=(*trail.decisions, *_lost(nodes, slots, trail)))
    if None in slots or (ranked and not _is_subsequence(slots, order)):
        fresh = itertools.count(trail.slots)
        numbered = [next(fresh) if slot is None else slot for slot in slots]
        ranks = range(len(nodes)) if ranked else _ranks(nodes, numbered, trail)
        nodes = [
            stamp(scored, trail.keys, run=trail.run, slot=slot, rank=rank)
            for scored, slot, rank in zip(nodes, numbered, ranks, strict=True)
        ]
        trail = replace(trail, slots=next(fresh))
    return Evidence(nodes, replace(trail, handed=places(nodes)))


def _ranks(nodes: Sequence[NodeWithScore], slots: Sequence[int], trail: Trail) -> list[int]:
    """Keep the ranks of known nodes; new ones come after them."""
    pairs = zip(nodes, slots, strict=True)
    return [rank_of(scored) if slot < trail.slots else slot for scored, slot in pairs]


def _known_slots(nodes: Sequence[NodeWithScore], run: int, order: list[int]) -> list[int | None]:
    """Find the slots of nodes that this run handed out last; a second copy of one counts as new."""
    marks = [stamp_of(scored.node) for scored in nodes]
    found = [mark["slot"] if mark is not None and mark["run"] == run else None for mark in marks]
    if found == order:
        return found
    left = set(order)
    slots: list[int | None] = []
    for slot in found:
        known = slot is not None and slot in left
        slots.append(slot if known else None)
        left.discard(-1 if slot is None else slot)
    return slots


def _is_subsequence(part: Iterable[int | None], whole: Iterable[int]) -> bool:
    rest = iter(whole)
    return all(any(slot == other for other in rest) for slot in part)


def _lost(nodes: Sequence[NodeWithScore], slots: Sequence[int | None], trail: Trail) -> Iterator[Decision]:
    """Report what a foreign postprocessor left out; a node that it rebuilt under the same id is still there."""
    known, ids = set(slots), {scored.node.node_id for scored in nodes}
    for place in trail.handed:
        if place.slot not in known and place.node_id not in ids:
            yield Decision(
                stage=FOREIGN,
                action="dropped",
                node_id=place.node_id,
                document_id=place.document_id,
                reason="not_returned",
            )


def _reread(evidence: Evidence, keys: MetadataKeys) -> Evidence:
    """Identify the nodes anew under field names that nobody was given before; the defaults are no such names."""
    if keys in (evidence.trail.keys, DEFAULT_KEYS):
        return evidence
    names = keys.model_dump()
    nodes = [
        with_stamp(scored, {**mark_of(scored), "identity": identity_under(scored.node, keys), "keys": names})
        for scored in evidence.plain()
    ]
    return Evidence(nodes, replace(evidence.trail, keys=keys, handed=places(nodes)))
