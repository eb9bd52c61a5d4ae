"""A server that fills in its usage with zeros has not counted."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded.testing import ScriptedLLM
from tests.ollama_server import Reply
from tests.streaming.kinds import MODES, OK, ask, served


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "usage, reported",
    [
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (None, None)),
        ({"prompt_tokens": 0, "completion_tokens": 9, "total_tokens": 9}, (None, 9)),
        ({"prompt_tokens": 900, "completion_tokens": 0}, (900, 0)),
        ({"input_tokens": 0, "output_tokens": 0}, (None, None)),
        ({"input_tokens": 0, "cache_read_input_tokens": 900, "output_tokens": 9}, (900, 9)),
        (None, (None, None)),
    ],
    ids=str,
)
def test_zero_prompt_tokens_are_not_reported(usage: dict[str, Any] | None, reported: object, mode: str) -> None:
    """A request that was answered had a prompt: a count of 0 is None, and no sign of a prompt that was cut."""
    result, _ = ask(ScriptedLLM([OK], usage=usage), mode)
    assert (result.answer, result.refusal, result.warnings) == (OK["answer"], None, ())
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == reported


@pytest.mark.parametrize("kind", ["ollama", "openai-like", "text"])
def test_a_server_that_counts_nothing_is_believed(kind: str) -> None:
    """The same over the wire, whatever the protocol."""
    with served(kind, Reply(content=OK, prompt_eval_count=0, eval_count=0)) as (llm, _):
        result, _ = ask(llm, "stream")
    assert (result.answer, result.usage.prompt_tokens) == (OK["answer"], None)
