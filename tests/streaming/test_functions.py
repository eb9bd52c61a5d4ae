"""LLMs that answer by calling a function: one function, required, whose arguments are the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.llms.mock import MockFunctionCallingLLM

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.testing import ScriptedLLM
from tests.openai_server import OpenAIReply
from tests.streaming.kinds import MODES, OK, QUESTION, SOURCES, ask, calling, how, served

LONG = {**OK, "answer": "Within 21 days [S1], unread. Keep the receipt [S2]."}


@pytest.mark.parametrize("mode", MODES)
def test_llamaindexs_function_calling_mock_answers_in_every_mode(mode: str) -> None:
    """An LLM that can only call functions gets one function and answers with its arguments."""
    result, texts = ask(calling(LONG), mode)
    assert "".join(texts) == result.answer == LONG["answer"]
    assert (result.usage.prompt_tokens, result.llm_calls) == (None, 1)


def test_arguments_that_grow_are_streamed() -> None:
    """Arguments that a provider streams as text are shown as they come."""
    result, texts = ask(calling(LONG, size=7), "stream")
    assert len(texts) > 4
    assert "".join(texts) == result.answer == LONG["answer"]


def test_one_function_is_required() -> None:
    """A function-calling LLM is offered the answer class as its only function, has to call it, and only once."""
    with served("function", OK) as (llm, server):
        ask(llm, "stream", **how("function"))
        (body,) = server.chats
    (tool,) = body["tools"]
    assert tool["function"]["name"] == "GroundedAnswer"
    assert list(tool["function"]["parameters"]["properties"]) == ["verdict", "sources", "answer"]
    assert body["tool_choice"] == "required"
    assert body["parallel_tool_calls"] is False
    assert "response_format" not in body


@pytest.mark.parametrize("mode", MODES)
def test_ollama_can_be_made_to_call_a_function(mode: str) -> None:
    """With `structured_output="tool"` Ollama is offered the function; content instead of a call counts too."""
    with served("ollama", OK) as (llm, server):
        assert ask(llm, mode, structured_output="tool").result.answer == OK["answer"]
        (body,) = server.chats
    assert [tool["function"]["name"] for tool in body["tools"]] == ["GroundedAnswer"]
    assert body.get("format") is None


@pytest.mark.parametrize("mode", MODES)
def test_two_calls_are_no_answer(mode: str) -> None:
    """A model that calls the function twice gave no single answer, and neither of the two is taken."""
    with served("function", OpenAIReply(call=OK, calls=2)) as (llm, _):
        result = ask(llm, mode, structured_output="tool", max_retries=0).result
    assert result.refusal is not None
    assert result.refusal.reason == "invalid_output"
    assert result.citations == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_call_of_another_function_is_no_answer(mode: str) -> None:
    """Arguments of a function that was not offered are not read; the model is asked again."""
    with served("function", OpenAIReply(call=OK, call_name="search"), OpenAIReply(call=OK)) as (llm, server):
        result = ask(llm, mode, structured_output="tool").result
        assert (result.answer, result.llm_calls, len(server.chats)) == (OK["answer"], 2, 2)


@pytest.mark.parametrize("mode", MODES)
def test_content_in_place_of_a_call_is_read(mode: str) -> None:
    """A model that writes the object as text, though it was to call the function, is understood by the same rule."""
    with served("function", OpenAIReply(content=f"Sure:\n```json\n{json.dumps(OK)}\n```")) as (llm, _):
        assert ask(llm, mode, structured_output="tool").result.answer == OK["answer"]


def test_a_function_call_keeps_the_conversation() -> None:
    """The messages that come with the function are those of the other kinds, rules and sources included."""
    heard: list[Any] = []

    def answer(messages: Any, **kwargs: Any) -> Any:
        heard.append((list(messages), kwargs))
        return calling(OK).response_generator(messages, **kwargs)

    ask(MockFunctionCallingLLM(response_generator=answer), "stream")
    ((messages, kwargs),) = heard
    assert [message.role for message in messages] == ["system", "user"]
    assert '<source id="S1">' in messages[-1].content
    assert len(kwargs["tools"]) == 1


def test_structured_output_that_an_llm_can_not_do_is_refused() -> None:
    """A function asked of an LLM without functions is an error of the configuration, and calls nothing."""
    llm = ScriptedLLM([OK])
    for wanted in ("tool", "schema"):
        with pytest.raises(ValueError, match="structured_output"):
            CitingSynthesizer(llm, structured_output=wanted).synthesize(QUESTION, SOURCES)
    assert llm.prompts == []
