"""What users import stays importable, and importing it costs little."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import llama_index_grounded

TOP = {
    "AccessGuard",
    "AttentionReorder",
    "Citation",
    "CitingSynthesizer",
    "GroundedAnswer",
    "GroundedQueryEngine",
    "GroundedResponse",
    "GroundedResult",
    "RefusalReason",
    "ScopedDedup",
    "ScoreGate",
    "SourceRef",
    "TokenBudget",
    "Verdict",
    "default_postprocessors",
}
"""A name that appears or disappears here is a change for users: it belongs in CHANGELOG.md."""

FOLDERS = ["checks", "rendering", "selection", "synthesis", "testing"]

EXTRAS = ["asyncpg", "matplotlib", "ollama", "psycopg2", "ray", "scipy", "wordllama"]

MODULES = [module.name for module in pkgutil.walk_packages(llama_index_grounded.__path__, "llama_index_grounded.")]


def test_the_names_that_a_newcomer_meets() -> None:
    """The top of the package exports exactly the documented names."""
    assert set(llama_index_grounded.__all__) == TOP
    assert len(llama_index_grounded.__all__) == len(TOP)


@pytest.mark.parametrize("name", sorted(TOP))
def test_each_name_comes_with_its_documentation(name: str) -> None:
    """Every exported name can be had and carries a docstring of its own."""
    assert inspect.getdoc(getattr(llama_index_grounded, name))
    assert name in dir(llama_index_grounded)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_lists_its_names(folder: str) -> None:
    """A folder's list of names holds each name once, and each can be imported from it."""
    module = importlib.import_module(f"llama_index_grounded.{folder}")
    names: list[str] = module.__all__
    assert len(set(names)) == len(names)
    for name in names:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("module", MODULES)
def test_each_module_says_what_it_is_for(module: str) -> None:
    """Every module imports alone and starts with a docstring."""
    assert importlib.import_module(module).__doc__


@pytest.mark.timeout(180)  # a new process on a busy machine
def test_the_import_needs_no_extra() -> None:
    """Importing all public names in a new process loads nothing that only an extra brings."""
    code = (
        "import sys, llama_index_grounded as top; [getattr(top, name) for name in top.__all__];"
        f"print(sorted(set({EXTRAS}) & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
