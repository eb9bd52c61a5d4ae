"""The reasons that a stage can give for its decisions, read from its source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from llama_index_grounded.selection import Stage, packing

__all__ = ["reasons_of"]

_RECORDS = {"Judgement", "Rejection"}
"""Records that carry the reason of a decision to the place where it is made."""
_REASON = 2
"""Place of the reason among the arguments of `Stage.decision`."""


def reasons_of(stage: type[Stage]) -> set[str]:
    """Return every reason that the file of a stage hands to `Stage.decision`.

    A reason may be a text, one of two texts, an option of the stage (each value that it can have, or its default), a
    variable or parameter that gets one of these in the file, or the reason of a record that says why.
    """
    module = sys.modules[stage.__module__]
    tree = ast.parse(inspect.getsource(module))
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    if len({getattr(module, name).__name__ for name in names if _is_stage(getattr(module, name, None))}) > 1:
        tree = ast.parse(inspect.getsource(stage))
    return {reason for call in _calls(tree, "decision") for reason in _texts(call.args[_REASON], tree, stage)}


def _is_stage(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Stage)


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
            yield node


def _texts(value: ast.expr, tree: ast.AST, stage: type[Stage]) -> set[str]:
    match value:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=one, orelse=other):
            return _texts(one, tree, stage) | _texts(other, tree, stage)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _of_option(stage, name)
        case ast.Attribute(attr="reason"):
            return _of_records(tree) or _of_records(ast.parse(inspect.getsource(packing)))
        case ast.Name(id=name):
            return _of_variable(name, tree, stage)
        case _:
            msg = f"{stage.__name__}: no rule reads {ast.unparse(value)}"
            raise AssertionError(msg)


def _of_option(stage: type[Stage], name: str) -> set[str]:
    option = stage.model_fields[name]
    kind: Any = option.annotation
    return set(get_args(kind)) if get_origin(kind) is Literal else {option.default}


def _of_records(tree: ast.AST) -> set[str]:
    words = (word for name in [*_RECORDS, "replace"] for call in _calls(tree, name) for word in call.keywords)
    return {
        word.value.value
        for word in words
        if word.arg == "reason" and isinstance(word.value, ast.Constant) and isinstance(word.value.value, str)
    }


def _of_variable(name: str, tree: ast.AST, stage: type[Stage]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            found |= _texts(node.value, tree, stage)
        if isinstance(node, ast.FunctionDef) and name in (names := [one.arg for one in node.args.args]):
            # The first parameter is the object itself.
            place = names.index(name) - 1
            for call in _calls(tree, node.name):
                found |= _texts(call.args[place], tree, stage)
    return found
