"""What the README and the docstrings show runs, and prints what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode

import llama_index_grounded
from llama_index_grounded.testing import ScriptedLLM

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(llama_index_grounded.__path__, "llama_index_grounded.")
)


def _examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    """Each example in a docstring prints what stands below it."""
    module = importlib.import_module(name)
    failed = [test.name for test in _examples(module) if doctest.DocTestRunner().run(test).failed]
    assert failed == []


def test_some_docstrings_have_examples() -> None:
    """The check above looks at something."""
    assert sum(len(_examples(importlib.import_module(name))) for name in MODULES) > 10


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The README's code runs as it stands, with an index and an LLM of one's own."""
    text = "Books can be returned within 21 days."
    index = VectorStoreIndex([TextNode(id_="n1", text=text)], embed_model=MockEmbedding(embed_dim=8))
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}])
    names: dict[str, Any] = {"index": index, "llm": llm}
    for block in re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE):
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own README
    printed = capsys.readouterr().out
    assert printed.startswith("21 days [S1].\n")
    assert "node_id='n1'" in printed
