"""One query never gets the decisions of another, whoever shares bundles, stages, threads and tasks."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.selection import ScopedDedup, ScoreGate, Stage, TokenBudget
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.trail import collect
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import (
    LONG,
    Foreign,
    ForeignAsync,
    chain_around,
    decided,
    drop_all,
    in_span,
    rebuild,
    repeating,
    repickled,
    rewrap,
    run,
    run_async,
)

A, B, C, LEAD = LONG
HOME = {"document_id": "d"}
KEPT = ("kept", "best_score", "n0")
CUT = ("shortened", "duplicate", "n1")


def test_a_reused_bundle_begins_anew() -> None:
    """The same bundle can be asked again, after an answer, after an error and after a chain without synthesizer."""
    bundle, stages = QueryBundle("q"), chain_around(Foreign(act=rewrap))
    first = run(stages, repeating(), bundle).trail.decisions
    for _ in range(2):
        assert run(stages, repeating(), bundle).trail.decisions == first
    nodes: list[NodeWithScore] = repeating()
    for stage in stages[:3]:
        nodes = stage.postprocess_nodes(nodes, query_bundle=bundle)
    assert run(stages, repeating(), bundle).trail.decisions == first
    assert run(stages, [], bundle).trail.decisions == ()


def test_a_bundle_that_everybody_uses_begins_anew_for_new_nodes() -> None:
    """Stages by hand over one bundle, never answered: the next chain and the next answer know nothing of them."""
    bundle = QueryBundle("q")
    ScoreGate(min_score=0.95).postprocess_nodes(repeating(), bundle)
    ScopedDedup().postprocess_nodes(repeating(), bundle)
    assert collect(repeating(), bundle).trail.decisions == ()
    assert decided(run([ScoreGate(min_score=0.1)], repeating(), bundle)) == [KEPT]


def test_another_engine_that_finds_nothing_begins_anew() -> None:
    """The span of an engine tells its query from an unanswered one of another engine, sync and async."""

    async def both(empty: bool) -> Evidence:
        bundle = QueryBundle("q")
        nodes = await in_span(select(bundle))
        assert len(nodes) == 3
        return await in_span(run_async([ScoreGate(min_score=0.1)], [] if empty else repeating(), bundle))

    async def select(bundle: QueryBundle) -> list[NodeWithScore]:
        return await ScopedDedup().apostprocess_nodes(repeating(), bundle)

    assert decided(asyncio.run(both(empty=True))) == []
    assert decided(asyncio.run(both(empty=False))) == [KEPT]


def test_the_bundle_is_left_as_it_was() -> None:
    """After the answer nothing of the query stays on the bundle, and it equals a new one all along."""
    bundle = QueryBundle("q")
    run(chain_around(Foreign(act=rewrap)), repeating(), bundle)
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
    assert decided(collect(copied, bundle)) == [CUT]


CHAINS = [chain_around(Foreign(act=act)) for act in (rewrap, drop_all, rebuild)] + [
    chain_around(ForeignAsync(act=drop_all))
]


@pytest.mark.parametrize("shared", [True, False])
def test_fifty_concurrent_queries_do_not_mix(shared: bool) -> None:
    """Fifty async queries through the same stages, over one bundle or each its own, get their own decisions each."""

    async def ask_all() -> list[Evidence]:
        bundle = QueryBundle("q")
        bundles = [bundle if shared else QueryBundle("q") for _ in range(50)]
        inputs = [make_nodes([A, f"{A}\n\n{B}", C], ids=[f"{n}a", f"{n}b", f"{n}c"], metadata=HOME) for n in range(50)]
        calls = (in_span(run_async(CHAINS[n % len(CHAINS)], inputs[n], bundles[n])) for n in range(50))
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
    assert decided(collect(list(nodes) if lost is None else lost, bundle))[0] == CUT


def test_without_a_bundle_the_list_itself_carries_the_decisions() -> None:
    """Stages that are called by hand, without a query, hand the trail on with their list."""
    nodes: list[NodeWithScore] = repeating()
    stages: list[Stage] = [ScoreGate(min_score=0.1), ScopedDedup(), TokenBudget(top_n=2)]
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes)
    assert decided(collect(nodes, None)) == [KEPT, CUT, ("dropped", "top_n", "n2")]


def test_many_unanswered_queries_do_not_pile_up() -> None:
    """A bundle that is used over and over without our synthesizer keeps a bounded number of trails."""
    bundle = QueryBundle("q")
    for _ in range(300):
        ScopedDedup().postprocess_nodes(make_nodes(["text"]), bundle)
    (mirror,) = [value for value in vars(bundle).values() if hasattr(value, "_entries")]
    assert len(mirror._entries) <= 256
