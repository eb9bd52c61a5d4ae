"""The commands in the README are the ones that CI runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def shell_lines() -> list[str]:
    """Return the lines of the README's shell blocks."""
    return [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    """CI reads its quickstart and its test command from the README, so that neither can drift."""
    listed = subprocess.run(["bash", ".ci/run", "commands"], cwd=ROOT, check=True, capture_output=True, text=True)
    quickstart, tests = listed.stdout.splitlines()
    assert [quickstart, tests] == [line for line in shell_lines() if "uvw" in line][:2]
    assert re.search(r' examples/quickstart\.py "How many days do I have to return a book\?"$', quickstart)
    assert re.search(r" pytest -n auto$", tests)


def test_ci_restates_no_command_of_the_readme() -> None:
    """CI has no copy of its own of what the README says."""
    assert "pytest" not in CI
    assert "quickstart.py" not in CI


def test_the_full_form_of_a_measurement_stands_once_per_page() -> None:
    """Beside the figures stands what to type, as in CONTRIBUTING; elsewhere only the name of a script that is there."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    figures = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    full = "`sh uvw run --locked --all-extras python -m bench.selection`"
    assert [page.count(full) for page in (contributing, README, figures)] == [1, 1, 1]
    named = re.findall(r"python -m bench\.(\w+)", README + figures)
    assert named
    assert [name for name in named if not (ROOT / "bench" / f"{name}.py").is_file()] == []


def test_one_file_pins_uv() -> None:
    """The version of uv stands in uvw alone, and the commands use the lock file."""
    assert re.search(r"^version=\d+\.\d+\.\d+$", (ROOT / "uvw").read_text(encoding="utf-8"), re.MULTILINE)
    assert not re.search(r"uv==\d", README + CI)
    assert all("--locked" in line for line in shell_lines() if line.startswith("sh uvw run"))
