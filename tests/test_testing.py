"""The helpers for users' own tests do what they promise, and the law checker finds what breaks a law."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr, ValidationError

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import with_text
from llama_index_grounded.selection import Outcome, Stage
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.stage import Kind
from llama_index_grounded.testing import LawError, ScriptedLLM, check_postprocessor, make_nodes

ASK = [ChatMessage(role="system", content="Rules."), ChatMessage(role="user", content="How long?")]

# ScriptedLLM


def stream(llm: ScriptedLLM) -> list[Any]:
    """Return the chunks of a streamed reply."""
    return list(llm.stream_chat(ASK))


async def astream(llm: ScriptedLLM) -> list[Any]:
    """Return the chunks of a reply that is streamed in async."""
    return [chunk async for chunk in await llm.astream_chat(ASK)]


@given(reply=st.text(max_size=40), chunk_size=st.none() | st.integers(1, 50))
def test_the_chunks_of_a_reply_are_the_reply(reply: str, chunk_size: int | None) -> None:
    """Streamed or not, sync or async, chat or completion: the text is the same, in chunks of the size asked for."""
    llm = ScriptedLLM(replies=[reply], chunk_size=chunk_size)
    chunks, in_async = stream(llm), asyncio.run(astream(llm))
    assert "".join(chunk.delta for chunk in chunks) == reply
    assert chunks[-1].message.content == reply
    assert [chunk.delta for chunk in in_async] == [chunk.delta for chunk in chunks]
    assert all(len(chunk.delta) <= (chunk_size or len(reply)) for chunk in chunks)
    assert llm.chat(ASK).message.content == reply == asyncio.run(llm.achat(ASK)).message.content
    assert llm.complete("x").text == reply == [part.text for part in llm.stream_complete("x")][-1]


def test_replies_are_played_in_order_and_the_last_one_repeats() -> None:
    """Texts come as they are, mappings as JSON, exceptions are raised; every request is recorded in full."""
    llm = ScriptedLLM(replies=["ş", {"answer": "ş"}, TimeoutError("slow"), "end"])
    assert llm.chat(ASK).message.content == "ş"
    assert json.loads(str(llm.chat(ASK).message.content)) == {"answer": "ş"}
    with pytest.raises(TimeoutError, match="slow"):
        llm.chat(ASK)
    assert [llm.complete("a").text, llm.complete("b").text] == ["end", "end"]
    assert llm.prompts == ["Rules.\n\nHow long?"] * 3 + ["a", "b"]


def test_usage_comes_once_with_the_last_chunk() -> None:
    """Usage is reported where providers report it, or not at all."""
    usage = {"prompt_tokens": 900, "completion_tokens": 20}
    llm = ScriptedLLM(replies=["four"], chunk_size=1, usage=usage)
    assert [chunk.raw for chunk in stream(llm)] == [{}, {}, {}, {"usage": usage}]
    assert llm.chat(ASK).raw == {"usage": usage}
    assert ScriptedLLM(replies=["four"]).chat(ASK).raw == {}


def test_a_dropped_stream_is_noticed() -> None:
    """A stream that is closed before its end counts as closed, sync and async; one that was read up does not."""
    llm = ScriptedLLM(replies=["four"], chunk_size=1)
    stream(llm)
    assert llm.closed == 0
    started = llm.stream_chat(ASK)
    next(started)
    started.close()
    assert llm.closed == 1

    async def drop() -> None:
        chunks = await llm.astream_chat(ASK)
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(drop())
    assert llm.closed == 2


def test_the_delay_holds_before_each_chunk() -> None:
    """A delay slows every chunk of a stream, and an async one leaves the loop free."""
    llm = ScriptedLLM(replies=["four"], chunk_size=1, delay=0.02)
    began = time.perf_counter()
    stream(llm)
    assert time.perf_counter() - began >= 0.08


def test_threads_get_a_reply_each() -> None:
    """Concurrent requests take the replies one by one."""
    llm, got = ScriptedLLM(replies=[str(n) for n in range(20)]), list[str]()
    threads = [threading.Thread(target=lambda: got.append(str(llm.chat(ASK).message.content))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got, key=int) == [str(n) for n in range(20)]


IMPOSSIBLE: list[dict[str, Any]] = [
    {"replies": []},
    {"replies": ["x"], "chunk_size": 0},
    {"replies": ["x"], "delay": -1},
]


@pytest.mark.parametrize("options", IMPOSSIBLE, ids=str)
def test_a_script_that_can_not_be_played_is_refused(options: dict[str, Any]) -> None:
    """There must be a reply, and sizes and delays must be possible."""
    with pytest.raises(ValidationError):
        ScriptedLLM(**options)


def test_the_window_is_what_was_set() -> None:
    """The LLM states the context window that it was given."""
    assert ScriptedLLM(replies=["x"]).metadata.context_window == 8192
    assert ScriptedLLM(replies=["x"], context_window=900).metadata.context_window == 900


# make_nodes


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


# check_postprocessor


class Act(BaseNodePostprocessor):
    """A postprocessor that breaks laws on demand."""

    act: str
    _calls: int = PrivateAttr(default=0)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self.act == "mutates text" and nodes:
            nodes[0].node.set_content("changed")
        if self.act == "mutates the list":
            nodes.reverse()
        if self.act == "invents":
            return [*nodes, *make_nodes(["new"], ids=["new"])]
        if self.act == "changes a score":
            return [NodeWithScore(node=scored.node, score=0.99) for scored in nodes]
        if self.act == "halves":
            return nodes[: len(nodes) // 2]
        if self.act.startswith("refuses"):
            raise ConfigurationError("no")
        return nodes

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self.act == "refuses in sync":
            return nodes
        return nodes[:1] if self.act == "async differs" else self._postprocess_nodes(nodes, query_bundle)


class StrictAct(Act, extra="forbid"):
    """The same, with unknown options refused."""


class Told(Stage):
    """A stage that breaks laws on demand."""

    kind: ClassVar[Kind] = "rewrite"
    act: str
    _fresh: bool = PrivateAttr(default=False)

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Do it."""
        if self.act == "silent":
            return Outcome(nodes[:1])
        if self.act == "grows":
            return Outcome([with_text(scored, scored.node.get_content() + "!") for scored in nodes])
        if self.act == "forgets its state" and self._fresh:
            return Outcome(nodes[:0], [self.decision(scored, "dropped", "fresh") for scored in nodes])
        return Outcome(nodes)


def forgetful() -> Told:
    """Make a stage that behaves as its copies do not."""
    stage = Told(act="forgets its state")
    stage._fresh = True
    return stage


@pytest.mark.parametrize(
    "factory, law",
    [
        (lambda: StrictAct(act="mutates text"), "were changed"),
        (lambda: StrictAct(act="mutates the list"), "the list that was given was changed"),
        (lambda: StrictAct(act="invents"), "came out of nothing"),
        (lambda: StrictAct(act="changes a score"), "a filter returned what it was not given"),
        (lambda: StrictAct(act="halves"), "a second pass changes the result"),
        (lambda: StrictAct(act="async differs"), "async differs from sync"),
        (lambda: StrictAct(act="refuses"), "refused every case"),
        (lambda: StrictAct(act="refuses in sync"), "async does not refuse what sync refuses"),
        (lambda: Act(act="nothing"), "an unknown option was accepted"),
        (lambda: Told(act="silent"), "dropped without a decision"),
        (lambda: Told(act="grows"), "a second pass changes the result"),
        (forgetful, "a copy behaves differently"),
        (SimilarityPostprocessor, "an unknown option was accepted"),
    ],
)
def test_each_broken_law_is_found(factory: Callable[[], BaseNodePostprocessor], law: str) -> None:
    """The checker names the law that a postprocessor breaks."""
    with pytest.raises(LawError, match=law):
        check_postprocessor(factory)


def test_a_reorder_must_be_a_permutation() -> None:
    """LongContextReorder passes as a reorder up to its unknown options; one that drops a node does not."""
    with pytest.raises(LawError, match="no permutation"):
        check_postprocessor(lambda: StrictAct(act="halves"), kind="reorder")
    with pytest.raises(LawError, match="unknown option"):
        check_postprocessor(LongContextReorder, kind="reorder")


def test_a_sound_postprocessor_passes() -> None:
    """No law is found broken where none is, also in the order of the given list."""
    check_postprocessor(lambda: StrictAct(act="nothing"))
    check_postprocessor(lambda: Told(act="nothing"))


def test_further_cases_are_named_when_they_fail() -> None:
    """A case of one's own is checked like the others, and its name is in the error."""
    with pytest.raises(LawError, match="ToldOnly, mine: a node was dropped without a decision"):
        check_postprocessor(
            lambda: ToldOnly(act="silent on four"), cases={"mine": make_nodes(["a", "b", "c", "d", "e"])}
        )


class ToldOnly(Told):
    """Breaks the law for five nodes only."""

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Drop the fifth one silently."""
        return Outcome(nodes[:4])


def test_a_stage_that_can_not_be_copied_by_design_is_checked_without() -> None:
    """``round_trip=False`` leaves out the copies, nothing else."""
    check_postprocessor(lambda: Holds(predicate=bool), round_trip=False)
    with pytest.raises(LawError, match="without a decision"):
        check_postprocessor(lambda: Holds(predicate=None), round_trip=False)


class Holds(Stage):
    """A stage with an option that neither dict nor JSON can hold."""

    predicate: Any

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Keep everything while there is a predicate."""
        return Outcome(nodes if self.predicate else [])


async def test_the_laws_are_checked_inside_a_running_loop_too() -> None:
    """In an async test or a notebook, where the thread already runs a loop, the same laws are found kept or broken."""
    check_postprocessor(lambda: Told(act="nothing"))
    with pytest.raises(LawError, match="a node was dropped without a decision"):
        check_postprocessor(lambda: ToldOnly(act="silent"), cases={"mine": make_nodes(["a", "b", "c", "d", "e"])})
