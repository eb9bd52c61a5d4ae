"""The commands of the measurements say what they do, and what data they lack, before they do it."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
COMMANDS = sorted(path.stem for path in BENCH.glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
OVER_DATA = [name for name in COMMANDS if '"--data"' in (BENCH / f"{name}.py").read_text(encoding="utf-8")]


def test_there_are_commands() -> None:
    """The search above finds what it looks for."""
    assert len(COMMANDS) >= 9
    assert len(OVER_DATA) >= 6


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for help, it prints its options and what it is for, measures nothing, and ends with 0."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"bench.{name}", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {name} [-h]")


def ends(name: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command over a folder that will not do, and return what it says of it."""
    monkeypatch.setattr(sys, "argv", [name, "--data", str(data)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"bench.{name}", run_name="__main__")
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    (line,) = [line for line in printed.err.splitlines() if "error: " in line]
    return line.partition("error: --data ")[2]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("name", OVER_DATA)
def test_a_command_says_what_data_it_lacks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the folder, or without one of its files, a command names it and ends with 2 before it prints anything."""
    absent, file = tmp_path / "absent", tmp_path / "file"
    file.touch()
    assert ends(name, absent, monkeypatch, capsys) == f"{absent}: there is no such folder"
    assert ends(name, file, monkeypatch, capsys) == f"{file}: this is no folder"
    needed = re.findall(r"no (\S+\.jsonl)", ends(name, tmp_path, monkeypatch, capsys))
    assert len(needed) >= 2
    for each in needed[1:]:
        (tmp_path / each).touch()
    assert ends(name, tmp_path, monkeypatch, capsys) == f"{tmp_path}: this folder has no {needed[0]}"
