"""With the widest scope, a kept node lists the documents of whole chunks that went for it, whatever a budget does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_grounded.evidence import included_text
from llama_index_grounded.rendering.renderer import source_of
from llama_index_grounded.selection import NearDuplicateFilter, ScopedDedup, Stage, TokenBudget
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.parts import LONG, also_in, bodies, decided, ids, in_documents, node_lists, room_for, run, seen

A, B, C, _ = LONG
WIDE = ScopedDedup(scope="global")


def test_the_kept_source_lists_the_documents_of_dropped_chunks() -> None:
    """Each other document once, in rank order, its own not; a chunk that was only shortened is a source itself."""
    texts = [f"{A}\n\n{B}", A, f"{A}\n\n{B}", B, f"{B}\n\n{C}", "Keep it."]
    nodes = make_nodes(texts, metadata=in_documents("a", "b", "c", "a", "d", "e"))
    selection = WIDE.select(nodes)
    assert bodies(selection.nodes) == [texts[0], C, "Keep it."]
    assert also_in(selection.nodes) == [("b", "c"), (), ()]


@pytest.mark.parametrize("scope", ["section", "document"])
def test_narrower_scopes_have_nothing_to_list(scope: Any) -> None:
    """Within one document there is no other one."""
    nodes = make_nodes([A, A], metadata={"document_id": "a"})
    assert also_in(ScopedDedup(scope=scope).postprocess_nodes(nodes)) == [()]


def test_a_chunk_that_two_nodes_hold_is_listed_by_both() -> None:
    """Where no single node says all that the dropped one said, each lists its document."""
    nodes = make_nodes([f"{A}\n\n{C}", B, f"{A}\n\n{B}"], metadata=in_documents("a", "b", "c"))
    assert also_in(WIDE.postprocess_nodes(nodes)) == [("c",), ("c",)]


def test_what_comes_back_lists_what_still_goes() -> None:
    """The budget rejects the node that two went for: one comes back and lists the other; old lists stay."""
    nodes = make_nodes([f"{B}\n\n{' '.join([A, C] * 9)}", B, B], metadata=in_documents("a", "b", "c"))
    kept = WIDE.postprocess_nodes(nodes)
    packed = run([WIDE, TokenBudget(max_tokens=room_for(B, document_id="b"))], nodes)
    assert ids(packed) == ["n1"]
    assert ("restored", "twin_rejected", "n1") in decided(packed)
    assert (also_in(kept), also_in(packed)) == ([("b", "c")], [("c",)])


@given(nodes=node_lists(), room=st.integers(20, 200), near=st.booleans())
def test_nobody_lists_a_document_that_came_back_in_its_place(nodes: list[NodeWithScore], room: int, near: bool) -> None:
    """After any budget, every listed document had a node that is not shown, and lists name no document twice."""
    stages = [WIDE, *([NearDuplicateFilter(threshold=0.5)] if near else []), TokenBudget(max_tokens=room)]
    result = run(stages, nodes)
    shown = {(scored.node.node_id, included_text(scored.node)) for scored in result}
    gone = {source_of(scored, "S1").document_id for scored in nodes if (scored.node.node_id, scored.text) not in shown}
    for listed in also_in(result):
        assert set(listed) <= gone
        assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("stage", [WIDE, NearDuplicateFilter(threshold=0.5)], ids=lambda one: type(one).__name__)
def test_a_node_with_a_list_can_be_written_down(stage: Stage) -> None:
    """Stores, caches and traces write nodes as JSON: a kept node is written and read like any other."""
    kept = stage.postprocess_nodes(make_nodes([A, A], metadata=in_documents("a", "b")))
    assert also_in(kept) == [("b",)]
    (scored,) = kept
    assert json.loads(json.dumps(scored.node.metadata))["document_id"] == "a"
    assert TextNode.from_json(scored.node.to_json()).text == A
    assert json.loads(json.dumps(scored.to_dict()))["node"]["text"] == A


def test_the_laws_of_a_rewrite_hold_for_lists() -> None:
    """Copies of the stage list the same, and the given nodes stay as they were."""
    nodes = make_nodes([A, A, f"{A}\n\n{B}"], metadata=in_documents("a", "b", "c"))
    before = seen(nodes)
    check_postprocessor(lambda: ScopedDedup(scope="global"), cases={"repeated": nodes})
    assert seen(nodes) == before
