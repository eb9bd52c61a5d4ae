"""Documents whose nodes were left out for a node that says the same: what `also_in` of its source lists.

They are kept in the node's stamp by run and slot, so that a node that comes back takes its document along.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import identity, mark_of, with_stamp

__all__ = ["Slot", "Twins", "left_out_with", "with_more_twins"]

Slot: TypeAlias = str
"""Run and slot of a node; a text, so that a stamp can be written as JSON."""


class Twins:
    """Which node lists which, while a budget asks again: every list is on a copy of our own."""

    def __init__(self) -> None:
        self._ours: set[int] = set()
        self._listed: dict[Slot, list[NodeWithScore]] = defaultdict(list)

    def forget(self, candidate: NodeWithScore) -> None:
        """Take a node that is judged anew off every list."""
        for holder in self._listed.pop(_slot(candidate), []):
            _note(holder, {slot: name for slot, name in _twins_of(holder).items() if slot != _slot(candidate)})

    def add(self, holder: NodeWithScore, candidate: NodeWithScore) -> None:
        """List a node that is left out, and what was left out for it, at the one that stands for it."""
        if id(holder) in self._ours:
            self._list(holder, left_out_with(candidate))
            _note(holder, {**_twins_of(holder), **left_out_with(candidate)})

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note a node that may get a list, if it is a copy."""
        if scored is not came:
            self._ours.add(id(scored))
            self._list(scored, _twins_of(scored))

    def _list(self, holder: NodeWithScore, twins: Mapping[Slot, str]) -> None:
        for slot in twins:
            self._listed[slot].append(holder)


def left_out_with(scored: NodeWithScore) -> dict[Slot, str]:
    """Return what goes with a node that is left out: itself, and what was left out for it."""
    return {_slot(scored): identity(scored.node).document_id, **_twins_of(scored)}


def with_more_twins(scored: NodeWithScore, more: Mapping[Slot, str]) -> NodeWithScore:
    """Copy a node with more documents on its list; without any more it is returned as it is."""
    return _with_twins(scored, {**_twins_of(scored), **more}) if more else scored


def _slot(scored: NodeWithScore) -> Slot:
    mark = mark_of(scored)
    return f"{mark['run']}:{mark['slot']}"


def _twins_of(scored: NodeWithScore) -> Mapping[Slot, str]:
    return mark_of(scored).get("twins", {})


def _with_twins(scored: NodeWithScore, twins: Mapping[Slot, str]) -> NodeWithScore:
    own = identity(scored.node).document_id
    also_in = tuple(dict.fromkeys(name for name in twins.values() if name != own))
    return with_stamp(scored, {**mark_of(scored), "twins": twins, "also_in": also_in})


def _note(scored: NodeWithScore, twins: Mapping[Slot, str]) -> None:
    """Note the twins on a copy of our own."""
    scored.node = _with_twins(scored, twins).node
