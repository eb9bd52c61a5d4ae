"""A retriever that finds what it is told, and shares nothing with anybody."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from hypothesis import given
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded import GroundedQueryEngine
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes
from tests.hostile import texts
from tests.selection.parts import node_lists, seen

NODES = make_nodes(["Within 21 days.", "Keep it."], scores=[0.4, None], metadata={"tags": ["a"]})


def retrieve(retriever: FixedRetriever, query: str | QueryBundle, in_async: bool) -> list[NodeWithScore]:
    """Retrieve in one of both ways."""
    return asyncio.run(retriever.aretrieve(query)) if in_async else retriever.retrieve(query)


@given(nodes=node_lists(), question=texts())
def test_it_finds_its_nodes_for_every_question(nodes: list[NodeWithScore], question: str) -> None:
    """Nodes, scores and order are those that were given, whatever is asked, and however often."""
    retriever = FixedRetriever(nodes)
    for _ in range(2):
        found = retriever.retrieve(question)
        assert seen(found) == seen(nodes)
        assert [scored.node for scored in found] == [scored.node for scored in nodes]


def test_llamaindex_leaves_out_an_id_that_came_before() -> None:
    """As from any retriever, the first node of an id is found and no second one."""
    assert FixedRetriever(make_nodes(["one", "two"], ids=["a", "a"])).retrieve("?") == make_nodes(["one"], ids=["a"])


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("query", ["How long?", QueryBundle("How long?"), ""])
def test_both_ways_find_the_same(query: str | QueryBundle, in_async: bool) -> None:
    """Sync and async, by text or by bundle, a missing score stays missing."""
    assert retrieve(FixedRetriever(NODES), query, in_async) == NODES
    assert retrieve(FixedRetriever([]), query, in_async) == []


@pytest.mark.parametrize("in_async", [False, True])
def test_nothing_is_shared(in_async: bool) -> None:
    """A change to what was given or to what was found, nested metadata included, is seen by no other query."""
    given_nodes = copy.deepcopy(NODES)
    retriever = FixedRetriever(given_nodes)
    for changed in (given_nodes, retrieve(retriever, "?", in_async)):
        changed[0].node.metadata["tags"].append("b")
        changed[0].node.set_content("changed")
        changed[1].score = 1.0
        changed.pop()
    assert retrieve(retriever, "?", in_async) == NODES


class Careless(BaseNodePostprocessor):
    """Somebody else's stage, which writes into the nodes that it is given."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for scored in nodes:
            scored.node.set_content(f"{scored.node.get_content()} Again.")
        return nodes


async def test_an_engine_over_it_answers_every_question_alike() -> None:
    """Also with a stage that writes into its nodes, each query sees the nodes as they were given."""
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "21 days."}])
    engine = GroundedQueryEngine.from_args(retriever=FixedRetriever(NODES), llm=llm, node_postprocessors=[Careless()])
    responses = [engine.query("How long?"), *await asyncio.gather(*(engine.aquery("How long?") for _ in range(5)))]
    shown = {scored.node.get_content() for response in responses for scored in response.source_nodes}
    assert shown == {"Within 21 days. Again.", "Keep it. Again."}


@pytest.mark.parametrize(
    "nodes", [["a text"], [NODES[0].node], "text", [*NODES, None]], ids=["text", "node", "str", "none"]
)
def test_what_has_no_score_is_refused(nodes: Any) -> None:
    """Texts and bare nodes are refused at once, and the message names the helper."""
    with pytest.raises(TypeError, match="make_nodes"):
        FixedRetriever(nodes)


def test_nodes_may_come_from_an_iterator() -> None:
    """What can be read only once is read once, and found each time."""
    retriever = FixedRetriever(iter(make_nodes(["x", "y"])))
    assert [[scored.text for scored in retriever.retrieve("q")] for _ in range(2)] == [["x", "y"]] * 2
