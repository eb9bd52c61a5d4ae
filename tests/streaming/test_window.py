"""A prompt that fits: the lowest ranks go first, the question and the rules never, and a cut prompt is noticed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.llms import LLM
from llama_index.llms.openai_like import OpenAILike

from llama_index_grounded import CitingSynthesizer, GroundedAnswer
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.ollama_server import OllamaServer, Reply
from tests.streaming.kinds import KINDS, MODES, OK, QUESTION, ask, client, how, reason, served

MANY = make_nodes([f"Shelf {place}. " + "word " * 200 for place in range(6)])
KINDS_WITH_A_WINDOW = [kind for kind in KINDS if kind != "openai"]


def windowed(kind: str, server: OllamaServer, window: int) -> LLM:
    """Make a client with a window of so many tokens."""
    return client(kind, server, context_window=window)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS_WITH_A_WINDOW)
def test_what_does_not_fit_is_left_out_from_the_lowest_rank(kind: str, mode: str) -> None:
    """In a small window the best nodes are sent, the others are decisions, and question and rules stay whole."""
    with served(kind, OK) as (_, server):
        result, _ = ask(windowed(kind, server, 1400), mode, MANY, num_output=200, **how(kind))
        text = json.dumps(server.chats[0])
    kept = [source.node_id for source in result.sources]
    assert kept == [f"n{place}" for place in range(len(kept))]
    assert 0 < len(kept) < 6
    gone = [decision for decision in result.decisions if decision.reason == "over_window"]
    assert [decision.node_id for decision in gone] == [f"n{place}" for place in range(5, len(kept) - 1, -1)]
    assert text.count("<source id=") == len(kept)
    assert QUESTION in text
    assert "numbered sources" in text
    assert "a key that stands above no text does not exist" in text
    assert result.answerable


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS_WITH_A_WINDOW)
def test_where_nothing_fits_nothing_is_sent(kind: str, mode: str) -> None:
    """A window without room for one source beside question, rules and reply: prompt_too_long, no request at all."""
    with served(kind, OK) as (_, server):
        result, texts = ask(windowed(kind, server, 700), mode, MANY, num_output=200, **how(kind))
        assert server.requests == []
    assert (reason(result), result.llm_calls, result.sources) == ("prompt_too_long", 0, ())
    assert "".join(texts) == result.answer
    assert len([decision for decision in result.decisions if decision.reason == "over_window"]) == 6


@settings(max_examples=15)
@given(window=st.integers(500, 2600), num_output=st.integers(1, 600))
def test_no_prompt_is_larger_than_its_window(window: int, num_output: int) -> None:
    """For any window and output limit the sent prompt and the reply fit together, or nothing is sent."""
    llm = ScriptedLLM([OK], context_window=window)
    result, _ = ask(llm, "stream", MANY, num_output=num_output)
    counted = sum(TokenCounter().tokens(prompt) for prompt in llm.prompts)
    assert counted + num_output <= window or not llm.prompts
    assert (reason(result) == "prompt_too_long") is not bool(llm.prompts)
    assert result.usage.estimated_prompt_tokens <= max(0, window - num_output)


def test_a_server_that_cuts_long_prompts_is_never_sent_one() -> None:
    """Ollama would keep half of its window and say nothing; with our check the whole prompt arrives."""
    with served("ollama", OK, truncates=True) as (_, server):
        result, _ = ask(windowed("ollama", server, 2048), "stream", MANY)
        (body,) = server.chats
    assert result.answerable
    assert body["options"]["num_ctx"] == 2048
    assert (result.usage.prompt_tokens or 0) > 0.9 * result.usage.estimated_prompt_tokens
    assert result.warnings == ()


def test_the_window_stays_the_same_from_query_to_query() -> None:
    """Short and long prompts are sent with one num_ctx, since Ollama loads a model anew for each."""
    with served("ollama", OK) as (llm, server):
        ask(llm, "sync")
        ask(llm, "sync", MANY)
        assert {body["options"]["num_ctx"] for body in server.chats} == {8192}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_was_cut_is_noticed(kind: str, mode: str) -> None:
    """Far fewer counted tokens than were sent end in prompt_truncated, whatever the reply says; shown words stand."""
    with served(kind, Reply(content=OK, prompt_eval_count=180)) as (llm, _):
        result, texts = ask(llm, mode, MANY, **how(kind))
        assert reason(result) == "prompt_truncated"
        assert (result.citations, result.verdict) == ((), None)
        assert "".join(texts) == result.answer
        assert ask(llm, mode, MANY, detect_truncation=False, **how(kind)).result.answerable


@pytest.mark.parametrize("mode", MODES)
def test_an_ollama_without_a_window_is_named(mode: str) -> None:
    """Where the server chooses the window, a warning names num_ctx; a window of the user's own is silent."""
    with served("ollama", OK) as (_, server):
        unset = client("ollama", server, context_window=-1)
        assert any("num_ctx" in warning for warning in ask(unset, mode).result.warnings)
        own = client("ollama", server, context_window=-1, additional_kwargs={"num_ctx": 4096})
        assert ask(own, mode).result.warnings == ()
        assert ask(client("ollama", server), mode).result.warnings == ()


@pytest.mark.parametrize("kind", ["openai-like", "function"])
def test_there_is_room_for_the_schema(kind: str) -> None:
    """Where the schema goes out beside the messages, the prompt that is sent leaves room for it in the window."""
    schema = TokenCounter().tokens(json.dumps(schema_of(GroundedAnswer)))
    with served(kind, OK) as (_, server):
        for window in range(800, 1100, 60):
            result, _ = ask(windowed(kind, server, window), "sync", MANY, num_output=100, **how(kind))
            assert (result.usage.prompt_tokens or 0) + 0.9 * schema + 100 <= window


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_count_the_schema_is_believed(kind: str) -> None:
    """A schema that the server compiles to a grammar is missing in its count; that is no sign of a cut prompt."""
    with served(kind, OK) as (llm, _):
        result, _ = ask(llm, "stream", make_nodes(["Within 21 days."]), system_prompt="Cite.", **how(kind))
    assert (result.answer, result.refusal, result.warnings) == (OK["answer"], None, ())


def test_openais_protocol_to_an_ollama_is_named() -> None:
    """An Ollama takes no num_ctx over OpenAI's protocol; at its usual port, a warning says so before any call."""
    for address, warned in (("http://gpu:11434/v1", True), ("http://gpu:8000/v1", False), ("http://gpu/v1", False)):
        llm = OpenAILike(model="m", api_base=address, api_key="k", is_chat_model=True, context_window=8192)
        warnings = CitingSynthesizer(llm).preview(QUESTION, MANY).warnings
        assert any("use the class Ollama" in warning for warning in warnings) is warned
