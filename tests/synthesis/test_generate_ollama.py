"""Generation through LlamaIndex's real Ollama class, against a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import time
import warnings
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.llms.ollama import Ollama

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.errors import GenerationError
from llama_index_grounded.testing import make_nodes
from tests.answers import OK, QUESTION, SOURCES, Ask, reason
from tests.ollama_server import OllamaServer, Reply

TEXT = json.dumps(OK)
SECRET = "model runner has crashed at 0xdeadbeef"


def model(server: OllamaServer, **options: Any) -> Ollama:
    """Return LlamaIndex's client for the server."""
    options = {"context_window": 8192, **options}
    return Ollama(model="gemma3:4b", base_url=server.url, **options)


def test_the_schema_travels_in_the_request(ollama_server: OllamaServer, ask: Ask) -> None:
    """Ollama gets the schema as `format`, fields in order and without references, and no schema in the prompt."""
    ollama_server.script(OK)
    assert ask(CitingSynthesizer(model(ollama_server))).answer == OK["answer"]
    (chat,) = ollama_server.chats
    assert list(chat["format"]["properties"]) == ["verdict", "sources", "answer"]
    assert chat["format"]["additionalProperties"] is False
    written = json.dumps(chat["format"])
    assert not any(word in written for word in ("$ref", "$defs", "pattern"))
    assert "additionalProperties" not in chat["messages"][-1]["content"]


def test_the_schema_can_stay_in_the_prompt(ollama_server: OllamaServer, ask: Ask) -> None:
    """With `structured_output="prompt"` the server is sent no format and the prompt holds the schema."""
    ollama_server.script(OK)
    assert ask(CitingSynthesizer(model(ollama_server), structured_output="prompt")).answerable
    (chat,) = ollama_server.chats
    assert not chat.get("format")
    assert '"additionalProperties": false' in chat["messages"][-1]["content"]


def test_window_and_output_limit_are_sent(ollama_server: OllamaServer, ask: Ask) -> None:
    """The request names num_ctx and num_predict; options of the user stay, and the user's object is unchanged."""
    ollama_server.script(OK)
    llm = model(ollama_server, context_window=4096, additional_kwargs={"seed": 7, "num_predict": 5})
    before = llm.model_dump(exclude={"callback_manager"})
    assert ask(CitingSynthesizer(llm, num_output=300)).answerable
    options = ollama_server.chats[0]["options"]
    assert (options["num_ctx"], options["num_predict"], options["seed"]) == (4096, 300, 7)
    assert llm.model_dump(exclude={"callback_manager"}) == before
    asyncio.run(llm.acomplete("x"))
    llm.complete("x")
    assert all(not chat.get("format") for chat in ollama_server.chats[1:])


def test_usage_is_what_ollama_reports(ollama_server: OllamaServer, ask: Ask) -> None:
    """Prompt and completion tokens are the server's own counts; what it leaves out is None."""
    ollama_server.script(Reply(content=OK, prompt_eval_count=777, eval_count=33), Reply(content=OK, report_usage=False))
    synthesizer = CitingSynthesizer(model(ollama_server))
    usage = ask(synthesizer).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (777, 33)
    usage = ask(synthesizer).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (None, None)


def test_our_estimate_is_close_to_what_is_counted(ollama_server: OllamaServer) -> None:
    """The estimate differs from a count of the messages with o200k_base by the few tokens of the chat template."""
    ollama_server.script(OK)
    usage = CitingSynthesizer(model(ollama_server)).synthesize(QUESTION, SOURCES).grounded.usage
    assert usage.prompt_tokens == pytest.approx(usage.estimated_prompt_tokens, abs=16)


def test_nothing_is_asked_at_construction(ollama_server: OllamaServer) -> None:
    """Building a synthesizer sends no request, also where the window has to be asked for later."""
    synthesizer = CitingSynthesizer(model(ollama_server, context_window=-1))
    assert ollama_server.requests == []
    plan = synthesizer.preview(QUESTION, SOURCES)
    assert plan.allowance == 8192 - 1024
    assert [request.path for request in ollama_server.requests] == ["/api/show"]


def test_the_window_is_asked_for_once(ollama_server: OllamaServer, ask: Ask) -> None:
    """Three queries ask the server for the window at most once, and not at all where num_ctx says it."""
    ollama_server.script(OK)
    for options in ({}, {"additional_kwargs": {"num_ctx": 4096}}):
        synthesizer = CitingSynthesizer(model(ollama_server, context_window=-1, **options))
        for _ in range(3):
            assert ask(synthesizer).answerable
    paths = [request.path for request in ollama_server.requests]
    assert (paths.count("/api/chat"), paths.count("/api/show")) == (6, 1)
    assert [chat["options"]["num_ctx"] for chat in ollama_server.chats] == [8192] * 3 + [4096] * 3


def test_a_window_that_nobody_chose_is_warned_about(ollama_server: OllamaServer, ask: Ask) -> None:
    """Without a window Ollama is sent the model's whole length; the result says so, and is silent where one is set."""
    ollama_server.script(OK)
    (warning,) = ask(CitingSynthesizer(model(ollama_server, context_window=-1))).warnings
    assert "context_window" in warning
    assert ask(CitingSynthesizer(model(ollama_server))).warnings == ()


def test_a_prompt_over_num_ctx_is_never_sent(ollama_server: OllamaServer) -> None:
    """Ollama would cut a prompt of 3,000 tokens to a window of 2,048 without a word; it is refused instead."""
    response = CitingSynthesizer(model(ollama_server, context_window=2048)).synthesize(
        QUESTION, make_nodes(["word " * 3000])
    )
    assert response.refusal is not None
    assert response.refusal.reason == "prompt_too_long"
    assert ollama_server.requests == []


def test_a_prompt_that_the_server_cut_is_noticed(ollama_server: OllamaServer, ask: Ask) -> None:
    """A server that counts far fewer prompt tokens than were sent did not see the sources."""
    ollama_server.script(Reply(content=OK, prompt_eval_count=130))
    result = ask(CitingSynthesizer(model(ollama_server)))
    assert (reason(result), result.citations, len(ollama_server.chats)) == ("prompt_truncated", (), 1)


def test_a_gap_of_64_tokens_says_nothing(ollama_server: OllamaServer) -> None:
    """Under 60 % of a short prompt is no sign of a cut while 64 tokens or fewer are missing; with 65 it is one."""
    template = PromptTemplate("{context_str}{query_str}")
    synthesizer = CitingSynthesizer(model(ollama_server), system_prompt="", text_qa_template=template)
    sent = synthesizer.preview(QUESTION, SOURCES[:1]).tokens
    assert sent - 64 < 0.6 * sent
    for missing, expected in ((64, None), (65, "prompt_truncated")):
        ollama_server.script(Reply(content=OK, prompt_eval_count=sent - missing))
        response = synthesizer.synthesize(QUESTION, SOURCES[:1])
        assert (response.refusal and response.refusal.reason) == expected


@pytest.mark.parametrize(
    "reply, told, calls",
    [
        (Reply(content="", thinking=TEXT), "thinking", 2),
        (Reply(content=OK, thinking="Let me see {here}."), None, 1),
        (Reply(content=f"<think>a {{b}} </think>{TEXT}"), None, 1),
        (Reply(content=TEXT[:40], done_reason="length"), "output limit", 1),
        (Reply(content="", done_reason="length"), "output limit", 1),
        (Reply(content=OK, done_reason="length"), None, 1),
        (Reply(content="Sure, here is your answer."), "no JSON object", 2),
        (Reply(content=f"```json\n{TEXT}\n```"), None, 1),
        (Reply(content='{\n\n{\n"verdict": "answered"}'), "malformed", 2),
        (Reply(content="{" + " " * 5000), "JSON object", 2),
    ],
    ids=["only thinking", "thinking", "think tag", "cut", "nothing", "just done", "prose", "fence", "braces", "blanks"],
)
def test_what_local_models_do(
    ollama_server: OllamaServer, ask: Ask, reply: Reply, told: str | None, calls: int
) -> None:
    """Thinking is skipped; an empty, cut or unformatted reply is refused with its cause, a cut one without a retry."""
    ollama_server.script(reply)
    result = ask(CitingSynthesizer(model(ollama_server)))
    assert len(ollama_server.chats) == result.llm_calls == calls
    if told is None:
        assert result.answer == OK["answer"]
    else:
        assert reason(result) == "invalid_output"
        assert result.refusal is not None
        assert told in result.refusal.detail


FAULTS = [
    Reply(status=500, error=SECRET),
    Reply(status=400, error=SECRET),
    Reply(content=OK, error=SECRET, drop_after=2),
    Reply(content=OK, drop_after=0),
    Reply(content=OK, drop_after=2),
]


@pytest.mark.parametrize("reply", FAULTS, ids=["500", "400", "error line", "dropped", "dropped midway"])
def test_a_failing_server_is_a_provider_error(
    ollama_server: OllamaServer, ask: Ask, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    """Each failure is one call, one refusal that names only the kind of error, and the server's words in the log."""
    ollama_server.script(reply)
    result = ask(CitingSynthesizer(model(ollama_server)))
    assert (reason(result), result.llm_calls, len(ollama_server.chats)) == ("provider_error", 1, 1)
    assert SECRET not in result.model_dump_json()
    assert result.answer == "The answering service is not available right now. Please try again later."
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert not reply.error or SECRET in (errors[0].exc_text or "")


def test_a_model_that_is_not_installed(ollama_server: OllamaServer, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """A missing model is a provider error, its name only in the log, with or without a known window."""
    for window in (8192, -1):
        result = ask(CitingSynthesizer(Ollama(model="missing:7b", base_url=ollama_server.url, context_window=window)))
        assert reason(result) == "provider_error"
        assert "missing:7b" not in result.model_dump_json()
    assert "missing:7b" in caplog.text


def test_a_server_that_is_not_there(ask: Ask) -> None:
    """A refused connection is a provider error, and is raised as a GenerationError where that is wanted."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        llm = Ollama(model="gemma3:4b", base_url=f"http://127.0.0.1:{place.getsockname()[1]}", context_window=8192)
        assert reason(ask(CitingSynthesizer(llm))) == "provider_error"
        with pytest.raises(GenerationError) as caught:
            ask(CitingSynthesizer(llm, on_error="raise"))
    assert caught.value.retryable
    assert isinstance(caught.value.__cause__, Exception)
    assert str(caught.value.__cause__) not in str(caught.value)


@pytest.mark.parametrize("window", [8192, -1], ids=["window known", "window asked"])
@pytest.mark.parametrize("reply", [Reply(content=OK, delay=20), Reply(content=OK, pause=0.2)], ids=["hangs", "slow"])
def test_the_deadline_holds(ollama_server: OllamaServer, ask: Ask, reply: Reply, window: int) -> None:
    """A server that does not begin, or writes slowly, is left at the deadline, and sees the client go."""
    ollama_server.script("warm", reply)
    llm = model(ollama_server, context_window=window)
    llm.complete("An earlier call, which leaves an open client behind.")
    started = time.monotonic()
    result = ask(CitingSynthesizer(llm, timeout=0.5))
    assert time.monotonic() - started < 5
    assert (reason(result), result.llm_calls) == ("deadline_exceeded", 1)
    assert ollama_server.wait_closed(seconds=2)
    with pytest.raises(GenerationError, match="deadline_exceeded"):
        ask(CitingSynthesizer(llm, timeout=0.2, on_error="raise"))


def test_the_clients_own_timeout_is_a_provider_error(ollama_server: OllamaServer, ask: Ask) -> None:
    """Where the client gives up before our deadline, it is an outage, not a deadline of the query."""
    ollama_server.script(Reply(content=OK, delay=5))
    result = ask(CitingSynthesizer(model(ollama_server, request_timeout=0.3)))
    assert reason(result) == "provider_error"
    assert result.refusal is not None
    assert "ReadTimeout" in result.refusal.detail


@pytest.mark.parametrize("request_timeout", [30.0, 300.0])
def test_no_connection_is_left_open(ask: Ask, request_timeout: float) -> None:
    """Queries against a server that keeps connections alive leak none, whichever time limit is the shorter."""
    with OllamaServer(OK, keep_alive=True) as server, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        llm = model(server, request_timeout=request_timeout)
        for _ in range(3):
            assert ask(CitingSynthesizer(llm)).answerable
        gc.collect()
        assert [str(warning.message) for warning in caught] == []
        client: Any = llm.client
        client.close()


def test_a_reply_in_pieces_of_any_size(ask: Ask) -> None:
    """One character per chunk or all in one, Turkish letters and emoji included: the same answer."""
    words = {**OK, "answer": "21 gün içinde iade edilir 📚 [S1]. İyi okumalar!"}
    for size in (1, 7, 1000):
        with OllamaServer(words, chunk_size=size) as server:
            assert ask(CitingSynthesizer(model(server))).answer == words["answer"]
