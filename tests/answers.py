"""One question, its sources and a whole reply, and ways to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from llama_index_grounded import CitingSynthesizer, GroundedResponse, GroundedResult
from llama_index_grounded.testing import make_nodes

__all__ = ["OK", "QUESTION", "SOURCES", "Ask", "ask", "reason"]

QUESTION = "How long can I return a book?"
SOURCES = make_nodes(["Return a book within 21 days.", "Keep the receipt."])
OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}

Ask = Callable[[CitingSynthesizer], GroundedResult]


def reason(result: GroundedResult) -> str | None:
    """Return why there is no answer, or None."""
    return None if result.refusal is None else str(result.refusal.reason)


def _sync(synthesizer: CitingSynthesizer) -> GroundedResult:
    response = synthesizer.synthesize(QUESTION, SOURCES)
    assert isinstance(response, GroundedResponse)
    return response.grounded


def _async(synthesizer: CitingSynthesizer) -> GroundedResult:
    response = asyncio.run(synthesizer.asynthesize(QUESTION, SOURCES))
    assert isinstance(response, GroundedResponse)
    return response.grounded


@pytest.fixture(params=[_sync, _async], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask the question, once sync and once async."""
    way: Ask = request.param
    return way
