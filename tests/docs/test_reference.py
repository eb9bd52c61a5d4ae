"""The reference covers every public name."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

import llama_index_grounded
from tests.docs.pages import DOCS
from tests.test_public_api import FOLDERS
from tests.test_public_names import NAMES

MODULES = sorted({*FOLDERS, *NAMES})
INDEX = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
LINK = re.compile(r"^- \[`(\w+)`\]\[llama_index_grounded\.(\w+)\.(\w+)\]$", re.MULTILINE)
LINKS = LINK.findall(INDEX)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_a_page(module: str) -> None:
    """Each public module has a page that is made from its docstrings."""
    page = (DOCS / "reference" / f"{module}.md").read_text(encoding="utf-8")
    assert re.search(rf"^::: llama_index_grounded\.{module}$", page, re.MULTILINE)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_listed(module: str) -> None:
    """The list names what a module exports and no more; a link without a target fails the build of the site."""
    section = INDEX.split(f"## {module}\n")[1].split("\n## ")[0]
    listed = LINK.findall(section)
    exported: list[str] = importlib.import_module(f"llama_index_grounded.{module}").__all__
    assert [name for name, *_ in listed] == exported, (
        "docs/reference/index.md lists what a module exports, in its order"
    )
    assert {(module_, name) for _, module_, name in listed} == {(module, name) for name in exported}


def test_the_names_of_the_top_are_listed() -> None:
    """The first list has the names of the package's top in their order, linked to what they are."""
    top = LINK.findall(INDEX.split("\n## ")[0])
    assert [name for name, _, _ in top] == llama_index_grounded.__all__
    for name, module, target in top:
        found = importlib.import_module(f"llama_index_grounded.{module}")
        assert getattr(found, target) is getattr(llama_index_grounded, name)


@pytest.mark.parametrize("name, module, target", sorted(set(LINKS)))
def test_what_is_listed_is_described(name: str, module: str, target: str) -> None:
    """Every public class and function has a docstring, so that its entry says something."""
    found = getattr(importlib.import_module(f"llama_index_grounded.{module}"), target)
    assert name == target
    assert inspect.getdoc(found) if inspect.isclass(found) or inspect.isfunction(found) else True
