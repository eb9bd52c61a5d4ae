"""Quick nodes for tests."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode

__all__ = ["make_nodes"]


def make_nodes(
    texts: Sequence[str],
    scores: Sequence[float | None] | None = None,
    ids: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> list[NodeWithScore]:
    """Make scored nodes in rank order.

    Args:
        texts: One text per node.
        scores: One score per node; by default 0.9, 0.8, … and never under 0.1.
        ids: One node id per node; by default ``n0``, ``n1``, ….
        metadata: One mapping for all nodes or one per node.

    Raises:
        ValueError: If the lengths differ.
    """
    count = len(texts)
    scores = [max(round(0.9 - 0.1 * place, 1), 0.1) for place in range(count)] if scores is None else scores
    ids = [f"n{place}" for place in range(count)] if ids is None else ids
    each = [metadata or {}] * count if metadata is None or isinstance(metadata, Mapping) else list(metadata)
    return [
        NodeWithScore(node=TextNode(id_=id_, text=text, metadata=copy.deepcopy(dict(fields))), score=score)
        for text, score, id_, fields in zip(texts, scores, ids, each, strict=True)
    ]
