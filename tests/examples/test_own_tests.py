"""The tests that a user copies pass as they stand, and fail where what they guard is broken."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES

SOURCE = (EXAMPLES / "own_tests.py").read_text(encoding="utf-8")
SECONDS = 90
"""For a process of its own: importing LlamaIndex alone takes seconds, and far more on a busy machine."""
BREAKS = {
    "a stage that reports nothing": (
        '[self.decision(scored, "dropped", "not_approved") for scored in drafts]',
        "[]",
        {"test_our_stage_says_what_it_drops", "test_our_stage_keeps_the_laws"},
    ),
    "an engine without the stages": (
        "stages = [ScoreGate(min_score=min_score), Approved()]",
        "stages = []",
        {
            "test_an_answer_cites_the_node_that_was_shown",
            "test_an_unknown_id_is_no_citation",
            "test_below_the_threshold_no_model_is_asked",
        },
    ),
}
"""Faults that a user may bring in: what is replaced, by what, and the tests that have to find it."""


@pytest.mark.timeout(2 * SECONDS)
def test_the_command_in_the_docstring_passes() -> None:
    """Pytest finds each of the tests in the file, and all of them pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/own_tests.py"],
        cwd=EXAMPLES.parent,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert "    pytest examples/own_tests.py\n" in SOURCE
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SOURCE.count('def test_')} passed" in done.stdout


def failing(path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Import a copy, run its tests one by one, and name those that fail."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)  # pickle looks for the stage there
    spec.loader.exec_module(module)
    return {name for name, test in vars(module).items() if name.startswith("test_") and fails(test)}


def fails(test: Callable[[], None]) -> bool:
    """Run one test."""
    try:
        test()
    except AssertionError:
        return True
    return False


def test_a_copy_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder and under a name of its own, it needs nothing that stands beside it here."""
    copy = tmp_path / "copied_engine_tests.py"
    copy.write_text(SOURCE, encoding="utf-8")
    assert failing(copy, monkeypatch) == set()


@pytest.mark.parametrize("name", BREAKS)
def test_a_fault_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fault in it, exactly the tests that guard against it fail."""
    whole, broken, finders = BREAKS[name]
    assert SOURCE.count(whole) == 1
    copy = tmp_path / "broken_engine_tests.py"
    copy.write_text(SOURCE.replace(whole, broken), encoding="utf-8")
    assert failing(copy, monkeypatch) == finders
