"""Replies as models really write them, over every kind of LLM: one rule reads them, streamed or not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse

from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.streaming.kinds import KINDS, MODES, OK, ask, how, reason, served

WHOLE = json.dumps(OK)
CUT = '{"verdict":"answered","answer":"The fe'


READ = {
    "fence": f"```json\n{WHOLE}\n```",
    "prose": f"Here is the answer:\n{WHOLE}\nI hope this helps.",
    "byte order mark": f"\ufeff{WHOLE}",
    "thinking": f"<think>S2 says {{no}}; S1 it is.</think>{WHOLE}",
    "thinking with braces": f"<think>a {{b}} </think>{WHOLE}",
    "white space": f"\n\n  {json.dumps(OK, indent=4)}\n\n",
    "ids as a string": json.dumps({**OK, "sources": "S1"}),
    "ids as JSON in a string": json.dumps({**OK, "sources": '["S1"]'}),
    "ids in brackets": json.dumps({**OK, "sources": ["[S1]"]}),
    "bare line break": '{"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."\n}',
    "other order": json.dumps({name: OK[name] for name in ("answer", "sources", "verdict")}),
}
UNREAD = {
    "empty": ("", "empty"),
    "prose alone": ("Sure, here is the answer: within 21 days.", "no JSON object"),
    "two objects": (f"{WHOLE}\n{WHOLE}", "more than one"),
    "cut": (CUT, "breaks off"),
    "cut while thinking": ("<think>S1 says so, and {", "thinking"),
    "doubled brace": (f"{{\n\n{WHOLE}", "malformed"),
    "empty object": ("{}", "missing"),
    "another format": ('{"thoughts": "I look.", "source": "S1"}', "does not fit"),
    "a list": (f"[{CUT}", "breaks off"),
    "missing field": ('{"verdict": "answered", "sources": ["S1"]}', "answer: missing"),
    "text, not an object": (json.dumps("within 21 days"), "no JSON object"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READ)
def test_what_stands_around_an_object_is_ignored(name: str, mode: str) -> None:
    """Fences, prose, a byte order mark and thinking leave the answer as it is, in every mode and cut anywhere."""
    for size in (None, 1, 7):
        result, texts = ask(ScriptedLLM([READ[name]], chunk_size=size), mode)
        assert (result.answer, result.refusal, result.llm_calls) == (OK["answer"], None, 1)
        assert "".join(texts) == result.answer
        assert [citation.key for citation in result.citations] == ["S1"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", UNREAD)
def test_what_is_no_whole_object_is_invalid_output(name: str, mode: str) -> None:
    """Anything else is refused as invalid_output with its cause, and no field is ever filled in."""
    reply, cause = UNREAD[name]
    for size in (None, 1, 7):
        result, _ = ask(ScriptedLLM([reply], chunk_size=size), mode, max_retries=0)
        assert result.refusal is not None
        assert reason(result) == "invalid_output"
        assert cause in result.refusal.detail
        assert (result.citations, result.verdict, result.llm_calls) == ((), None, 1)


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("name", ["fence", "thinking", "ids as JSON in a string"])
def test_shapes_are_read_over_http(kind: str, name: str) -> None:
    """What a server's grammar should have kept away is read by the same rule."""
    with served(kind, READ[name]) as (llm, _):
        assert ask(llm, "stream").result.answer == OK["answer"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_reply_is_asked_for_again_once(kind: str, mode: str) -> None:
    """Every kind asks again after "Sure, …", names the fault and the keys, and shows the good reply."""
    with served(kind, Reply(content="Sure, here is…"), OK) as (llm, server):
        result, texts = ask(llm, mode, **how(kind))
        first, second = (json.dumps(body) for body in server.chats)
    assert ("".join(texts), result.llm_calls) == (OK["answer"], 2)
    assert "The only keys are S1, S2." in second
    assert "no JSON object" in second
    assert "no JSON object" not in first


@pytest.mark.parametrize("kind", ["ollama", "openai", "openai-like", "text"])
@pytest.mark.parametrize("content", ["", CUT])
def test_what_was_cut_by_the_length_limit_is_not_asked_for_again(kind: str, content: str) -> None:
    """An identical request would be cut again: an empty or cut reply with the reason "length" is final."""
    with served(kind, Reply(content=content, done_reason="length"), OK) as (llm, server):
        result, _ = ask(llm, "stream", max_retries=3, **how(kind))
        assert len(server.chats) == 1
    assert result.refusal is not None
    assert reason(result) == "invalid_output"
    assert "output limit" in result.refusal.detail
    assert result.llm_calls == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["ollama", "openai-like"])
def test_an_object_in_the_thinking_is_no_answer(kind: str, mode: str) -> None:
    """Where the content is empty and the model wrote into its thinking, the refusal says just that."""
    with served(kind, Reply(content="", thinking=WHOLE)) as (llm, _):
        result, _ = ask(llm, mode, max_retries=0)
    assert result.refusal is not None
    assert reason(result) == "invalid_output"
    assert "thinking" in result.refusal.detail


@pytest.mark.parametrize("kind", ["ollama", "openai-like"])
def test_thinking_beside_the_answer_does_no_harm(kind: str) -> None:
    """A model that thinks first and then answers is read from its content alone."""
    with served(kind, Reply(content=OK, thinking='{"verdict": "no"} is wrong')) as (llm, _):
        result, texts = ask(llm, "stream")
    assert "".join(texts) == result.answer == OK["answer"]
    assert "is wrong" not in (result.raw_output or "")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["ollama", "openai-like", "function"])
def test_blanks_without_end_are_cut_short(kind: str, mode: str) -> None:
    """Runaway white space, which a grammar allows, ends the stream long before the output limit."""
    endless = '{"verdict": "answered",' + "\n" * 20_000
    with served(kind, Reply(content=endless), chunk_size=100) as (llm, _):
        result, _ = ask(llm, mode, max_retries=0, **how(kind))
    assert reason(result) == "invalid_output"
    assert len(result.raw_output or "") < 1000


class _Silent(ScriptedLLM):
    """Its last word is a message without content, or nothing at all."""

    chunks: int = 0

    def _chunks(self, reply: str) -> Any:
        for _ in range(self.chunks):
            yield ChatResponse(message=ChatMessage(role="assistant", content=None), delta=None)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_stream_without_content_is_an_empty_reply(chunks: int, mode: str) -> None:
    """No chunk, or chunks whose content is None, are no crash but an empty reply."""
    result, _ = ask(_Silent(replies=["x"], chunks=chunks), mode, max_retries=0)
    assert result.refusal is not None
    assert "empty" in result.refusal.detail


class _Whole(ScriptedLLM):
    """Streams the text so far as content, without deltas."""

    def _chunks(self, reply: str) -> Any:
        for chunk in super()._chunks(reply):
            yield chunk.model_copy(update={"delta": None})


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_without_deltas_is_read_from_its_content(mode: str) -> None:
    """An LLM class that only ever sends the text so far is understood."""
    assert ask(_Whole(replies=[OK], chunk_size=8), mode).result.answer == OK["answer"]


def test_an_answer_about_json_is_an_answer() -> None:
    """Braces and quotes inside the answer's text are text."""
    answer = 'Send {"id": 7} [S1].'
    for size in (None, 1):
        result, texts = ask(ScriptedLLM([{**OK, "answer": answer}], chunk_size=size), "stream")
        assert "".join(texts) == result.answer == answer
