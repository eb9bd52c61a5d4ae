"""An Ollama without a window: what is assumed where its server does not tell, and who is warned."""

from __future__ import annotations

import logging

import pytest
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.ollama import Ollama

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine
from llama_index_grounded.errors import GenerationError
from llama_index_grounded.testing import FixedRetriever
from tests.answers import OK, QUESTION, SOURCES, Ask
from tests.ollama_server import OllamaServer, Reply
from tests.streaming.kinds import MODES, ask


def model(server: OllamaServer, window: int = -1) -> Ollama:
    """Return LlamaIndex's client for the server."""
    return Ollama(model="gemma3:4b", base_url=server.url, context_window=window)


def warned(synthesizer: CitingSynthesizer) -> bool:
    """Tell whether a query is warned that nobody chose the window."""
    return any("no context_window" in warning for warning in synthesizer.preview(QUESTION, SOURCES).warnings)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_server_that_tells_no_window_is_called_with_the_assumed_one(
    ollama_server: OllamaServer, caplog: pytest.LogCaptureFixture, status: int, mode: str
) -> None:
    """The log names LlamaIndex's default, and the call goes out with just that, without asking again."""
    ollama_server.script(OK)
    ollama_server.fail("/api/show", status, "no")
    with caplog.at_level(logging.WARNING):
        result, _ = ask(model(ollama_server), mode)
    assert (result.answer, result.refusal) == (OK["answer"], None)
    assert f"{DEFAULT_CONTEXT_WINDOW} is assumed" in caplog.text
    assert [request.path for request in ollama_server.requests] == ["/api/show", "/api/chat"]
    assert ollama_server.chats[0]["options"]["num_ctx"] == DEFAULT_CONTEXT_WINDOW


def test_a_server_that_is_down_is_reported_by_the_call(ollama_server: OllamaServer) -> None:
    """An outage is an error of the call that follows, not of the question for the window."""
    ollama_server.script(Reply(status=404, error="model not found"))
    ollama_server.fail("/api/show", 404, "model not found")
    with pytest.raises(GenerationError, match="status 404") as caught:
        CitingSynthesizer(model(ollama_server), on_error="raise").synthesize(QUESTION, SOURCES)
    assert not caught.value.retryable
    assert len(ollama_server.chats) == 1


def test_the_models_object_is_left_as_it_was(ollama_server: OllamaServer, ask: Ask) -> None:
    """What the server told is remembered without a note on the user's LLM, and every call is sent it."""
    ollama_server.script(OK)
    llm = model(ollama_server)
    for _ in range(2):
        assert ask(CitingSynthesizer(llm)).answerable
    assert llm.context_window == -1
    assert {chat["options"]["num_ctx"] for chat in ollama_server.chats} == {8192}


def test_each_user_of_one_model_is_warned(ollama_server: OllamaServer) -> None:
    """A second synthesizer and an engine over the same LLM are warned as the first was; the server is asked once."""
    llm = model(ollama_server)
    first = CitingSynthesizer(llm)
    assert [warned(first), warned(first), warned(CitingSynthesizer(llm))] == [True] * 3
    engine = GroundedQueryEngine.from_args(retriever=FixedRetriever(SOURCES), llm=llm)
    ollama_server.script(OK)
    assert any("no context_window" in warning for warning in engine.query(QUESTION).grounded.warnings)
    assert [request.path for request in ollama_server.requests].count("/api/show") == 1


def test_a_window_that_llamaindex_noted_is_not_taken_for_one_that_was_set(ollama_server: OllamaServer) -> None:
    """A chat memory asks the LLM for its window, which LlamaIndex then writes onto it; the warning stays."""
    llm = model(ollama_server)
    synthesizer = CitingSynthesizer(llm)
    ChatMemoryBuffer.from_defaults(llm=llm)
    assert llm.context_window == 8192
    assert warned(synthesizer)
    assert warned(CitingSynthesizer(llm))


def test_a_window_that_is_set_later_is_one_that_was_set(ollama_server: OllamaServer) -> None:
    """Set on the LLM after the synthesizer was made, or after it was warned, the window counts and nobody is warned."""
    late, later = model(ollama_server), model(ollama_server)
    synthesizers = [CitingSynthesizer(late), CitingSynthesizer(later)]
    assert warned(synthesizers[1])
    for llm, synthesizer in zip((late, later), synthesizers, strict=True):
        llm.context_window = 4096
        assert not warned(synthesizer)
        assert synthesizer.context_window() == 4096
        llm.context_window = -1
        assert warned(synthesizer)


def test_another_model_is_not_taken_for_one_that_is_gone(ollama_server: OllamaServer) -> None:
    """What is known of an LLM ends with it: one in its place in memory that has a window is not warned about."""
    for _ in range(20):
        assert warned(CitingSynthesizer(model(ollama_server)))
        assert not warned(CitingSynthesizer(model(ollama_server, 4096)))
