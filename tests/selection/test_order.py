"""The best nodes stand where a model reads best, by rank and never by score."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore
from pydantic import ValidationError

from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.selection import AttentionReorder
from llama_index_grounded.selection.order import place
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.parts import ids, node_lists, seen

PLACEMENTS = st.sampled_from(["edges", "start", "end"])


@given(nodes=node_lists(), placement=PLACEMENTS, grouped=st.booleans())
def test_a_reorder_is_a_permutation(nodes: list[NodeWithScore], placement: Any, grouped: bool) -> None:
    """Every node comes out once, unchanged, and each that changed its place is reported with the new one."""
    selection = AttentionReorder(placement=placement, group_by_document=grouped).select(nodes)
    assert sorted(seen(selection.nodes)) == sorted(seen(nodes))
    moved = {d.node_id: d.value for d in selection.decisions}
    now = ids(selection.nodes)
    assert moved == {name: now.index(name) for at, name in enumerate(ids(nodes)) if now.index(name) != at}


@given(count=st.integers(0, 30))
def test_the_better_an_item_the_nearer_to_an_edge(count: int) -> None:
    """The best is first, the second-best last, and no item is farther from its edge than a weaker one."""
    placed = place([[item] for item in range(count)], "edges")
    distance = {item: min(at, count - 1 - at) for at, item in enumerate(placed)}
    assert [distance[item] for item in range(count)] == sorted(distance.values())
    assert placed[:1] == list(range(count))[:1]
    assert placed[1:][-1:] == list(range(count))[1:2]


@given(groups=st.lists(st.lists(st.integers(), min_size=1), max_size=6), placement=PLACEMENTS)
def test_groups_stay_together(groups: list[list[int]], placement: Any) -> None:
    """A group is one stretch of the result."""
    tagged = [[(at, item) for item in group] for at, group in enumerate(groups)]
    placed = [at for at, _ in place(tagged, placement)]
    assert len(placed) == sum(map(len, groups))
    assert sum(1 for one, two in itertools.pairwise(placed) if one != two) == max(len(groups) - 1, 0)


def test_the_laws_of_a_reorder() -> None:
    """The stage keeps the laws of its kind."""
    check_postprocessor(AttentionReorder)
    check_postprocessor(lambda: AttentionReorder(group_by_document=True))


@pytest.mark.parametrize(
    "count, placement, expected",
    [
        (0, "edges", []),
        (1, "edges", [0]),
        (2, "edges", [0, 1]),
        (3, "edges", [0, 2, 1]),
        (4, "edges", [0, 2, 3, 1]),
        (5, "edges", [0, 2, 4, 3, 1]),
        (4, "start", [0, 1, 2, 3]),
        (4, "end", [3, 2, 1, 0]),
    ],
)
def test_placements(count: int, placement: Any, expected: list[int]) -> None:
    """Ranks are placed best first and second-best last, in order, or best last."""
    nodes = make_nodes(["text"] * count)
    assert ids(AttentionReorder(placement=placement).postprocess_nodes(nodes)) == [f"n{rank}" for rank in expected]


@pytest.mark.parametrize("scores", [[0.1, 0.9, 0.5, 0.7], [None, 0.9, float("nan"), 0.1], [0.5] * 4], ids=str)
def test_scores_move_nothing(scores: list[float | None]) -> None:
    """The order that came in is the rank, whatever the scores say or do not say."""
    assert ids(AttentionReorder().postprocess_nodes(make_nodes(["text"] * 4, scores=scores))) == [
        "n0",
        "n2",
        "n3",
        "n1",
    ]


@pytest.mark.parametrize(
    "placement, expected",
    [("edges", "a0 a3 c4 b2 b1"), ("start", "a0 a3 b1 b2 c4"), ("end", "c4 b2 b1 a3 a0")],
)
def test_nodes_of_a_document_can_stay_together(placement: Any, expected: str) -> None:
    """A document is placed by its best node, and its better nodes stand nearer to the edge."""
    names = ["a0", "b1", "b2", "a3", "c4"]
    nodes = make_nodes(names, ids=names, metadata=[{"doc": name[0]} for name in names])
    stage = AttentionReorder(placement=placement, group_by_document=True, keys=MetadataKeys(document_id="doc"))
    assert ids(stage.postprocess_nodes(nodes)) == expected.split()


@pytest.mark.parametrize(
    "options",
    [{"placement": "middle"}, {"place": "end"}, {"group_by_document": "yes"}, {"group_by_document": 1}],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A misspelt option or value is an error at construction."""
    with pytest.raises(ValidationError):
        AttentionReorder(**options)
