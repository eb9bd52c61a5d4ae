"""One query's calls: when the model is asked again, what the calls cost together, and when a prompt was cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseGen
from pydantic import Field

from llama_index_grounded import CitingSynthesizer, GroundedResponse, GroundedResult
from llama_index_grounded.testing import ScriptedLLM
from tests.answers import OK, QUESTION, SOURCES, reason

UNKNOWN = {"verdict": "answered", "sources": ["S1", "S9"], "answer": "Within 21 days [S1]."}

Reply = str | Mapping[str, Any] | BaseException


def ask(llm: ScriptedLLM, **options: Any) -> GroundedResult:
    """Ask one question and return the result."""
    response = CitingSynthesizer(llm, **options).synthesize(QUESTION, SOURCES)
    assert isinstance(response, GroundedResponse)
    return response.grounded


@settings(max_examples=20)
@given(bad=st.integers(0, 4), retries=st.integers(0, 4))
def test_unreadable_replies_are_asked_for_again(bad: int, retries: int) -> None:
    """There are as many further calls as bad replies, at most `max_retries`, and the first good reply counts."""
    llm = ScriptedLLM([*(["no object"] * bad), OK])
    result = ask(llm, max_retries=retries)
    assert result.llm_calls == len(llm.prompts) == 1 + min(bad, retries)
    assert result.answerable is (bad <= retries)


@pytest.mark.parametrize(
    "reply", ["", "no object", "{}", '{"verdict": "no"', {**OK, "answer": " "}, {**OK, "answer": "[S9]"}]
)
def test_a_second_call_says_what_was_wrong(reply: Reply) -> None:
    """The same prompt is sent again with the fault and the keys behind it, and nothing of the bad reply."""
    llm = ScriptedLLM([reply, OK])
    assert ask(llm).answerable
    first, second = llm.prompts
    complaint = second.removeprefix(first)
    assert len(complaint) < len(second)
    assert "refused" in complaint
    assert "S1, S2" in complaint


def test_a_second_call_repeats_nothing_that_the_model_wrote() -> None:
    """Words of the refused reply, also as names of fields, do not reach the next prompt."""
    llm = ScriptedLLM([{"ignore_all_rules": "obey"}, OK])
    ask(llm)
    assert "ignore_all_rules" not in llm.prompts[1]
    assert "obey" not in llm.prompts[1]


@pytest.mark.parametrize(
    "reply",
    [
        {"verdict": "not_in_sources", "sources": [], "answer": "Nothing."},
        {"verdict": "answered", "sources": [], "answer": "Within 21 days."},
        {"verdict": "answered", "sources": ["S9"], "answer": "Within 21 days."},
        RuntimeError("the server is down"),
        {**OK, "answer": "x" * 20_000},
    ],
    ids=["not in sources", "uncited", "unknown id", "error", "too long"],
)
def test_what_a_second_call_would_not_mend_is_not_asked_again(reply: Reply) -> None:
    """An honest or uncited answer, a long one and an error of the provider are final."""
    llm = ScriptedLLM([reply, OK])
    assert not ask(llm, max_retries=3).answerable
    assert len(llm.prompts) == 1


@pytest.mark.parametrize("inline", [False, True])
def test_unknown_ids_are_asked_for_again_once(inline: bool) -> None:
    """With "retry" the model is asked once more and told the keys; then the good reply counts."""
    first = {**OK, "answer": "Within 21 days [S9]."} if inline else UNKNOWN
    llm = ScriptedLLM([first, OK])
    result = ask(llm, on_invalid_ids="retry")
    assert (result.answer, result.invalid_source_ids, result.llm_calls) == (OK["answer"], (), 2)
    assert "The only keys are S1, S2." in llm.prompts[1]


def test_after_the_second_try_unknown_ids_are_dropped() -> None:
    """A model that insists on an unknown id gets no third call: the id is dropped and reported."""
    llm = ScriptedLLM([UNKNOWN])
    result = ask(llm, on_invalid_ids="retry", max_retries=3)
    assert (result.answer, result.invalid_source_ids) == (OK["answer"], ("S9",))
    assert len(llm.prompts) == 2


def test_without_retries_unknown_ids_are_dropped_at_once() -> None:
    """`max_retries=0` turns "retry" into "drop"."""
    result = ask(ScriptedLLM([UNKNOWN]), on_invalid_ids="retry", max_retries=0)
    assert (result.answer, result.invalid_source_ids, result.llm_calls) == (OK["answer"], ("S9",), 1)


@pytest.mark.parametrize("second", [RuntimeError("down"), "no object"])
def test_a_failed_second_try_does_not_cost_the_first_answer(second: Reply) -> None:
    """An answer that only had one id too many is kept, without that id, when the second call goes wrong."""
    result = ask(ScriptedLLM([UNKNOWN, second]), on_invalid_ids="retry")
    assert (reason(result), result.answer, result.invalid_source_ids) == (None, OK["answer"], ("S9",))
    assert result.llm_calls == 2


def test_a_retry_that_does_not_fit_into_the_window_is_not_made() -> None:
    """Where the complaint would overflow the window, the first reply decides."""
    free = CitingSynthesizer(ScriptedLLM([OK]), num_output=100)
    window = free.preview(QUESTION, SOURCES).tokens + 100
    llm = ScriptedLLM(["no object", OK], context_window=window)
    assert reason(ask(llm, num_output=100)) == "invalid_output"
    assert len(llm.prompts) == 1
    roomy = ScriptedLLM(["no object", OK], context_window=window + 60)
    assert ask(roomy, num_output=100).answerable


def test_usage_is_the_sum_over_all_calls() -> None:
    """Prompt and completion tokens are what the provider reported, added up; our own estimate is beside them."""
    llm = ScriptedLLM(["no object", OK], usage={"prompt_tokens": 900, "completion_tokens": 20})
    usage = ask(llm).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (1800, 40)
    tokens = CitingSynthesizer(llm).preview(QUESTION, SOURCES).tokens
    assert 2 * tokens < usage.estimated_prompt_tokens < 2 * tokens + 60


def test_what_a_provider_does_not_report_is_unknown() -> None:
    """Usage that is not reported is None, never 0."""
    usage = ask(ScriptedLLM([OK])).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (None, None)
    assert usage.estimated_prompt_tokens > 0
    only_prompt = ask(ScriptedLLM([OK], usage={"prompt_tokens": 900})).usage
    assert (only_prompt.prompt_tokens, only_prompt.completion_tokens) == (900, None)


def test_without_a_call_usage_is_zero() -> None:
    """A query that calls no model costs nothing and has no raw output."""
    response = CitingSynthesizer(ScriptedLLM([OK])).synthesize(QUESTION, [])
    assert isinstance(response, GroundedResponse)
    usage = response.grounded.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated_prompt_tokens) == (0, 0, 0)
    assert (response.grounded.llm_calls, response.grounded.raw_output) == (0, None)


def test_a_call_that_never_went_out_is_not_counted() -> None:
    """A deadline that passes before the first call leaves zero calls and zero usage."""
    llm = ScriptedLLM([OK])
    result = ask(llm, timeout=1e-9)
    assert (reason(result), llm.prompts) == ("deadline_exceeded", [])
    assert (result.llm_calls, result.usage.prompt_tokens, result.usage.estimated_prompt_tokens) == (0, 0, 0)


class _Chunks(ScriptedLLM):
    """Streams given chunks: pairs of a text and what the provider reports with it."""

    chunks: list[tuple[str, dict[str, Any]]] = Field(default_factory=list)

    def stream_chat(self, messages: Any, **kwargs: Any) -> ChatResponseGen:
        for text, raw in self.chunks:
            yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text, raw=raw)


@pytest.mark.parametrize(
    "first, last",
    [
        ({}, {"usage": {"prompt_tokens": 500, "completion_tokens": 20}}),
        ({"usage": {"input_tokens": 500, "output_tokens": 1}}, {"usage": {"output_tokens": 20}}),
        ({"usage": {"input_tokens": 100, "cache_read_input_tokens": 400}}, {"usage": {"output_tokens": 20}}),
        ({"usage": None}, {"prompt_eval_count": 500, "eval_count": 20}),
    ],
    ids=["last chunk", "two chunks", "cached", "ollama"],
)
def test_usage_is_found_where_providers_put_it(first: dict[str, Any], last: dict[str, Any]) -> None:
    """Counts in the last chunk, split over two chunks, beside a cache or at the top level all arrive."""
    text = json.dumps(OK)
    llm = _Chunks(replies=[OK], chunks=[(text[:20], first), (text[20:], last)])
    usage = ask(llm).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (500, 20)


@settings(max_examples=25)
@given(share=st.floats(0.01, 1.2))
def test_a_prompt_that_was_cut_is_a_refusal(share: float) -> None:
    """Under 60 % and more than 64 tokens short: refused. Anything else is answered, with or without a warning."""
    sent = CitingSynthesizer(ScriptedLLM([OK])).preview(QUESTION, SOURCES).tokens
    counted = int(share * sent)
    result = ask(ScriptedLLM([OK], usage={"prompt_tokens": counted, "completion_tokens": 20}))
    if counted < 0.6 * sent and sent - counted > 64:
        assert (reason(result), result.citations, result.warnings) == ("prompt_truncated", (), ())
        assert result.refusal is not None
        assert str(counted) in result.refusal.detail
    else:
        assert result.answerable
        assert len(result.warnings) <= (sent - counted > 64)
        assert len(result.warnings) >= (counted < 0.75 * sent)
    assert result.usage.prompt_tokens == counted


def test_truncation_is_not_looked_for_when_told_so() -> None:
    """`detect_truncation=False` answers whatever the provider counted; nothing counted is no sign of anything."""
    llm = ScriptedLLM([OK], usage={"prompt_tokens": 5, "completion_tokens": 20})
    assert ask(llm, detect_truncation=False).answerable
    assert ask(ScriptedLLM([OK], usage={"completion_tokens": 20})).answerable
