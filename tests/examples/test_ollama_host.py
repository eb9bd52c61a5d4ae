"""Finding an Ollama server and its models."""

from __future__ import annotations

import socket
import time

import pytest

from support import ollama_host
from support.errors import SetupError
from support.ollama_host import base_url, find_ollama
from tests.ollama_server import OllamaServer


@pytest.fixture
def closed_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "host,url",
    [
        ("box", "http://box:11434"),
        ("box:8000", "http://box:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - read, not bound
        ("[::1]:8000", "http://[::1]:8000"),
        ("http://box:8000/", "http://box:8000"),
        ("https://box/ollama/", "https://box/ollama"),
    ],
)
def test_a_host_is_read_in_every_common_form(host: str, url: str) -> None:
    """Bare hosts, ports, bind addresses and URLs lead to the server that is meant."""
    assert base_url(host) == url


@pytest.mark.parametrize("host", ["file:///etc", "ftp://box", "tcp://127.0.0.1:11434"])
def test_a_url_of_another_kind_is_refused(host: str) -> None:
    """Only http and https lead to an Ollama; a file is never read as one."""
    with pytest.raises(SetupError, match="is no address"):
        base_url(host)


def test_a_host_that_is_no_address_is_refused() -> None:
    """A port that is no number gets one line that shows the right form."""
    with pytest.raises(SetupError, match="OLLAMA_HOST=box:x is no address: write host:port"):
        base_url("box:x")


def test_a_server_with_both_models_is_chosen(ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """OLLAMA_HOST decides; a model without a tag means its latest one."""
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url.removeprefix("http://"))
    found = find_ollama("gemma3:4b", "nomic-embed-text")
    assert found is not None
    assert found.url == ollama_server.url


@pytest.mark.parametrize("missing", ["gemma3:4b", "nomic-embed-text"])
def test_a_missing_model_is_named_with_the_command_that_gets_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which model to pull."""
    others = [name for name in ("gemma3:4b", "nomic-embed-text") if name != missing]
    with OllamaServer(models=others) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        with pytest.raises(SetupError, match=f"ollama pull {missing}"):
            find_ollama("gemma3:4b", "nomic-embed-text")


def test_a_host_that_was_named_and_does_not_answer_is_an_error(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who names a server does not silently get another answerer."""
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{closed_port}")
    with pytest.raises(SetupError, match=f"no Ollama answers at http://127.0.0.1:{closed_port}"):
        find_ollama("gemma3:4b", "nomic-embed-text")


def test_no_server_on_the_default_port_means_none(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OLLAMA_HOST a silent default port is no error."""
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.setattr(ollama_host, "DEFAULT_HOST", f"127.0.0.1:{closed_port}")
    assert find_ollama("gemma3:4b", "nomic-embed-text") is None


def test_a_server_that_is_no_ollama_is_an_error(ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else listens at OLLAMA_HOST is not taken for an Ollama."""
    ollama_server.fail("/api/tags", 404, "not found")
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    with pytest.raises(SetupError, match="HTTP 404"):
        find_ollama("gemma3:4b", "nomic-embed-text")


def test_a_server_that_accepts_and_stays_silent_costs_about_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe gives up after its time-out."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(SetupError, match="no Ollama answers"):
            find_ollama("gemma3:4b", "nomic-embed-text")
    assert time.monotonic() - started < 5 * ollama_host.PROBE_SECONDS
