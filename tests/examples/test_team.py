"""The example for a team: on servers that its variables name, and the Compose file that starts them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # it ships no types
from sqlalchemy import make_url

import team
from support.command import run
from support.ollama_host import base_url
from tests.examples.conftest import EXAMPLES
from tests.ollama_server import OllamaServer

ANSWER = {"verdict": "answered", "sources": ["S1"], "answer": "It is said there [S1]."}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The Compose file, read."""
    loaded: dict[str, Any] = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def commands() -> list[list[str]]:
    """The commands of the docstring, split into words as a shell does."""
    assert team.__doc__ is not None
    lines = [line for line in team.__doc__.splitlines() if line.startswith("    ")]
    return [shlex.split(command) for line in lines for command in line.split("&&")]


def exported(commands: list[list[str]], name: str) -> list[str]:
    """The values that the commands give a variable."""
    words = [word for command in commands if command[0] == "export" for word in command[1:]]
    return [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]


@pytest.mark.usefixtures("offline_machine")
def test_the_servers_of_the_variables_store_and_answer(
    postgres_uri: str, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With both variables the first run stores the pages there, and each question is answered by that Ollama."""
    ollama_server.script(ANSWER)
    monkeypatch.setenv("DATABASE_URL", postgres_uri)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    assert run("team", team.main) == 0
    first = capsys.readouterr()
    assert "(DATABASE_URL)" in first.err
    assert "Ingesting: 0 of " in first.err
    assert [line for line in first.out.splitlines() if line in team.QUESTIONS] == list(team.QUESTIONS)
    assert first.out.count("  It is said there [S1].\n  [S1] ") == len(team.QUESTIONS)
    assert [chat["model"] for chat in ollama_server.chats] == [team.CHAT] * len(team.QUESTIONS)
    assert run("team", team.main) == 0
    assert "Ingesting" not in capsys.readouterr().err


@pytest.mark.usefixtures("offline_machine")
def test_a_missing_model_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An Ollama without the models is reported with the command that gets one."""
    with OllamaServer(models=[]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert run("team", team.main) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert f"ollama pull {team.CHAT}" in printed.err


def test_the_services_listen_on_this_machine_and_keep_their_data(compose: dict[str, Any]) -> None:
    """Each service has a fixed image, one port on the loopback, a health check and a named volume."""
    assert list(compose["services"]) == ["postgres", "ollama"]
    for service in compose["services"].values():
        (port,), (volume,) = service["ports"], service["volumes"]
        assert port.startswith("127.0.0.1:")
        assert volume.partition(":")[0] in compose["volumes"]
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["image"].rpartition(":")[2][0].isdigit()


def test_the_database_url_is_that_of_the_service(compose: dict[str, Any], commands: list[list[str]]) -> None:
    """User, password, database and port of the docstring's URL are those that the Compose file sets."""
    service = compose["services"]["postgres"]
    settings, (port,) = service["environment"], service["ports"]
    url = make_url(exported(commands, "DATABASE_URL")[0])
    assert (url.username, url.database) == (settings["POSTGRES_USER"], settings["POSTGRES_DB"])
    assert port == f"{url.host}:{url.port}:5432"
    assert settings["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert url.password == "$POSTGRES_PASSWORD"
    assert exported(commands, "POSTGRES_PASSWORD") == ["choose-one"]


def test_the_ollama_host_is_that_of_the_service(compose: dict[str, Any], commands: list[list[str]]) -> None:
    """The port of OLLAMA_HOST, with and without Docker, is the one that the Compose file opens."""
    (port,) = compose["services"]["ollama"]["ports"]
    hosts = exported(commands, "OLLAMA_HOST")
    assert len(hosts) == 2
    assert {base_url(host) for host in hosts} == {f"http://{port.removesuffix(':11434')}"}


def test_the_commands_get_the_models_that_it_uses(compose: dict[str, Any], commands: list[list[str]]) -> None:
    """Both ways pull both models, and the Docker commands name the file and a service in it."""
    pulls = [command[command.index("pull") + 1] for command in commands if "pull" in command]
    assert pulls == [team.CHAT, team.EMBEDDING] * 2
    for command in commands:
        if command[0] == "docker":
            assert Path(EXAMPLES.parent / command[3]).is_file()
            assert command[4] == "up" or command[5] in compose["services"]
