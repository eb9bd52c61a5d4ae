"""LlamaIndex's evaluators as answer checks, and a model of somebody else behind the protocol."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.evaluation import EvaluationResult, FaithfulnessEvaluator

from llama_index_grounded.checks.evaluator import EvaluatorCheck
from llama_index_grounded.checks.loop import run_here
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.testing import ScriptedLLM
from tests.checks.test_groundedness import TEXTS, context
from tests.evaluators import Promptless
from tests.ollama_server import OllamaServer
from tests.streaming.kinds import MODES, OK, ask, client


class Told(Promptless):
    """An evaluator that says what it is told and keeps what it saw."""

    def __init__(self, result: EvaluationResult | Exception) -> None:
        self.result = result
        self.seen: list[tuple[str | None, str | None, list[str]]] = []

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Keep and say."""
        self.seen.append((query, response, list(contexts or ())))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    "said, status, detail",
    [
        (EvaluationResult(passing=True, score=1.0, feedback="fine"), "passed", "fine"),
        (EvaluationResult(passing=False, score=0.0, feedback="no"), "failed", "no"),
        (EvaluationResult(passing=None, feedback="maybe"), "skipped", "maybe"),
        (EvaluationResult(passing=True, invalid_result=True, invalid_reason="odd"), "skipped", "odd"),
        (EvaluationResult(), "skipped", "the evaluator gave no clear result"),
        (EvaluationResult(passing=True, score=4.5), "passed", ""),
    ],
)
def test_an_evaluators_result_is_the_checks(said: EvaluationResult, status: str, detail: str) -> None:
    """Passing is passed, failing failed, anything unclear skipped; a score between 0 and 1 is kept."""
    found = EvaluatorCheck(evaluator=Told(said)).check(context())
    assert (found.name, found.status, found.detail) == ("Told", status, detail)
    assert found.score == (said.score if said.score is not None and said.score <= 1 else None)


def test_it_sees_question_answer_and_texts() -> None:
    """The included texts of the cited sources, or of all."""
    for contexts, expected in (("cited", [TEXTS["S2"]]), ("all", list(TEXTS.values()))):
        evaluator = Told(EvaluationResult(passing=True))
        EvaluatorCheck(evaluator=evaluator, contexts=contexts).check(context("No.", cited=("S2",)))  # type: ignore[arg-type]
        assert evaluator.seen == [(context().question, "No.", expected)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply, status", [("YES", "passed"), ("NO", "failed")])
def test_faithfulness_runs_in_every_mode(reply: str, status: str, mode: str) -> None:
    """LlamaIndex's FaithfulnessEvaluator judges answers in sync, async and streamed queries."""
    evaluator = FaithfulnessEvaluator(llm=ScriptedLLM([reply]))
    found, _ = ask(ScriptedLLM([OK]), mode, checks=[EvaluatorCheck(evaluator=evaluator)])
    assert (found.checks[0].name, found.checks[0].status) == ("FaithfulnessEvaluator", status)


@pytest.mark.parametrize("mode", MODES)
def test_an_evaluator_that_raises_is_skipped(mode: str) -> None:
    """Its error is no verdict."""
    found, _ = ask(ScriptedLLM([OK]), mode, checks=[EvaluatorCheck(evaluator=Told(ValueError("secret")))])
    assert (found.checks[0].status, found.answerable) == ("skipped", True)
    assert "secret" not in found.model_dump_json()


class Hangs(Promptless):
    """An evaluator that never answers."""

    async def aevaluate(self, *_: Any, **kwargs: Any) -> EvaluationResult:
        """Wait."""
        await asyncio.sleep(30)
        return EvaluationResult(passing=True)


@pytest.mark.parametrize("mode", MODES)
def test_an_evaluator_that_hangs_is_late_in_every_mode(mode: str) -> None:
    """It is left when the time of the query is over, and the result says the same in every mode."""
    found, _ = ask(ScriptedLLM([OK]), mode, checks=[EvaluatorCheck(evaluator=Hangs(), on_fail="refuse")], timeout=0.4)
    one = found.checks[0]
    assert (one.status, one.detail, found.answerable) == ("skipped", "the time for this query is over", True)


@pytest.mark.parametrize("mode", MODES)
def test_a_timeout_of_the_evaluators_own_is_an_error(mode: str) -> None:
    """While the query has time left, what an evaluator raises is its own failure."""
    found, _ = ask(ScriptedLLM([OK]), mode, checks=[EvaluatorCheck(evaluator=Told(TimeoutError()))], timeout=30)
    assert found.checks[0].detail == "the check could not run (TimeoutError)"


def test_one_evaluator_serves_many_queries_over_real_connections() -> None:
    """An evaluator whose model keeps its connections open works query after query, in sync and in several loops."""
    with OllamaServer("YES", keep_alive=True) as server:
        llm: Any = client("ollama", server)
        check = EvaluatorCheck(evaluator=FaithfulnessEvaluator(llm=llm))
        for mode in ("sync", "sync", "sync", "async", "async", "astream", "sync"):
            found, _ = ask(ScriptedLLM([OK]), mode, checks=[check])
            assert (mode, found.checks[0].status, found.checks[0].detail) == (mode, "passed", "YES")
        run_here(llm.async_client.close, 10)  # its connections belong to the loop in which they were opened


def test_an_evaluator_runs_in_the_context_of_its_query() -> None:
    """A context variable of the caller can be read in an evaluator, sync and async."""
    tenant = contextvars.ContextVar("tenant", default="nobody")

    class Reads(Told):
        """Says whose query it is."""

        async def aevaluate(self, *args: Any, **kwargs: Any) -> EvaluationResult:
            """Read the variable."""
            return EvaluationResult(passing=True, feedback=tenant.get())

    tenant.set("007")
    for mode in MODES:
        check = EvaluatorCheck(evaluator=Reads(EvaluationResult()))
        assert ask(ScriptedLLM([OK]), mode, checks=[check]).result.checks[0].detail == "007"


def test_an_evaluator_that_never_returns_keeps_no_program_from_ending() -> None:
    """It is left at the deadline, and the process ends though it still waits."""
    code = (
        "import asyncio\n"
        "from llama_index.core.evaluation import BaseEvaluator\n"
        "from llama_index_grounded import CitingSynthesizer\n"
        "from llama_index_grounded.checks import EvaluatorCheck\n"
        "from llama_index_grounded.testing import ScriptedLLM, make_nodes\n"
        "class Never(BaseEvaluator):\n"
        "    def _get_prompts(self): return {}\n"
        "    def _update_prompts(self, prompts): pass\n"
        "    async def aevaluate(self, *args, **kwargs):\n"
        "        await asyncio.sleep(60)\n"
        f"llm, nodes = ScriptedLLM([{OK!r}]), make_nodes(['Within 21 days.'])\n"
        # What is imported on first use must not count in the two seconds.
        "CitingSynthesizer(llm).synthesize('How long?', nodes)\n"
        "synthesizer = CitingSynthesizer(llm, checks=[EvaluatorCheck(evaluator=Never())], timeout=2.0)\n"
        "print(synthesizer.synthesize('How long?', nodes).grounded.checks[0].status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "skipped"


async def test_it_can_be_used_by_hand_inside_a_loop() -> None:
    """`check` works in a thread that already runs a loop, as notebooks do."""
    await asyncio.sleep(0)
    assert EvaluatorCheck(evaluator=Told(EvaluationResult(passing=True))).check(context()).status == "passed"


def test_the_evaluator_comes_first() -> None:
    """The evaluator needs no word, every other option does."""
    evaluator = Told(EvaluationResult(passing=True))
    assert EvaluatorCheck(evaluator, name="mine") == EvaluatorCheck(evaluator=evaluator, name="mine")
    with pytest.raises(TypeError):
        EvaluatorCheck(evaluator, "refuse")  # type: ignore[call-arg]


@pytest.mark.parametrize("options", [{"evaluator": "faithful"}, {"evaluator": Told(ValueError()), "contexts": "some"}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """What is no evaluator, and an unknown choice of sources, are errors at construction."""
    with pytest.raises(ConfigurationError):
        EvaluatorCheck(**options)
