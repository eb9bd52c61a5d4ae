"""What a server answers in place of a reply: its status stands in the refusal, and decides what may be tried again."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded.errors import GenerationError
from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.streaming.kinds import KINDS, MODES, OK, ask, how, reason, served

STATUSES = {400: False, 401: False, 403: False, 404: False, 422: False, 408: True, 429: True, 500: True, 503: True}


class _Error(Exception):
    """An error of a provider, with what it knows of an answer."""

    def __init__(self, **known: Any) -> None:
        super().__init__("no")
        self.__dict__.update(known)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", STATUSES)
def test_a_request_that_was_refused_is_not_worth_a_retry(status: int, kind: str) -> None:
    """A bad request, a wrong key and an unknown model stay what they are; a busy server may have time later."""
    with served(kind, Reply(status=status, error="no")) as (llm, _), pytest.raises(GenerationError) as caught:
        ask(llm, "sync", on_error="raise", **how(kind))
    assert (caught.value.reason, caught.value.retryable) == ("provider_error", STATUSES[status])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_status_is_told(kind: str, mode: str) -> None:
    """A prompt that the server finds too long is a provider_error whose detail has the status, not the words."""
    words = "the input length exceeds the context length 4096"
    with served(kind, Reply(status=400, error=words)) as (llm, _):
        result, _ = ask(llm, mode, **how(kind))
    assert result.refusal is not None
    assert reason(result) == "provider_error"
    assert ", status 400)" in result.refusal.detail
    assert "length" not in result.refusal.detail


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["ollama", "openai-like"])
def test_without_a_status_a_retry_may_help(kind: str, mode: str) -> None:
    """An error in the middle of a stream, and a connection that is cut, have no status."""
    for reply in (Reply(content=OK, error="no", drop_after=2), Reply(content=OK, drop_after=0)):
        with served(kind, reply) as (llm, _), pytest.raises(GenerationError) as caught:
            ask(llm, mode, on_error="raise")
        assert caught.value.retryable
        assert "status" not in str(caught.value)


@pytest.mark.parametrize(
    "known, retryable",
    [
        ({"status_code": 401}, False),
        ({"response": _Error(status_code=404)}, False),
        ({"response": _Error(status_code=502)}, True),
        ({"status_code": -1, "response": None}, True),
        ({"status_code": "401"}, True),
        ({}, True),
    ],
)
def test_a_status_is_read_where_clients_put_it(known: dict[str, Any], retryable: bool) -> None:
    """It stands on the error, or on the response that the error holds; what is no status is none."""
    with pytest.raises(GenerationError) as caught:
        ask(ScriptedLLM([_Error(**known)]), "sync", on_error="raise")
    assert caught.value.retryable is retryable
