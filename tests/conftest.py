"""What every test shares: the hypothesis profile and the fixtures of the two servers."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from llama_index.core.callbacks.base import global_stack_trace
from llama_index.core.callbacks.schema import BASE_TRACE_EVENT

from tests.ollama_server import ollama_server
from tests.postgres import pg_store, postgres, postgres_uri, wordllama_embed

__all__ = ["ollama_server", "pg_store", "postgres", "postgres_uri", "wordllama_embed"]


@pytest.fixture(autouse=True)
def _no_events_of_others() -> None:
    """LlamaIndex leaves the event of a call that raised on the stack of its thread: no test begins with another's."""
    global_stack_trace.set([BASE_TRACE_EVENT])


@pytest.fixture
def hanging() -> Iterator[str]:
    """Listen, accept and never answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(20)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start one process more than there are cores: a part of the tests waits for servers and deadlines."""
    return (yield) + 1


def pytest_configure() -> None:
    """Let a test run that is terminated stop the servers that it started."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", 143))


# Without a deadline: a shared machine is slow at times, and a slow example proves nothing.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=1000)
# In CI the same examples every time, so that a change fails for its own faults alone.
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=50,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
