"""Put the packed nodes where a model reads best.

Place: last, after the budget. Models use what stands at the edges of a long prompt better than what stands in its
middle (Liu et al., "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024, section 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar

from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.evidence import mark_of
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.selection.trail import Evidence

__all__ = ["AttentionReorder", "Placement", "place"]

Placement = Literal["edges", "start", "end"]
T = TypeVar("T")


def place(ranked: Sequence[T], placement: Placement) -> list[T]:
    """Place items that come best first.

    ``"edges"`` puts the best first and the second-best last, the weakest in the middle; ``"start"`` keeps the order;
    ``"end"`` puts the best last.

    Example:
        >>> place([0, 1, 2, 3, 4], "edges")
        [0, 2, 4, 3, 1]
    """
    if placement == "start":
        return list(ranked)
    if placement == "end":
        return list(reversed(ranked))
    return [*ranked[::2], *reversed(ranked[1::2])]


class AttentionReorder(Stage):
    """Place the nodes by rank: best first, second-best last, weakest in the middle.

    The rank is the order in which the nodes came from the retriever or the last reranker; scores are not looked at,
    so a missing score moves nothing.

    Args:
        placement: ``"edges"``, ``"start"`` (rank order) or ``"end"`` (best last).
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = AttentionReorder().postprocess_nodes(make_nodes(["a", "b", "c", "d"]))
        >>> [node.text for node in nodes]
        ['a', 'c', 'd', 'b']
    """

    kind: ClassVar[Kind] = "reorder"

    placement: Placement = "edges"

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:  # noqa: ARG002 - the rank knows the query already
        """Move the nodes and report where each went."""
        ranked = sorted(nodes, key=lambda scored: mark_of(scored)["rank"])
        placed = place(ranked, self.placement)
        decisions = [
            self.decision(scored, "moved", self.placement, value=now)
            for now, (scored, before) in enumerate(zip(placed, nodes, strict=True))
            if scored is not before
        ]
        return Outcome(placed, decisions)
