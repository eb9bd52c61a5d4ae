"""What every test shares: the hypothesis profile and the fixtures of the two servers."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.ollama_server import ollama_server
from tests.postgres import pg_store, postgres, postgres_uri, wordllama_embed

__all__ = ["ollama_server", "pg_store", "postgres", "postgres_uri", "wordllama_embed"]


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
