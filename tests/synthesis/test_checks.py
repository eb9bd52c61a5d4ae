"""Answer checks in a query: what they see, what becomes of an answer that fails, and that none can break a query."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from llama_index_grounded import CitingSynthesizer, GroundedResult
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import CheckResult, QuoteMatch, Span, TextEvent, Usage
from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext, OnFail
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.streaming.kinds import MODES, OK, QUESTION, ask

BETTER = {**OK, "answer": "Within three weeks [S1]."}
NODES = make_nodes(
    ["Return a book within 21 days.", "Keep\u200b the receipt."],
    ids=["a", "b"],
    metadata=[{"document_id": "returns"}, {"document_id": "receipts"}],
)
FAILED = "The answer did not pass its checks, so I do not give it."


@dataclass(frozen=True, kw_only=True)
class Says:
    """A check that does what it is told."""

    what: Callable[[CheckContext], Any]
    on_fail: OnFail = "flag"
    name: str = "says"

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        found = self.what(context)
        return result(found) if isinstance(found, str) else found


def result(status: Any, **more: Any) -> CheckResult:
    """Make a result of the check."""
    return CheckResult(name="says", status=status, **more)


def without_digits(context: CheckContext) -> CheckResult:
    """Fail where the answer has a digit outside its markers."""
    bad = context.answer.find("21")
    if bad < 0:
        return result("passed")
    return result("failed", detail="write numbers as words", spans=(Span(start=bad, end=bad + 2),))


def checked(
    mode: str, *replies: Any, check: AnswerCheck, **options: Any
) -> tuple[GroundedResult, list[str], ScriptedLLM]:
    """Ask in one mode and return the result, the shown texts and the model."""
    llm = ScriptedLLM(list(replies or [OK]), chunk_size=4)
    found, texts = ask(llm, mode, NODES, checks=[check], **options)
    return found, texts, llm


@pytest.mark.parametrize("mode", MODES)
def test_a_flag_marks_an_answer_that_is_shown(mode: str) -> None:
    """The answer stands, and the result names the check, the fault and its place in the answer."""
    found, texts, _ = checked(mode, check=Says(what=without_digits))
    (one,) = found.checks
    assert (one.name, one.status, one.detail) == ("says", "failed", "write numbers as words")
    assert [found.answer[span.start : span.end] for span in one.spans] == ["21"]
    assert found.answerable
    assert "".join(texts) == found.answer == OK["answer"]
    assert GroundedResult.model_validate_json(found.model_dump_json()) == found
    assert found.audit()["checks"] == [{"name": "says", "status": "failed"}]


@pytest.mark.parametrize("mode", MODES)
def test_a_refusing_check_lets_nothing_out(mode: str) -> None:
    """Not a character of the answer is shown, there are no citations, and the check is in the result."""
    found, texts, llm = checked(mode, check=Says(what=without_digits, on_fail="refuse"))
    assert found.refusal is not None
    assert (found.refusal.reason, found.refusal.detail) == ("failed_check", "the answer failed: says")
    assert "".join(texts) == found.answer == FAILED
    assert (found.citations, found.checks[0].status, len(llm.prompts)) == ((), "failed", 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_check_can_ask_for_a_better_answer(mode: str) -> None:
    """The model is told the fault and the keys, answers again, and the new answer is checked too."""
    found, texts, llm = checked(mode, OK, BETTER, check=Says(what=without_digits, on_fail="retry"))
    assert "".join(texts) == found.answer == BETTER["answer"]
    assert (found.llm_calls, [one.status for one in found.checks]) == (2, ["passed"])
    assert "write numbers as words" in llm.prompts[1]
    assert "The only keys are S1, S2." in llm.prompts[1]


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_stays_wrong_is_refused(mode: str) -> None:
    """After `max_retries` further calls the answer is refused; with none, at once."""
    for retries in (0, 1, 2):
        found, texts, llm = checked(mode, check=Says(what=without_digits, on_fail="retry"), max_retries=retries)
        assert found.refusal is not None
        assert found.refusal.reason == "failed_check"
        assert "".join(texts) == FAILED
        assert len(llm.prompts) == found.llm_calls == retries + 1


@pytest.mark.parametrize("on_fail", ["flag", "refuse", "retry"])
def test_a_check_that_passes_changes_nothing(on_fail: OnFail) -> None:
    """Passed is passed, whatever would have happened otherwise."""
    found, _, llm = checked("sync", check=Says(what=lambda _: "passed", on_fail=on_fail))
    assert (found.answer, len(llm.prompts), found.checks[0].status) == (OK["answer"], 1, "passed")


def _given(one: CheckResult, _: CheckContext) -> CheckResult:
    return one


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("on_fail", ["flag", "refuse", "retry"])
@pytest.mark.parametrize(
    "what", [lambda _: _raise(KeyError("secret")), lambda _: None, lambda _: _raise(RecursionError())]
)
def test_a_check_that_can_not_run_is_skipped(
    what: Any, on_fail: OnFail, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A check that raises or returns nonsense neither breaks the query nor passes; the reason holds no inner words."""
    with caplog.at_level(logging.ERROR):
        found, _, _ = checked(mode, check=Says(what=what, on_fail=on_fail))
    assert found.answerable
    assert found.checks[0].status == "skipped"
    assert found.checks[0].detail
    assert "secret" not in found.model_dump_json()


@pytest.mark.parametrize("mode", MODES)
def test_a_check_that_hangs_is_left_at_the_deadline(mode: str) -> None:
    """A check is left when the time of the query is over, and reported as skipped."""
    free = threading.Event()
    started = time.monotonic()
    found, _, _ = checked(mode, check=Says(what=lambda _: free.wait(20) and "passed"), timeout=0.5)
    assert time.monotonic() - started < 10
    free.set()
    assert (found.answer, found.checks[0].status) == (OK["answer"], "skipped")
    assert "time" in found.checks[0].detail


@pytest.mark.parametrize("mode", MODES)
def test_a_check_sees_what_the_model_saw(mode: str) -> None:
    """Question, answer, verdict, the cleaned texts of all sources by key, what is cited, and the time that is left."""
    seen: list[CheckContext] = []

    def look(context: CheckContext) -> str:
        seen.append(context)
        return "passed"

    checked(mode, check=Says(what=look), timeout=30)
    (context,) = seen
    assert (context.question, context.answer, context.verdict) == (QUESTION, OK["answer"], "answered")
    assert {key: source.text for key, source in context.sources.items()} == {
        "S1": "Return a book within 21 days.",
        "S2": "Keep the receipt.",
    }
    assert [source.ref.document_id for source in context.cited_sources] == ["returns"]
    assert context.seconds is not None
    assert 0 < context.seconds <= 30


def test_without_an_answer_no_check_runs() -> None:
    """Refusals, with and without a call, are not checked."""
    check = Says(what=lambda _: _raise(AssertionError("checked")))
    nothing = {"verdict": "not_in_sources", "sources": [], "answer": ""}
    assert checked("sync", nothing, check=check)[0].checks == ()
    assert CitingSynthesizer(ScriptedLLM([OK]), checks=[check]).synthesize(QUESTION, []).grounded.checks == ()


@dataclass(frozen=True, kw_only=True)
class InAsync:
    """A check with a coroutine of its own."""

    on_fail: OnFail = "flag"
    hangs: bool = False

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        return result("failed", detail="sync")

    async def acheck(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        await asyncio.sleep(20 if self.hangs else 0)
        return result("passed", detail="async")


@pytest.mark.parametrize("mode", MODES)
def test_a_coroutine_is_awaited_in_async_queries(mode: str) -> None:
    """`acheck` serves async queries and `check` the others; a coroutine that hangs is cancelled at the deadline."""
    expected = "async" if mode.startswith("a") else "sync"
    assert checked(mode, check=InAsync())[0].checks[0].detail == expected
    if expected == "async":
        assert checked(mode, check=InAsync(hangs=True), timeout=0.3)[0].checks[0].status == "skipped"


def test_what_a_check_asks_of_a_model_is_counted() -> None:
    """Calls and tokens of checks are part of the sums of the query; one unknown count makes the sum unknown."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    known, unknown = Usage(prompt_tokens=7, completion_tokens=3), Usage(prompt_tokens=None)
    for spent, expected in ((known, (107, 13)), (unknown, (None, 10))):
        one = result("passed", llm_calls=1, usage=spent)
        llm = ScriptedLLM([OK], usage=usage)
        found = ask(llm, "sync", NODES, checks=[Says(what=partial(_given, one))], detect_truncation=False).result
        assert (found.llm_calls, (found.usage.prompt_tokens, found.usage.completion_tokens)) == (2, expected)


def test_passages_become_citations() -> None:
    """A quote that a check found is cited with its place, also where it stands in a source that was not named."""
    quotes = (
        QuoteMatch(quote="21 days", keys=("S1",), key="S1", start=21, end=28, text="21 days"),
        QuoteMatch(quote="receipt", keys=("S1",), key="S2", start=9, end=16, text="receipt", moved=True),
        QuoteMatch(quote="nowhere", keys=("S1",)),
    )
    found, _, _ = checked("sync", check=Says(what=lambda _: result("passed", quotes=quotes)))
    cited = [(one.key, one.node_id, one.quote, one.start, one.end) for one in found.citations]
    assert cited == [("S1", "a", "21 days", 21, 28), ("S2", "b", "receipt", 9, 16)]
    assert [source.cited for source in found.sources] == [True, True]


def test_checks_run_in_order_and_all_of_them() -> None:
    """Every check reports, also behind one that fails; of several faults the model is told all."""
    checks = [Says(what=without_digits, on_fail="retry", name="first"), Says(what=without_digits, on_fail="retry")]
    llm = ScriptedLLM([OK, BETTER])
    found = ask(llm, "sync", NODES, checks=checks).result
    assert [one.status for one in found.checks] == ["passed", "passed"]
    assert llm.prompts[1].count("write numbers as words") == 2


def test_a_check_runs_in_the_context_of_its_query() -> None:
    """A context variable of the caller, such as the tenant, can be read in a check."""
    tenant = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("007")
    check = Says(what=lambda _: result("passed", detail=tenant.get()))
    for mode in MODES[:1]:
        assert checked(mode, check=check)[0].checks[0].detail == "007"


@pytest.mark.parametrize("check", [Says, object(), "numbers", Says(what=len, on_fail="maybe")])  # type: ignore[arg-type]
def test_what_is_no_check_is_refused_at_construction(check: Any) -> None:
    """A class in place of an object, something without a method, and an unknown policy are errors at once."""
    with pytest.raises(ConfigurationError):
        CitingSynthesizer(checks=[check])


def test_the_configuration_of_checks_is_in_the_fingerprint() -> None:
    """Other checks, or other options of them, give another fingerprint; the same ones the same."""

    def print_of(*checks: AnswerCheck) -> str:
        return ask(ScriptedLLM([OK]), "sync", NODES, checks=checks).result.fingerprint

    plain, flagged, refusing = print_of(), print_of(InAsync()), print_of(InAsync(on_fail="refuse"))
    assert len({plain, flagged, refusing}) == 3
    assert flagged == print_of(InAsync())


def test_text_streams_while_checks_only_flag() -> None:
    """With flags alone the text is shown as it comes; with a policy that may refuse, in one piece at the end."""
    for on_fail, few in (("flag", False), ("refuse", True)):
        llm = ScriptedLLM([json.dumps(OK)], chunk_size=2)
        check = Says(what=lambda _: "passed", on_fail=on_fail)  # type: ignore[arg-type]
        response: Any = CitingSynthesizer(llm, checks=[check], streaming=True).synthesize(QUESTION, NODES)
        texts = [event.text for event in response.events() if isinstance(event, TextEvent)]
        assert (len(texts) == 1) is few
