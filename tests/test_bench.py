"""The commands of the measurements say what they do before they do it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
COMMANDS = sorted(path.stem for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))


def test_there_are_commands() -> None:
    """The search above finds what it looks for."""
    assert len(COMMANDS) >= 9


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for help, it prints its options and what it is for, measures nothing, and ends with 0."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"bench.{name}", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {name} [-h]")
