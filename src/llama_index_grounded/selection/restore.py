"""What comes back when a budget rejects a node: everything that was removed in its favour.

A passage that does not fit is taken apart. The rest is a replay, not an undo: the nodes are taken as they were before
anything was removed, and each remover is asked again, against admitted nodes only. What somebody else dropped since
counts as seen, so its text does not come back.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import included_text, mark_of, with_stamp, with_text
from llama_index_grounded.selection.carrier import Evidence, Passage, Removal, Trail, rank_of, slot_of
from llama_index_grounded.selection.remover import Cut, Ledger, is_remover

if TYPE_CHECKING:
    from llama_index_grounded.selection.packing import Pack

__all__ = ["Parts", "fresh_ledgers", "trim_by_all", "unreduced", "worth_a_replay"]


def worth_a_replay(trail: Trail, pack: Pack) -> bool:
    """Tell whether anything was removed in favour of a rejected node and could be admitted now.

    Chunks of a passage were never compared with anything, so they are if there is somebody to compare them.
    """
    if pack.split and any(is_remover(stage) for stage in trail.stages):
        return True
    rejected: dict[str, bool] = {}
    for gone in pack.rejected:
        rejected[gone.scored.node.node_id] = gone.final and rejected.get(gone.scored.node.node_id, True)
    admitted = {slot_of(admission.scored) for admission in pack.admitted}
    return any(
        twin in rejected and (slot_of(removal.before) in admitted or not rejected[twin])
        for removal in trail.removals
        for twin in removal.twins
    )


def unreduced(nodes: Evidence) -> list[NodeWithScore]:
    """List the nodes as they were before anything was removed, in rank order.

    A text that somebody else has changed since is taken as it is now. Nodes that were dropped as a whole are here only
    while nobody has judged the rest without them (`Trail.sealed`).
    """
    trail = nodes.trail
    history = _history(trail)
    gone = {slot: removals[-1].before for slot, removals in history.items() if removals[-1].text is None}
    now = {slot_of(scored): scored for scored in nodes}
    ghosts = _ghosts(trail, nodes)
    candidates: list[NodeWithScore] = []
    for slot, scored in {**gone, **now}.items():
        full = _walk_back(scored, history[slot])
        shown = full if full is scored and slot in now else trim_by_all(full, ghosts).after
        if shown is not None or slot in now:
            candidates.append(scored if shown is None else shown)
    return sorted(candidates, key=rank_of)


class Parts:
    """The chunks of passages, for a budget that has no room for a whole one."""

    def __init__(self, nodes: Evidence) -> None:
        self._nodes = nodes
        self._passages = nodes.trail.passages

    @functools.cached_property
    def _known(self) -> tuple[dict[int, NodeWithScore], defaultdict[int, list[Removal]], list[Ledger]]:
        """The nodes by slot, what was removed from them, and what must not come back."""
        now = {slot_of(scored): scored for scored in self._nodes.plain()}
        return now, _history(self._nodes.trail), _ghosts(self._nodes.trail, self._nodes)

    def of(self, candidate: NodeWithScore) -> list[NodeWithScore]:
        """Return the chunks of a passage; none where somebody but a remover has changed its text since.

        The best chunk has the passage's id: what was written on the passage since stays on it.
        """
        passage = self._passages.get(slot_of(candidate))
        if passage is None:
            return []
        nodes, history, ghosts = self._known
        now = nodes.get(passage.slot, candidate)
        full = _walk_back(now, history[passage.slot])
        if included_text(full.node) != passage.text:
            return []
        parts = [_best_alone(now, passage), *passage.parts[1:]]
        return [left for part in parts if (left := trim_by_all(part, ghosts).after) is not None]


def _best_alone(now: NodeWithScore, passage: Passage) -> NodeWithScore:
    """Make the best chunk out of the passage as it is now, with the metadata of its own."""
    best = passage.parts[0]
    own = {name: value for name, value in best.node.metadata.items() if name not in passage.fields}
    update = {
        "metadata": {**own, **now.node.metadata},
        "excluded_llm_metadata_keys": now.node.excluded_llm_metadata_keys,
        "excluded_embed_metadata_keys": now.node.excluded_embed_metadata_keys,
    }
    score = best.score if now.score == passage.score else now.score
    alone = now.model_copy(update={"node": best.node.model_copy(update=update), "score": score})
    mark = mark_of(now)
    place = {"run": mark["run"], "slot": mark["slot"], "rank": mark["rank"], "identity": mark["identity"]}
    names = {"keys": mark["keys"]} if "keys" in mark else {}
    return with_stamp(alone, {**mark_of(best), **place, **names})  # type: ignore[typeddict-item]


def fresh_ledgers(trail: Trail) -> list[Ledger]:
    """Ask each remover of the run for an empty ledger, in the order in which they ran."""
    return [stage.ledger() for stage in trail.stages if is_remover(stage)]


def trim_by_all(candidate: NodeWithScore, ledgers: Iterable[Ledger]) -> Cut:
    """Trim a node by one ledger after the other."""
    scored, twins = candidate, dict[str, int]()
    for ledger in ledgers:
        cut = ledger.trim(scored)
        twins.update(cut.twins)
        if cut.after is None:
            return Cut(None, twins)
        scored = cut.after
    return Cut(scored, twins)


def _history(trail: Trail) -> defaultdict[int, list[Removal]]:
    history: defaultdict[int, list[Removal]] = defaultdict(list)
    for removal in trail.removals:
        history[slot_of(removal.before)].append(removal)
    return history


def _walk_back(scored: NodeWithScore, removals: Sequence[Removal]) -> NodeWithScore:
    """Give a node back its earlier text, as far as nobody else has changed it in between."""
    text = now = included_text(scored.node)
    for removal in reversed(removals):
        if removal.text is not None and removal.text != text:
            break
        text = included_text(removal.before.node)
    return scored if text == now else with_text(scored, text)


def _ghosts(trail: Trail, nodes: Evidence) -> list[Ledger]:
    """Make ledgers of what the removers let stay and somebody else has dropped since."""
    slots: Mapping[int, NodeWithScore] = {slot_of(scored): scored for scored in nodes}
    ids = {scored.node.node_id for scored in nodes}
    ledgers = fresh_ledgers(trail)
    for slot, scored in trail.seen.items():
        if slot not in slots and scored.node.node_id not in ids:
            for ledger in ledgers:
                ledger.admit(scored, scored)
    return ledgers
