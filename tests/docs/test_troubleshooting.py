"""The page on troubleshooting has every reason and every error, and quotes what the sources say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import llama_index_grounded
from llama_index_grounded import errors, testing
from llama_index_grounded.schema import RefusalReason
from llama_index_grounded.synthesis.prompts import REFUSAL_TEXTS
from tests.docs.pages import DOCS

PAGE = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
ERRORS = [*errors.__all__, *(name for name in testing.__all__ if name.endswith("Error"))]
ANY = "…"
_FEWEST_LETTERS = 10
"""A text of fewer letters than these, and the rest left open, would agree with anything."""


def _section(title: str) -> str:
    """Return what stands under a heading, up to the next one of any level."""
    parts = re.split(rf"^#+ {re.escape(title)}$", PAGE, flags=re.MULTILINE)
    assert len(parts) == 2, f"docs/troubleshooting.md needs one entry with the heading {title}"
    return re.split(r"^##+ ", parts[1], flags=re.MULTILINE)[0]


def _quoted() -> list[str]:
    """Return every message that the page quotes: the first cells of its tables of messages."""
    tables = re.findall(r"^\| it says (?:\|.*)?\n\|[-| ]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [re.sub(r"^\| `(.+?)` \|.*$", r"\1", row) for table in tables for row in table.splitlines()]


def _template(node: ast.expr) -> str:
    """Return the text that an expression makes, with what is filled in left open."""
    match node:
        case ast.Constant(value=str(text)):
            return re.sub(r"%[sd]", ANY, text)
        case ast.JoinedStr(values=parts):
            return "".join(_template(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
        case _:
            return ANY


def _trees() -> Iterator[ast.Module]:
    for path in sorted(Path(llama_index_grounded.__file__).parent.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def _names(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, template.split(ANY))), re.DOTALL)


def _firm(template: str) -> bool:
    return sum(map(str.isalpha, template)) >= _FEWEST_LETTERS


def _texts(tree: ast.Module) -> Iterator[str]:
    """Return what the texts of a module make, those aside that only describe it."""
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) and id(node) not in described:
            yield _template(node)


def _needed(trees: list[ast.Module]) -> Iterator[str]:
    """Return what the sources say of a part of another kind: the name and the kind stand where it is asked for."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _names(node) in ("need_part", "need_able"):
                yield f"{_template(node.args[0])} must be {_template(node.args[-1])}, not {ANY}"


TREES = list(_trees())
NEEDED = set(_needed(TREES))
TEMPLATES = {template for tree in TREES for template in _texts(tree)} - {ANY} | NEEDED
PATTERNS = [_pattern(template) for template in sorted(TEMPLATES) if ANY in template and _firm(template)]


def _raised(name: str) -> set[str]:
    """Return the messages with which the sources raise an error; a name stands for the text it was given last."""
    found: set[str] = set()
    for tree in TREES:
        for function in ast.walk(tree):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            texts: dict[str, str] = {}
            parts = sorted(
                (node for node in ast.walk(function) if isinstance(node, (ast.Assign, ast.Raise))),
                key=lambda node: node.lineno,
            )
            for part in parts:
                if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
                    texts[part.targets[0].id] = _template(part.value)
                elif isinstance(part, ast.Raise) and isinstance(part.exc, ast.Call) and _names(part.exc) == name:
                    first = part.exc.args[0]
                    found.add(texts[first.id] if isinstance(first, ast.Name) else _template(first))
    return found


def _warned() -> set[str]:
    """Return the messages of log records, of Python's warnings, and of warnings that a conversation notes."""
    calls = {"warning", "error", "warn"}
    found: set[str] = set()
    for tree in TREES:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _names(node) in calls and node.args:
                found.add(_template(node.args[0]))
            elif isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "_warnings":
                found.add(_template(node.slice))
    return found - {ANY}


@pytest.mark.parametrize("reason", list(RefusalReason))
def test_every_reason_has_an_entry(reason: RefusalReason) -> None:
    """It begins with the text that a reader sees, and says why and what to do."""
    entry = _section(reason.value)
    assert re.findall(r"^> (.+)$", entry, re.MULTILINE) == [REFUSAL_TEXTS["en"][reason]]
    assert "**Why.** " in entry
    assert "**Do.** " in entry


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_an_entry(name: str) -> None:
    """Each public class of errors has a heading of its own, and says something."""
    assert len(_section(name).split()) > 20


def test_the_lists_are_not_empty() -> None:
    """The searches below find what they look for."""
    assert len(ERRORS) == 6
    assert len(_raised("ConfigurationError")) > 60
    assert len(NEEDED) > 12
    assert len(_warned()) >= 8
    assert len(_quoted()) > 120


@pytest.mark.parametrize("quoted", sorted(set(_quoted())))
def test_a_quoted_message_stands_in_the_sources(quoted: str) -> None:
    """Each message of the page can be made by a text in the sources, word for word."""
    assert quoted in TEMPLATES or any(pattern.fullmatch(quoted) for pattern in PATTERNS)


@pytest.mark.parametrize("template", sorted(_raised("ConfigurationError") | NEEDED | _warned()))
def test_a_message_of_the_sources_stands_on_the_page(template: str) -> None:
    """Whoever searches the page for what an error or a warning says finds it, or the general form of it."""
    assert any(
        _pattern(template).fullmatch(quoted) or (_firm(quoted) and _pattern(quoted).fullmatch(template))
        for quoted in _quoted()
    ), "docs/troubleshooting.md does not quote this"


@pytest.mark.parametrize("invented", ["the model is tired", "ScoreGate: the moon is … of …", "… must be blue, not …"])
def test_an_invented_message_is_found_out(invented: str) -> None:
    """What the sources do not say agrees with none of their texts."""
    assert invented not in TEMPLATES
    assert not any(pattern.fullmatch(invented) for pattern in PATTERNS)
