"""Judges and windows whose server is down or hangs: the query goes on, in its time, and the loop is never held up."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai import OpenAI

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.checks import GroundednessCheck
from llama_index_grounded.selection import ConflictFlagger, Stage, SufficiencyGate
from llama_index_grounded.testing import ScriptedLLM, make_nodes

QUESTION = "Within how many days can books be returned?"
OK = {"verdict": "answered", "sources": ["S1"], "answer": "Books can be returned within 21 days [S1]."}
JUDGES = [SufficiencyGate, ConflictFlagger]


@pytest.fixture
def down() -> str:
    """Name an address at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def ollama(url: str) -> LLM:
    """Make a client as its users do: without a window, so that the server has to be asked for it."""
    return Ollama(model="m", base_url=url, request_timeout=12)


def disagreeing() -> list[NodeWithScore]:
    """Make two nodes that a judge of conflicts is asked about."""
    texts = ["Books can be returned within 21 days.", "Books can be returned within 14 days."]
    return make_nodes(texts, metadata=[{"document_id": "a"}, {"document_id": "b"}])


@pytest.mark.parametrize("make", JUDGES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("where", ["hanging", "down"])
def test_a_judge_that_can_not_be_asked_lets_everything_pass(
    make: Any, where: str, request: pytest.FixtureRequest
) -> None:
    """In its own time and with a warning, also where the question for the window is the one that hangs."""
    stage: Stage = make(llm=ollama(request.getfixturevalue(where)), timeout=0.5)
    synthesizer, query = CitingSynthesizer(ScriptedLLM([OK])), QueryBundle(QUESTION)
    begun = time.monotonic()
    result: Any = synthesizer.synthesize(query, stage.postprocess_nodes(disagreeing(), query))
    assert time.monotonic() - begun < 6
    assert result.answerable
    assert any(warning.startswith(f"{make.__name__} ") for warning in result.grounded.warnings)


@pytest.mark.parametrize("make", JUDGES, ids=lambda make: make.__name__)
def test_a_judge_whose_class_knows_no_such_model_lets_everything_pass(make: Any) -> None:
    """OpenAI's client has no window for a name that it does not know, and raises."""
    stage: Stage = make(llm=OpenAI(model="our-own", api_key="none"))
    query = QueryBundle(QUESTION)
    nodes = stage.postprocess_nodes(disagreeing(), query)
    plan = CitingSynthesizer(ScriptedLLM([OK])).preview(query, nodes)
    assert len(plan.nodes) == 2
    assert [warning for warning in plan.warnings if "the judge can not be asked (ValueError)" in warning]


async def _beside(work: Awaitable[Any]) -> tuple[Any, float]:
    """Run beside a ticker; return the result and the longest time for which the loop stood still."""
    longest, last = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal longest, last
        while True:
            await asyncio.sleep(0.02)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    ticker = asyncio.ensure_future(tick())
    try:
        return await work, longest
    finally:
        ticker.cancel()


def test_a_check_that_hangs_is_skipped_and_holds_nobody_up(hanging: str) -> None:
    """The judge of groundedness is asked for its window beside the loop, and within its time."""
    check = GroundednessCheck(llm=ollama(hanging), timeout=0.5)
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]), checks=[check])
    begun = time.monotonic()
    result, longest = asyncio.run(_beside(synthesizer.asynthesize(QUESTION, disagreeing())))
    assert time.monotonic() - begun < 6
    assert longest < 3
    assert [check.status for check in result.grounded.checks] == ["skipped"]
    result = synthesizer.synthesize(QUESTION, disagreeing())
    assert [check.status for check in result.grounded.checks] == ["skipped"]


def test_a_window_that_is_not_told_is_asked_for_once_in_a_query(hanging: str) -> None:
    """A query takes the time of one such question and of its calls, and the loop goes on meanwhile."""
    synthesizer = CitingSynthesizer(ollama(hanging), timeout=1)
    begun = time.monotonic()
    result, longest = asyncio.run(_beside(synthesizer.asynthesize(QUESTION, disagreeing())))
    assert time.monotonic() - begun < 6
    assert longest < 3
    assert result.grounded.refusal.reason == "deadline_exceeded"


def test_another_model_is_asked_for_its_own_window(down: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one model's server did not tell says nothing about the model that takes its place."""
    synthesizer = CitingSynthesizer()
    monkeypatch.setattr(Settings, "_llm", ollama(down))
    assert synthesizer.context_window() == DEFAULT_CONTEXT_WINDOW
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM([OK], context_window=100_000))
    assert synthesizer.context_window() == 100_000
