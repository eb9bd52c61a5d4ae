"""Put the packed nodes where a model reads best.

Place: last, after the budget. Models use what stands at the edges of a long prompt better than what stands in its
middle (Liu et al., "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024, section 2.3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Literal, TypeVar

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import StrictBool

from llama_index_grounded.evidence import identity
from llama_index_grounded.selection.carrier import Evidence, rank_of
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

__all__ = ["AttentionReorder", "Placement", "place"]

Placement = Literal["edges", "start", "end"]
T = TypeVar("T")


def place(groups: Sequence[Sequence[T]], placement: Placement) -> list[T]:
    """Place groups that come best first, each of them best first.

    ``"edges"`` puts the best group first and the second-best last, the weakest in the middle; ``"start"`` keeps the
    order; ``"end"`` puts the best last. Within a group, the better items stand nearer to the edge.

    Example:
        >>> place([[0], [1], [2], [3], [4]], "edges")
        [0, 2, 4, 3, 1]
        >>> place([["a1", "a2"], ["b1", "b2"], ["c1"]], "edges")
        ['a1', 'a2', 'c1', 'b2', 'b1']
    """
    front, back = {
        "edges": (groups[::2], groups[1::2]),
        "start": (groups, groups[:0]),
        "end": (groups[:0], groups),
    }[placement]
    ending = [item for group in back for item in group]
    return [*(item for group in front for item in group), *reversed(ending)]


class AttentionReorder(Stage):
    """Place the nodes by rank: best first, second-best last, weakest in the middle.

    The rank is the order in which the nodes came from the retriever or the last reranker; scores are not looked at,
    so a missing score moves nothing.

    Args:
        placement: ``"edges"``, ``"start"`` (rank order) or ``"end"`` (best last).
        group_by_document: Keep the nodes of one document version together; its best node places it.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = AttentionReorder().postprocess_nodes(make_nodes(["a", "b", "c", "d"]))
        >>> [node.text for node in nodes]
        ['a', 'c', 'd', 'b']
    """

    kind: ClassVar[Kind] = "reorder"

    placement: Placement = "edges"
    group_by_document: StrictBool = False

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Move the nodes and report where each went."""
        ranked = sorted(nodes, key=rank_of)
        groups = _by_document(ranked) if self.group_by_document else [[scored] for scored in ranked]
        placed = place(groups, self.placement)
        decisions = [
            self.decision(scored, "moved", self.placement, value=now)
            for now, (scored, before) in enumerate(zip(placed, nodes, strict=True))
            if scored is not before
        ]
        return Outcome(placed, decisions)


def _by_document(ranked: Iterable[NodeWithScore]) -> list[list[NodeWithScore]]:
    groups: dict[Hashable, list[NodeWithScore]] = defaultdict(list)
    for scored in ranked:
        groups[identity(scored.node)[:3]].append(scored)
    return list(groups.values())
