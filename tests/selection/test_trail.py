"""Decisions find their way from stage to synthesizer, past anything in between, and into no other query."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.evidence import STAMP
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection import AttentionReorder, ScopedDedup, ScoreGate, Stage, TokenBudget
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.trail import FOREIGN, collect
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import (
    LONG,
    Foreign,
    ForeignAsync,
    backwards,
    bodies,
    drop_all,
    ids,
    look_and_pass,
    node_lists,
    rebuild,
    redact_in_place,
    repickled,
    rewrap,
)

A, B, C, LEAD = LONG
HOME = {"document_id": "d"}
Postprocessors = list[Any]


def run(stages: Postprocessors, nodes: list[NodeWithScore], bundle: QueryBundle) -> Evidence:
    """Run a chain as LlamaIndex's engines do, and take the result as the synthesizer does."""
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query_bundle=bundle)
    return collect(nodes, bundle)


async def run_async(stages: Postprocessors, nodes: list[NodeWithScore], bundle: QueryBundle) -> Evidence:
    """Run a chain as LlamaIndex's engines do in async."""
    for stage in stages:
        nodes = await stage.apostprocess_nodes(nodes, query_bundle=bundle)
    return collect(nodes, bundle)


def reasons(decisions: tuple[Decision, ...]) -> list[tuple[str, str, str]]:
    """Return who decided what about which node, moves left out."""
    return [(d.stage, d.reason, d.node_id) for d in decisions if d.action != "moved"]


KEPT = ("ScoreGate", "best_score", "n0")
CUT = ("ScopedDedup", "duplicate", "n1")


def chain(between: Any) -> Postprocessors:
    """Build a chain with a foreign postprocessor in the middle."""
    return [ScoreGate(min_score=0.1), ScopedDedup(), between, TokenBudget(top_n=2), AttentionReorder()]


def repeating() -> list[NodeWithScore]:
    """Make three nodes, the second of which repeats the first."""
    return make_nodes([A, f"{A}\n\n{B}", C], metadata=HOME)


FOREIGNERS: list[tuple[Any, list[str], list[tuple[str, str, str]]]] = [
    (Foreign(act=rewrap), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (Foreign(act=look_and_pass), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (Foreign(act=redact_in_place), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (ForeignAsync(act=rewrap), ["n0", "n1"], [("TokenBudget", "top_n", "n2")]),
    (
        Foreign(act=backwards),
        ["n2", "n1"],
        [("TokenBudget", "duplicate", "n0"), ("TokenBudget", "twin_rejected", "n1")],
    ),
    (
        SimilarityPostprocessor(similarity_cutoff=0.85),
        ["n0"],
        [(FOREIGN, "not_returned", "n1"), (FOREIGN, "not_returned", "n2")],
    ),
    (Foreign(act=drop_all), [], [(FOREIGN, "not_returned", name) for name in ("n0", "n1", "n2")]),
    (ForeignAsync(act=drop_all), [], [(FOREIGN, "not_returned", name) for name in ("n0", "n1", "n2")]),
]


@pytest.mark.parametrize(
    "between, kept, later", FOREIGNERS, ids=lambda value: value.class_name() if isinstance(value, Foreign) else None
)
@pytest.mark.parametrize("in_async", [False, True])
def test_every_decision_arrives_past_a_foreign_postprocessor(
    between: Any, kept: list[str], later: Any, in_async: bool
) -> None:
    """What our stages decided is complete and in order, sync and async, also when no node survives."""
    bundle = QueryBundle("q")
    evidence = (
        asyncio.run(run_async(chain(between), repeating(), bundle))
        if in_async
        else run(chain(between), repeating(), bundle)
    )
    assert ids(evidence) == kept
    assert reasons(evidence.trail.decisions) == [KEPT, CUT, *later]


def test_decisions_survive_new_nodes_of_the_same_texts() -> None:
    """A compressor that rebuilds every node loses the nodes, not the decisions."""
    evidence = run(chain(Foreign(act=rebuild)), repeating(), QueryBundle("q"))
    assert bodies(evidence) == [A, B]
    assert reasons(evidence.trail.decisions)[:2] == [KEPT, CUT]


def test_the_last_word_may_be_a_foreign_one() -> None:
    """A postprocessor after our last stage does not keep the decisions from the synthesizer."""
    stages = [ScoreGate(min_score=0.1), Foreign(act=drop_all)]
    assert reasons(run(stages, repeating(), QueryBundle("q")).trail.decisions)[0] == KEPT


def test_a_refusal_passes_through_the_rest_of_the_chain() -> None:
    """Once a gate has refused, later stages and a second use of the same gate keep its decisions."""
    gate = ScoreGate(min_score=0.95)
    evidence = run([gate, ScopedDedup(), gate, TokenBudget(top_n=1)], repeating(), QueryBundle("q"))
    assert evidence == []
    assert [reason for _, reason, _ in reasons(evidence.trail.decisions)] == ["low_score"] * 3


@given(nodes=node_lists(), cutoff=st.sampled_from([0.0, 0.3, 0.6]))
def test_over_the_whole_chain_no_node_disappears_silently(nodes: list[NodeWithScore], cutoff: float) -> None:
    """Kept, dropped and refused nodes together are the nodes that came, restored ones counted once."""
    stages = [
        ScoreGate(min_score=0.1, on_missing_score="pass"),
        ScopedDedup(scope="global"),
        SimilarityPostprocessor(similarity_cutoff=cutoff),
        TokenBudget(max_tokens=60),
        AttentionReorder(),
    ]
    evidence = run(stages, nodes, QueryBundle("q"))
    gone = {d.node_id for d in evidence.trail.decisions if d.action in ("dropped", "refused")}
    assert gone | set(ids(evidence)) == set(ids(nodes))


# Ranks


def test_fewer_nodes_keep_their_ranks_and_another_order_is_a_new_ranking() -> None:
    """A filter in between changes no rank; a reranker does."""
    nodes = make_nodes(["a", "b", "c"])
    fewer = [ScopedDedup(), Foreign(act=lambda nodes: [nodes[0], nodes[2]]), AttentionReorder(placement="end")]
    assert ids(run(fewer, nodes, QueryBundle("q"))) == ["n2", "n0"]
    assert ids(
        run([ScopedDedup(), Foreign(act=backwards), AttentionReorder(placement="start")], nodes, QueryBundle("q"))
    ) == ["n2", "n1", "n0"]


def test_an_order_by_another_postprocessor_is_respected() -> None:
    """LongContextReorder between our stages loses and doubles nothing."""
    stages = [ScoreGate(min_score=0.1), LongContextReorder(), ScopedDedup(), TokenBudget(max_tokens=500)]
    evidence = run(stages, make_nodes([A, B, C]), QueryBundle("q"))
    assert ids(evidence) == ids(LongContextReorder().postprocess_nodes(make_nodes([A, B, C])))


def test_the_synthesizer_keeps_the_ranks_of_known_nodes() -> None:
    """A foreign order after our last stage is the prompt's order; new nodes rank after all known ones."""
    bundle = QueryBundle("q")
    nodes = ScopedDedup().postprocess_nodes(make_nodes(["a", "b"]), bundle)
    evidence = collect([*make_nodes(["new"], ids=["new"]), *backwards(nodes)], bundle)
    assert [(scored.node.node_id, scored.node.metadata[STAMP]["rank"]) for scored in evidence] == [
        ("new", 2),
        ("n1", 1),
        ("n0", 0),
    ]


# One query and the next


def test_a_reused_bundle_begins_anew() -> None:
    """The same bundle can be asked again, after an answer, after an error and after a chain without synthesizer."""
    bundle, stages = QueryBundle("q"), chain(Foreign(act=rewrap))
    first = run(stages, repeating(), bundle).trail.decisions
    for _ in range(2):
        assert run(stages, repeating(), bundle).trail.decisions == first
    nodes: list[NodeWithScore] = repeating()
    for stage in stages[:3]:
        nodes = stage.postprocess_nodes(nodes, query_bundle=bundle)
    assert run(stages, repeating(), bundle).trail.decisions == first
    assert run(stages, [], bundle).trail.decisions == ()


def test_the_bundle_is_left_as_it_was() -> None:
    """After the answer nothing of the query stays on the bundle, and it equals a new one all along."""
    bundle = QueryBundle("q")
    run(chain(Foreign(act=rewrap)), repeating(), bundle)
    assert bundle == QueryBundle("q")
    assert bundle.to_dict() == QueryBundle("q").to_dict()
    assert not any(mirror._entries for mirror in vars(bundle).values() if hasattr(mirror, "_entries"))


def test_a_bundle_can_be_copied_and_pickled_in_mid_query() -> None:
    """What the stages keep on a bundle does not hinder those who copy it."""
    bundle = QueryBundle("q")
    ScopedDedup().postprocess_nodes(repeating(), bundle)
    for copied in (copy.deepcopy(bundle), repickled(bundle)):
        assert copied == bundle
        assert collect([], copied).trail.decisions == ()


@pytest.mark.parametrize(
    "copier",
    [copy.copy, copy.deepcopy, repickled, list],
    ids=["copy", "deepcopy", "pickle", "list"],
)
def test_copies_of_a_result_are_plain_lists(copier: Callable[[list[NodeWithScore]], list[NodeWithScore]]) -> None:
    """A copied or pickled list of nodes is a list like any other, and still finds its decisions by the bundle."""
    bundle = QueryBundle("q")
    copied = copier(ScopedDedup().postprocess_nodes(repeating(), bundle))
    assert type(copied) is list
    assert reasons(collect(copied, bundle).trail.decisions) == [CUT]


CHAINS = [chain(Foreign(act=act)) for act in (rewrap, drop_all, rebuild)] + [chain(ForeignAsync(act=drop_all))]


@pytest.mark.parametrize("shared", [True, False])
def test_fifty_concurrent_queries_do_not_mix(shared: bool) -> None:
    """Fifty async queries through the same stages, over one bundle or each its own, get their own decisions each."""

    async def ask_all() -> list[Evidence]:
        bundle = QueryBundle("q")
        bundles = [bundle if shared else QueryBundle("q") for _ in range(50)]
        inputs = [make_nodes([A, f"{A}\n\n{B}", C], ids=[f"{n}a", f"{n}b", f"{n}c"], metadata=HOME) for n in range(50)]
        calls = (run_async(CHAINS[n % len(CHAINS)], inputs[n], bundles[n]) for n in range(50))
        return await asyncio.gather(*calls)

    for number, evidence in enumerate(asyncio.run(ask_all())):
        decisions = [d for d in evidence.trail.decisions if d.stage in ("ScoreGate", "ScopedDedup")]
        assert [(d.reason, d.node_id) for d in decisions] == [("best_score", f"{number}a"), ("duplicate", f"{number}b")]


def test_concurrent_threads_do_not_mix() -> None:
    """Ten threads that share one bundle and a postprocessor that drops everything get their own decisions each."""
    bundle, start, found = QueryBundle("q"), threading.Barrier(10), dict[int, list[str]]()

    def ask(number: int) -> None:
        nodes = make_nodes([A, A], ids=[f"{number}a", f"{number}b"], metadata=HOME)
        start.wait()
        for _ in range(5):
            evidence = run([ScopedDedup(), Foreign(act=drop_all)], nodes, bundle)
            found.setdefault(number, []).extend(d.node_id for d in evidence.trail.decisions if d.stage == "ScopedDedup")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"{number}b"] * 5 for number in range(10)}


def test_a_query_that_begins_empty_takes_nothing_from_a_running_one() -> None:
    """While one query is between two stages, another one over the same bundle that found nothing has no decisions."""

    async def both() -> Evidence:
        bundle, inside, done = QueryBundle("q"), asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            await ScopedDedup().apostprocess_nodes(repeating(), bundle)
            inside.set()
            await done.wait()

        task = asyncio.create_task(slow())
        await inside.wait()
        other = await run_async([ScoreGate(min_score=0.5), ScopedDedup()], [], bundle)
        done.set()
        await task
        return other

    assert asyncio.run(both()).trail.decisions == ()


@pytest.mark.parametrize("lost", [[], None], ids=["empty", "plain"])
def test_stages_and_synthesizer_may_run_in_different_tasks(lost: list[NodeWithScore] | None) -> None:
    """A workflow that selects in one step and answers in the next keeps the decisions."""
    bundle = QueryBundle("q")
    nodes = asyncio.run(ScopedDedup().apostprocess_nodes(repeating(), bundle))
    assert reasons(collect(list(nodes) if lost is None else lost, bundle).trail.decisions)[0] == CUT


def test_without_a_bundle_the_list_itself_carries_the_decisions() -> None:
    """Stages that are called by hand, without a query, hand the trail on with their list."""
    nodes: list[NodeWithScore] = repeating()
    stages: list[Stage] = [ScoreGate(min_score=0.1), ScopedDedup(), TokenBudget(top_n=2)]
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes)
    assert reasons(collect(nodes, None).trail.decisions) == [KEPT, CUT, ("TokenBudget", "top_n", "n2")]


def test_many_unanswered_queries_do_not_pile_up() -> None:
    """A bundle that is used over and over without our synthesizer keeps a bounded number of trails."""
    bundle = QueryBundle("q")
    for _ in range(300):
        ScopedDedup().postprocess_nodes(make_nodes(["text"]), bundle)
    (mirror,) = [value for value in vars(bundle).values() if hasattr(value, "_entries")]
    assert len(mirror._entries) <= 256
