"""The accepted reply of a stream, with the fields of an answer class of one's own."""

from __future__ import annotations

import pytest

from llama_index_grounded import GroundedAnswer
from llama_index_grounded.errors import GroundedError
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import OK, astreamed, streamed


class Rated(GroundedAnswer):
    """An answer that says how sure it is."""

    sure: bool


REPLY = {**OK, "sure": True}


def test_a_stream_has_the_accepted_reply() -> None:
    """`parsed` reads the stream to its end, and is the reply as the answer class."""
    parsed = streamed(ScriptedLLM([REPLY], chunk_size=5), output_cls=Rated).parsed
    assert isinstance(parsed, Rated)
    assert (parsed.sure, parsed.answer) == (True, OK["answer"])


async def test_an_async_stream_has_it_at_its_end() -> None:
    """Before the end `parsed` says that it is not known yet, as `grounded` does."""
    response = await astreamed(ScriptedLLM([REPLY], chunk_size=5), output_cls=Rated)
    with pytest.raises(GroundedError, match="not ended"):
        _ = response.parsed
    whole = await response.get_response()
    assert isinstance(response.parsed, Rated)
    assert response.parsed == whole.parsed


def test_a_refusal_has_none() -> None:
    """Where the reply was not accepted, or the stream was closed, there is none."""
    assert streamed(ScriptedLLM(["Sure."]), max_retries=0).parsed is None
    closed = streamed(ScriptedLLM([OK], chunk_size=5))
    closed.close()
    assert closed.parsed is None
