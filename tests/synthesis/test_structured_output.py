"""How a reply is given its form where the LLM can not take it, and how a reply that breaks off is named."""

from __future__ import annotations

import json

import pytest
from llama_index.llms.openai_like import OpenAILike

from llama_index_grounded import CitingSynthesizer, GroundedAnswer
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM
from tests.answers import OK, QUESTION, SOURCES, reason
from tests.streaming.kinds import MODES, ask, client, served


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["tool", "schema"])
def test_a_completion_model_takes_no_form_beside_the_prompt(form: str, mode: str) -> None:
    """A client that only completes texts is refused functions and schemas before any call, with the way out."""
    with served("text", OK) as (llm, server):
        with pytest.raises(ConfigurationError, match="use another structured_output"):
            ask(llm, mode, structured_output=form)
        assert server.requests == []


@pytest.mark.parametrize("calls", [True, False])
def test_a_completion_model_is_asked_in_words(calls: bool) -> None:
    """By itself the form goes into the prompt, also where the client is said to call functions."""
    with served("text", OK) as (_, server):
        llm = client("text", server, is_function_calling_model=calls)
        assert ask(llm, "sync").result.answer == OK["answer"]
        assert CitingSynthesizer(llm).preview(QUESTION, SOURCES).kind == "prompt"


def test_a_chat_model_is_still_given_a_function() -> None:
    """The refusal is for completions alone: over the chat protocol a function may be asked for."""
    llm = OpenAILike(model="m", api_base="http://127.0.0.1:9/v1", api_key="k", is_chat_model=True)
    assert CitingSynthesizer(llm, structured_output="tool").preview(QUESTION, SOURCES).kind == "tool"


@pytest.mark.parametrize("mode", MODES[::2])
@pytest.mark.parametrize(
    "reply, output_cls",
    [
        ({**OK, "answer": 'İade “süresi” 21 gün\n😀 "x" \\ [S1].'}, GroundedAnswer),
        (
            {
                "verdict": "answered",
                "sources": ["S1"],
                "claims": [{"text": "İ 21.", "sources": ["S1"], "quote": "“21”"}],
            },
            ClaimedAnswer,
        ),
    ],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_a_reply_that_is_cut_anywhere_breaks_off(
    reply: dict[str, object], output_cls: type[GroundedAnswer], escaped: bool, mode: str
) -> None:
    """Every beginning of a valid object is named as one that breaks off, also one that ends inside of an escape."""
    written = json.dumps(reply, ensure_ascii=escaped)
    for end in range(1, len(written)):
        llm = ScriptedLLM([written[:end]], chunk_size=5)
        result, _ = ask(llm, mode, max_retries=0, output_cls=output_cls)
        assert result.refusal is not None
        assert (reason(result), result.refusal.detail) == ("invalid_output", "the JSON object breaks off")


@pytest.mark.parametrize("fault", ["\\uZZ", "\\uZZ\\u", "\\u12 ", '\\u12"'])
def test_an_escape_that_is_none_is_malformed(fault: str) -> None:
    """Where more is wrong than the end, the object is malformed, wherever it ends."""
    result, _ = ask(ScriptedLLM([f'{{"verdict": "{fault}']), "sync", max_retries=0)
    assert result.refusal is not None
    assert result.refusal.detail == "the JSON object is malformed"


@pytest.mark.parametrize("value", ["tru", "f", "nul", "-"])
def test_a_word_that_is_cut_breaks_off(value: str) -> None:
    """A field of one's own may be cut inside of true, false, null or a number."""
    result, _ = ask(ScriptedLLM([f'{{"verdict": "answered", "sure": {value}']), "sync", max_retries=0)
    assert result.refusal is not None
    assert result.refusal.detail == "the JSON object breaks off"
