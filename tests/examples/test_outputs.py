"""Every example, run as a user runs it, prints exactly what ``tests/examples/output`` says.

After a change that is meant: ``python examples/NAME.py > tests/examples/output/NAME.txt``, and read the difference.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES, SERVERS

OUTPUT = Path(__file__).parent / "output"
NAMES = sorted(path.stem for path in OUTPUT.glob("*.txt"))
ELSEWHERE = {
    "own_tests": "pytest runs it, and prints times",
    "quickstart": "it prints times; tests/examples/test_quickstart.py reads its output",
    "tenants": "its nodes have new ids in each run; tests/examples/test_tenants.py reads its output",
}
"""Examples without an output of their own, and why."""
WITHOUT_ARGUMENTS = [
    path.stem for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in ("own_tests", "quickstart")
]
MOST_LINES = 79
SECONDS = 90
"""For a process of its own: importing LlamaIndex alone takes seconds, and far more on a busy machine."""


def expected(name: str) -> str:
    """What an example prints on stdout."""
    return (OUTPUT / f"{name}.txt").read_text(encoding="utf-8")


def run_as_script(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    """Run an example in this process, without servers, and return its exit code."""
    path = EXAMPLES / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return end.code
    return 0


@pytest.mark.usefixtures("offline_machine")
@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_it_did(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run as a script in this process, without servers or arguments, it ends with 0 and prints the text on file."""
    code = run_as_script(name, monkeypatch)
    printed = capsys.readouterr()
    assert code in (0, None), printed.err
    assert printed.out == expected(name)


@pytest.mark.usefixtures("offline_machine")
@pytest.mark.parametrize("name", NAMES)
def test_an_example_ends_quietly_when_its_reader_has_gone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piped into a command that has seen enough, such as ``head -1``, it ends with 0 and without a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert run_as_script(name, monkeypatch) in (0, None)


@pytest.mark.parametrize("argument", ["-h", "--help"])
@pytest.mark.parametrize("name", [*WITHOUT_ARGUMENTS, "own_tests"])
def test_an_example_answers_help(
    name: str, argument: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked for help, it prints its docstring, which has its command, does nothing else, and ends with 0."""
    assert run_as_script(name, monkeypatch, argument) == 0
    printed = capsys.readouterr()
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    about = source.partition('"""')[2].partition('"""')[0].strip()
    assert f"examples/{name}.py" in about
    assert about in printed.out
    assert printed.out.strip().endswith((about, "show this help message and exit"))


@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_an_example_that_takes_no_argument_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An argument that would be ignored ends it with 2 and is named, before anything is done."""
    assert run_as_script(name, monkeypatch, "--verbose", "x") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith(f"{name}.py: error: unrecognized arguments: --verbose x\n")


def test_tests_that_are_run_without_pytest_say_how_to_run_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run by Python alone, the file of tests prints its docstring, and its code says that nothing was tested."""
    assert run_as_script("own_tests", monkeypatch) == 2
    assert "    pytest examples/own_tests.py\n" in capsys.readouterr().out


@pytest.mark.usefixtures("offline_machine")
def test_a_gate_that_can_never_be_met_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The example of hybrid search asks twice, and the log has its one warning once."""
    assert run_as_script("hybrid", monkeypatch) == 0
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "which min_score=0.35 can never meet" in warning


@pytest.mark.timeout(2 * SECONDS)
def test_a_process_of_its_own_prints_the_same(data_folder: Path) -> None:
    """What holds inside this process holds for the command that its docstring names, from any folder."""
    name = "migration"
    kept = {key: value for key, value in os.environ.items() if key not in SERVERS}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=data_folder,
        env={**kept, "PYTHONIOENCODING": "utf-8", "GROUNDED_DATA": str(data_folder)},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, expected(name)), done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_watched(path: Path) -> None:
    """It is read on one screen or two, and either its output is on file or the list above says why not."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    assert (path.stem in NAMES) != (path.stem in ELSEWHERE)


def test_the_list_of_exceptions_is_up_to_date() -> None:
    """Each example that is excused from an output of its own is there."""
    assert set(ELSEWHERE) <= {path.stem for path in EXAMPLES.glob("*.py")}
