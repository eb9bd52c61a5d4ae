"""Each kind of LLM is given the form of its reply in its own way, and answers alike in all four modes."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from llama_index.llms.openai_like import OpenAILike

from llama_index_grounded import GroundedAnswer
from llama_index_grounded.llm.structured import bounded, schema_of
from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.openai_server import OpenAIServer
from tests.streaming.kinds import KINDS, MODES, OK, QUESTION, SOURCES, ask, client, how, served, streamed

LONG = {**OK, "answer": "Within 21 days [S1], unread. Keep the receipt [S2]."}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_answers_in_every_mode(kind: str, mode: str) -> None:
    """Over real HTTP each kind brings answer, citations and usage, sync and async; streams bring it in parts."""
    with served(kind, LONG) as (llm, server):
        result, texts = ask(llm, mode, **how(kind))
        assert (result.answer, result.refusal) == (LONG["answer"], None)
        assert [citation.key for citation in result.citations] == ["S1", "S2"]
        assert result.usage.prompt_tokens
        assert result.usage.completion_tokens
        assert (result.llm_calls, len(server.chats)) == (1, 1)
        if "stream" in mode:
            assert len(texts) > 3
            assert "".join(texts) == result.answer


def test_a_format_is_sent_to_ollama() -> None:
    """Ollama gets the schema as `format`, and the prompt does not hold it."""
    with served("ollama", OK) as (llm, server):
        ask(llm, "stream")
        (body,) = server.chats
    assert body["format"] == bounded(schema_of(GroundedAnswer), len(SOURCES))
    assert body["format"]["properties"]["sources"]["maxItems"] == 2
    assert "additionalProperties" not in json.dumps(body["messages"])


@pytest.mark.parametrize("kind", ["openai", "openai-like"])
def test_a_response_format_is_sent_to_openai(kind: str) -> None:
    """OpenAI and servers like it get a strict JSON schema under the name of the class, and no tools."""
    with served(kind, OK) as (llm, server):
        ask(llm, "stream")
        (body,) = server.chats
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "GroundedAnswer", "schema": schema_of(GroundedAnswer), "strict": True},
    }
    assert "tools" not in body
    assert "additionalProperties" not in json.dumps(body["messages"])


def test_words_and_the_schema_are_sent_to_a_text_model() -> None:
    """An LLM that completes text finds the schema in its prompt and is sent no other form."""
    with served("text", OK) as (llm, server):
        ask(llm, "stream")
        (request,) = server.requests
    assert request.path == "/v1/completions"
    assert json.dumps(schema_of(GroundedAnswer), ensure_ascii=False) in request.body["prompt"]
    assert not {"response_format", "tools", "format"} & set(request.body)


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_can_be_chosen(kind: str) -> None:
    """With `structured_output="prompt"` every kind gets words alone."""
    with served(kind if kind != "function" else "openai", OK) as (llm, server):
        assert ask(llm, "sync", structured_output="prompt").result.answerable
        (body,) = server.chats
    assert not {"response_format", "tools", "format"} & {name for name, value in body.items() if value}
    assert "additionalProperties" in json.dumps(body)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_output_limit_and_the_users_options_are_sent(kind: str, mode: str) -> None:
    """`num_output` goes out as the limit, beside what the user set on the LLM, which stays as it was."""
    with served(kind, OK) as (_, server):
        extra = {"num_ctx": 4096, "top_k": 3} if kind == "ollama" else {"seed": 7, "top_p": 0.5}
        llm = client(kind, server, temperature=0.3, additional_kwargs=extra)
        before = copy.deepcopy(llm.model_dump())
        assert ask(llm, mode, num_output=300, **how(kind)).result.answerable
        (body,) = server.chats
        assert llm.model_dump() == before
    options = body["options"] if kind == "ollama" else body
    assert options["temperature"] == 0.3
    assert {name: options[name] for name in extra} == extra
    assert options["num_predict" if kind == "ollama" else "max_tokens"] == 300


_LIMITS = ("num_predict", "max_tokens", "max_completion_tokens")


@pytest.mark.parametrize(
    "kind, own",
    [("ollama", "num_predict"), ("text", "max_tokens"), *((kind, own) for kind in KINDS[1:4] for own in _LIMITS[1:])],
)
def test_a_limit_among_the_users_options_gives_way(kind: str, own: str) -> None:
    """One limit is sent, ours, also where the user's additional options name one."""
    with served(kind, OK) as (_, server):
        llm = client(kind, server, additional_kwargs={own: 5})
        ask(llm, "sync", num_output=300, **how(kind))
        (body,) = server.chats
    options = body["options"] if kind == "ollama" else body
    assert [options[name] for name in _LIMITS if name in options] == [300]
    assert llm.model_dump()["additional_kwargs"] == {own: 5}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_llms_own_system_prompt_comes_first(kind: str, mode: str) -> None:
    """A system prompt that the user set on the LLM is sent, once, in front of ours."""
    with served(kind, OK) as (_, server):
        ask(client(kind, server, system_prompt="Speak like a clerk."), mode, system_prompt="OUR RULES", **how(kind))
        text = json.dumps(server.chats[0])
    assert text.count("Speak like a clerk.") == 1
    assert text.count("OUR RULES") == 1
    assert text.index("Speak like a clerk.") < text.index("OUR RULES") < text.index("<source id=")


@pytest.mark.parametrize("kind", KINDS)
def test_a_shared_template_is_used_and_left_alone(kind: str) -> None:
    """The user's template shapes the prompt of each kind and is the same object, unchanged, afterwards."""
    template = PromptTemplate("SHARED {context_str} -- {query_str}")
    before = template.model_dump()
    with served(kind, OK) as (llm, server):
        for mode in MODES:
            ask(llm, mode, text_qa_template=template, **how(kind))
        assert all("SHARED" in json.dumps(body) for body in server.chats)
    assert template.model_dump() == before
    assert template.output_parser is None


def test_a_chat_template_keeps_its_roles() -> None:
    """Messages of a chat template go out in their order and roles, behind the system prompt."""
    messages = [
        ChatMessage(role=MessageRole.SYSTEM, content="house rules"),
        ChatMessage(role=MessageRole.USER, content="{context_str}"),
        ChatMessage(role=MessageRole.ASSISTANT, content="I see them."),
        ChatMessage(role=MessageRole.USER, content="{query_str}"),
    ]
    with served("openai", OK) as (llm, server):
        ask(llm, "stream", text_qa_template=ChatPromptTemplate(message_templates=messages), system_prompt="")
        sent = server.chats[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert QUESTION in sent[-1]["content"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_call_of_the_llm_is_free_again(kind: str) -> None:
    """After a query the same LLM object sends no format, schema or function with a plain call."""
    with served(kind, OK, OK, "Hello.") as (llm, server):
        for _ in range(2):
            assert ask(llm, "sync", **how(kind)).result.answerable
        server.script("Hello.")
        assert str(llm.complete("Hi")) == "Hello."
        body = server.chats[-1]
    assert not {"response_format", "tools", "format", "stream_options"} & {
        name for name, value in body.items() if value
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["sync", "astream"])
def test_usage_is_what_the_server_reports(kind: str, mode: str) -> None:
    """Prompt and completion tokens of each call are added up; where one call reports none, the sum is unknown."""
    counted = Reply(content="no object", prompt_eval_count=700, eval_count=9)
    silent = Reply(content=OK, report_usage=False)
    with served(kind, counted, Reply(content=OK, prompt_eval_count=750, eval_count=21)) as (llm, _):
        usage = ask(llm, mode, **how(kind)).result.usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (1450, 30)
    with served(kind, counted, silent) as (llm, _):
        result = ask(llm, mode, **how(kind)).result
        assert (result.usage.prompt_tokens, result.usage.completion_tokens, result.llm_calls) == (None, None, 2)
        assert result.usage.estimated_prompt_tokens > 0


def test_a_server_that_knows_no_stream_options_can_be_reached_in_words() -> None:
    """A call that is refused with HTTP 400 is a provider error, never a silent answer."""
    with served("openai-like", Reply(status=400, error="unknown field: response_format")) as (llm, server):
        result = ask(llm, "stream").result
        assert result.refusal is not None
        assert result.refusal.reason == "provider_error"
        assert "response_format" not in result.refusal.detail
        assert len(server.requests) == 1


def test_a_synthesizer_serves_streams_of_several_loops_and_then_sync_ones() -> None:
    """One synthesizer and one LLM object stream in one event loop after another, and then without one."""
    with served("openai-like", OK, keep_alive=False) as (llm, _):
        for _ in range(3):
            assert ask(llm, "astream").result.answerable
        assert ask(llm, "stream").result.answerable


def test_schema_of_the_answer_is_plain() -> None:
    """The schema that servers compile to a grammar has no pattern, reference, title or default."""
    text = json.dumps(schema_of(GroundedAnswer))
    assert not any(word in text for word in ("pattern", "$ref", "$defs", '"title"', '"default"', "anyOf"))


def test_what_a_text_model_is_sent_fits_a_scripted_one() -> None:
    """A CustomLLM of the user's own gets the same words in all four modes."""
    llm = ScriptedLLM([OK], chunk_size=6)
    assert all(ask(llm, mode).result.answer == OK["answer"] for mode in MODES)
    assert len(set(llm.prompts)) == 1
    assert "additionalProperties" in llm.prompts[0]


def test_two_streams_at_once_do_not_mix() -> None:
    """Streams of one synthesizer that are read in turns keep their own text."""
    with served("openai-like", {**OK, "answer": "one two three four"}, {**OK, "answer": "five six seven eight"}) as (
        llm,
        _,
    ):
        first, second = streamed(llm), streamed(llm)
        pairs = list(zip(first.response_gen, second.response_gen, strict=False))
        assert len(pairs) > 2
        assert (str(first), str(second)) == ("one two three four", "five six seven eight")


def test_an_async_client_of_the_users_own_is_used() -> None:
    """A client with its own address and key is asked, in async as in sync, and not the address of the LLM object."""
    openai = pytest.importorskip("openai")
    with OpenAIServer(OK) as mine, OpenAIServer("wrong") as other:
        clients = {
            "openai_client": openai.OpenAI(api_key="mine", base_url=mine.base),
            "async_openai_client": openai.AsyncOpenAI(api_key="mine", base_url=mine.base),
        }
        llm = OpenAILike(model="m", api_key="key", api_base=other.base, is_chat_model=True, **clients)
        for mode in MODES:
            assert ask(llm, mode).result.answer == OK["answer"]
        assert (len(mine.requests), len(other.requests)) == (4, 0)
        clients["openai_client"].close()
        asyncio.run(clients["async_openai_client"].close())
