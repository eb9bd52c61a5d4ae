"""Streaming changes when a text is seen and nothing else, however the model's words are cut into pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from llama_index.core.llms import LLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from pydantic import field_validator

from llama_index_grounded import CitingSynthesizer, GroundedAnswer, GroundedResult
from llama_index_grounded.schema import ResultEvent, StreamEvent, TextEvent
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import OK, QUESTION, SOURCES, astreamed, events, streamed, text_of
from tests.timing import assert_linear

_PIECES = ["Within", " ", "21 days", "[S1]", "[S9]", "[S1, S9]", "【S2】", "<source id='S1'>", "</source>", "é", "😀"]
_ODD = ["`a[S1]`", "```\n", "$x$", "\n", "\\", '"', "&lt;", "\u200b", ".", "\ud83d", "[S", "<so", "İ", "{", "\t"]
_answers = st.lists(st.sampled_from([*_PIECES, *_ODD]), max_size=10).map("".join)
_replies = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from(["answered", "no", "conflicting", "not_in_sources", "perhaps"]),
        "sources": st.sampled_from([["S1"], ["S2", "S9"], ["S9"], [], '["S1"]', "[S1]"]),
        "answer": _answers,
    }
)
_policies = st.fixed_dictionaries(
    {
        "on_invalid_ids": st.sampled_from(["drop", "refuse", "retry"]),
        "inline_citations": st.booleans(),
        "max_retries": st.integers(0, 2),
        "max_answer_chars": st.sampled_from([16_000, 12]),
    }
)


def told(result: GroundedResult) -> dict[str, Any]:
    """Return all that a result says, but for its time and the fingerprint, which knows a model's options."""
    return result.model_dump(exclude={"elapsed_ms", "fingerprint"})


def ended(seen: list[StreamEvent]) -> GroundedResult:
    """Return the result at the end of a stream."""
    last = seen[-1]
    assert isinstance(last, ResultEvent)
    return last.grounded


@settings(max_examples=60)
@given(reply=_replies, second=_replies, size=st.integers(1, 60), escaped=st.booleans(), policy=_policies)
@example({**OK, "answer": "😀 [S1]"}, OK, 1, True, {})
@example({**OK, "answer": "\ud83d [S1]"}, OK, 1, True, {})
@example({**OK, "answer": "Within 21 days."}, OK, 1, False, {"max_answer_chars": 12})
def test_a_stream_ends_in_the_result_of_the_same_reply(
    reply: dict[str, Any], second: dict[str, Any], size: int, escaped: bool, policy: dict[str, Any]
) -> None:
    """For every reply, policy and size of pieces the streamed result is the plain one, a text once shown excepted."""
    script = [json.dumps(each, ensure_ascii=escaped) for each in (reply, second)]
    plain = CitingSynthesizer(ScriptedLLM(script), **policy).synthesize(QUESTION, SOURCES).grounded
    seen = events(ScriptedLLM(script, chunk_size=size), **policy)
    result = ended(seen)
    assert text_of(seen) == result.answer
    assert len(result.answer) <= max(policy.get("max_answer_chars", 16_000), len(plain.answer))
    if result.refusal is not None and result.refusal.reason == "answer_too_long":
        # The model is stopped as soon as it is known, so what was shown stands, and no usage is reported.
        assert plain.refusal == result.refusal
        assert result.answer == plain.answer or len(result.answer) <= policy["max_answer_chars"]
    else:
        assert told(result) == told(plain)


@settings(max_examples=25)
@given(reply=_replies, size=st.integers(1, 40), policy=_policies)
def test_async_streams_are_like_sync_ones(reply: dict[str, Any], size: int, policy: dict[str, Any]) -> None:
    """The events of an async stream are those of a sync one, text by text."""

    async def read() -> list[StreamEvent]:
        return [event async for event in (await astreamed(ScriptedLLM([reply], chunk_size=size), **policy)).aevents()]

    here, there = events(ScriptedLLM([reply], chunk_size=size), **policy), asyncio.run(read())
    assert here[:-1] == there[:-1]
    assert told(ended(here)) == told(ended(there))


@settings(max_examples=40)
@given(cut=st.integers(0, 80), size=st.integers(1, 30), prose=st.booleans())
def test_a_reply_that_breaks_off_is_no_answer(cut: int, size: int, prose: bool) -> None:
    """Every proper beginning of a reply ends in invalid_output, and what was shown of it begins the text."""
    whole = json.dumps(OK)
    reply = ("Sure: " if prose else "") + whole[: cut % len(whole)]
    seen = events(ScriptedLLM([reply], chunk_size=size), max_retries=0)
    result = ended(seen)
    assert result.refusal is not None
    assert result.refusal.reason == "invalid_output"
    assert (result.citations, result.verdict) == ((), None)
    refused = "The model's reply could not be read. Please ask again."
    assert text_of(seen) == result.answer
    assert result.answer == refused or str(OK["answer"]).startswith(result.answer)


@pytest.mark.parametrize("policy", ["refuse", "retry"])
def test_a_policy_that_may_still_refuse_shows_nothing_early(policy: Any) -> None:
    """With "refuse" or "retry" the text comes in one part, after the reply was judged, and an unknown id shows none."""
    good = events(ScriptedLLM([{**OK, "answer": "Within 21 days [S1]. " * 3}], chunk_size=4), on_invalid_ids=policy)
    assert sum(isinstance(event, TextEvent) for event in good) == 1
    bad = events(ScriptedLLM([{**OK, "answer": "Within 21 days [S9]."}, OK], chunk_size=4), on_invalid_ids=policy)
    assert text_of(bad) == (
        OK["answer"] if policy == "retry" else "The answer cited a source that does not exist, so I do not give it."
    )


def test_once_text_was_shown_there_is_no_further_call() -> None:
    """A reply that breaks off behind its first words is not asked for again, and the shown words stand."""
    llm = ScriptedLLM([json.dumps(OK)[:-9], OK], chunk_size=4)
    result = ended(events(llm, max_retries=3))
    assert (result.llm_calls, len(llm.prompts)) == (1, 1)
    assert result.refusal is not None
    assert result.refusal.reason == "invalid_output"
    assert result.answer == "Within 21 day"


@pytest.mark.parametrize("bad", ["", "no object", '{"verdict": "answered", "sources": ["S1"]', '{"answer": "Within 21'])
def test_before_any_text_an_unreadable_reply_is_asked_for_again(bad: str) -> None:
    """As long as nothing was shown a stream asks again, and then shows the good reply."""
    llm = ScriptedLLM([bad, OK], chunk_size=4)
    seen = events(llm)
    assert (text_of(seen), ended(seen).llm_calls, len(llm.prompts)) == (OK["answer"], 2, 2)


def test_an_earlier_answer_stands_where_the_further_call_brings_nothing() -> None:
    """With "retry" a stream that fails the second time shows the first answer, without its unknown id."""
    llm = ScriptedLLM([{**OK, "sources": ["S1", "S9"]}, RuntimeError("down")], chunk_size=4)
    seen = events(llm, on_invalid_ids="retry")
    assert (text_of(seen), ended(seen).invalid_source_ids, ended(seen).llm_calls) == (OK["answer"], ("S9",), 2)


class Shouted(GroundedAnswer):
    """An answer whose own validator changes the text."""

    @field_validator("answer")
    @classmethod
    def _shout(cls, text: str) -> str:
        return text.upper()


class Noted(GroundedAnswer):
    """An answer with a further field behind the text."""

    note: str


def test_a_class_that_changes_the_text_is_shown_as_it_is_judged() -> None:
    """What the caller's own answer class makes of the text is what a stream shows."""
    seen = events(ScriptedLLM([OK], chunk_size=4), output_cls=Shouted)
    assert text_of(seen) == ended(seen).answer == "WITHIN 21 DAYS [S1]."


@pytest.mark.parametrize("size", [None, 1, 5])
def test_fields_of_a_subclass_stream_too(size: int | None) -> None:
    """Text is shown before the fields behind it, and the parsed answer has them."""
    response = streamed(ScriptedLLM([{**OK, "note": "n"}], chunk_size=size), output_cls=Noted)
    parts = list(response.response_gen)
    assert "".join(parts) == OK["answer"]
    parsed = response.get_response().parsed
    assert isinstance(parsed, Noted)
    assert parsed.note == "n"


def test_an_emoji_in_halves_waits_for_its_other_half() -> None:
    """An escaped surrogate pair that is cut in the middle is never shown as half a character."""
    reply = '{"verdict": "answered", "sources": ["S1"], "answer": "\\ud83d\\ude00 yes \\ud83d\\ude00"}'
    for size in (1, 2, 3, 5, 7):
        seen = events(ScriptedLLM([reply], chunk_size=size))
        assert text_of(seen) == "😀 yes 😀"
        assert all(event.text.isprintable() for event in seen if isinstance(event, TextEvent))


def test_the_first_text_follows_the_answers_first_characters() -> None:
    """In deltas of one character the first text comes by the fifth character of the answer."""
    llm = _Counting(replies=[{**OK, "answer": "Within 21 days [S1]. " * 4}], chunk_size=1)
    reading = streamed(llm).events()
    while not isinstance(next(reading), TextEvent):
        pass
    begun = json.dumps({**OK, "answer": ""}).index('""}') + 1
    assert begun < llm.given <= begun + 5
    reading.close()


class _Counting(ScriptedLLM):
    """Counts the deltas that were taken from it."""

    given: int = 0

    def _chunks(self, reply: str) -> Any:
        for chunk in super()._chunks(reply):
            self.given += 1
            yield chunk


class _Letters(ScriptedLLM):
    """Streams its reply in characters, without LlamaIndex's own work for each of them."""

    def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
        """Stream."""
        message = ChatMessage(role="assistant")
        return (ChatResponse(message=message, delta=letter) for letter in json.dumps(self.replies[0]))


class _Arguments(MockFunctionCallingLLM):
    """Streams the arguments of a call in characters, without LlamaIndex's own work for each of them."""

    written: str = ""

    def stream_chat(self, messages: Any, **kwargs: Any) -> Any:
        """Stream."""
        for end in range(1, len(self.written) + 1):
            call = ToolCallBlock(tool_name="GroundedAnswer", tool_kwargs=self.written[:end])
            yield ChatResponse(message=ChatMessage(role="assistant", blocks=[call]), delta="")


def _reply(count: int) -> dict[str, Any]:
    return {**OK, "answer": "word [S1] and more " * (count // 19)}


@pytest.mark.parametrize(
    "make",
    [lambda count: _Letters(replies=[_reply(count)]), lambda count: _Arguments(written=json.dumps(_reply(count)))],
    ids=["text", "arguments of a call"],
)
def test_the_cost_of_a_delta_is_constant(make: Callable[[int], LLM]) -> None:
    """10,000 deltas of one character take about four times as long as 2,500, as text and as arguments of a call."""

    def read(count: int) -> None:
        assert ended(events(make(count), max_answer_chars=10**6, num_output=10)).answerable

    assert_linear(read, 2_500)
