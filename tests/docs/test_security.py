"""SECURITY.md promises nothing without a test."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = re.findall(r"^\| (?!promise|who|-)(.+) \|$", PAGE.split("## What is promised")[1], re.MULTILINE)


def test_every_promise_names_a_test() -> None:
    """Each row of the tables of promises ends in at least one."""
    rows = [row for row in ROWS if not row.startswith("---")]
    assert len(rows) > 20
    assert all("`tests/" in row.split(" | ")[-1] for row in rows)


@pytest.mark.parametrize("path, name", sorted(set(TESTS)))
def test_the_tests_exist(path: str, name: str) -> None:
    """What is named is a test function of that file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_the_pages_exist() -> None:
    """Pages of the documentation that are named are there."""
    assert all((ROOT / page).is_file() for page in re.findall(r"`(docs/[\w/-]+\.md)`", PAGE))
