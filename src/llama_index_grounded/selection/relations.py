"""What a node says of its neighbours and of the node that its position counts from."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo

__all__ = ["neighbour_ids", "source_node"]


def neighbour_ids(node: BaseNode) -> tuple[str | None, str | None]:
    """Return the ids of the chunks before and behind a node, None where it names none."""
    before, behind = _related(node, NodeRelationship.PREVIOUS), _related(node, NodeRelationship.NEXT)
    return (before and before.node_id) or None, (behind and behind.node_id) or None


def source_node(node: BaseNode) -> tuple[str, str | None] | None:
    """Name the node that positions count from, by id and hash; None where a node says nothing of it."""
    found = _related(node, NodeRelationship.SOURCE)
    return (found.node_id, found.hash) if found else None


def _related(node: BaseNode, name: NodeRelationship) -> RelatedNodeInfo | None:
    found = node.relationships.get(name)
    return found if isinstance(found, RelatedNodeInfo) else None
