"""Quick nodes have what tests need, and share nothing."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded.testing import make_nodes


def test_nodes_have_ids_and_falling_scores() -> None:
    """By default nodes are n0, n1, … with scores from 0.9 down to 0.1."""
    nodes = make_nodes(["text"] * 12)
    assert [scored.node.node_id for scored in nodes] == [f"n{place}" for place in range(12)]
    assert [scored.score for scored in nodes] == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]


def test_nodes_share_no_metadata() -> None:
    """One mapping for all nodes is copied into each, nested values too."""
    shared = {"tags": ["a"]}
    one, two = make_nodes(["x", "y"], metadata=shared)
    one.node.metadata["tags"].append("b")
    assert two.node.metadata == shared == {"tags": ["a"]}


@pytest.mark.parametrize("options", [{"scores": [0.1]}, {"ids": ["a"]}, {"metadata": [{}]}], ids=str)
def test_lengths_must_agree(options: dict[str, Any]) -> None:
    """Too few scores, ids or mappings are an error."""
    with pytest.raises(ValueError, match="zip"):
        make_nodes(["x", "y"], **options)
