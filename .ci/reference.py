"""What the reference needs beyond the text of the sources: constructors, and examples as code.

Pydantic makes the constructors of stages, renderers and records, so no source holds them. With them, a parameter that a
docstring names and its class does not have is a warning, and fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe
from pydantic import BaseModel

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
_SELF = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
_OF_LLAMAINDEX = {"callback_manager"}


class Reference(griffe.Extension):
    """Completes the package once all of its modules are read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Name the sections with examples as griffe knows them, and add what Pydantic makes."""
        for one in _objects(pkg):
            if one.docstring is not None:
                one.docstring.value = _EXAMPLE.sub("Examples:", one.docstring.value)
            if isinstance(one, griffe.Class):
                _add_constructor(one, pkg)
        for one in [found for found in _objects(pkg) if isinstance(found, griffe.Module)]:
            _show_exports(one)


def _objects(holder: griffe.Object) -> Iterator[griffe.Object]:
    yield holder
    for member in holder.members.values():
        if isinstance(member, griffe.Object):
            yield from _objects(member)


def _show_exports(module: griffe.Module) -> None:
    """Let a name that a folder exports stand for itself where one of its files has the same name."""
    for name in map(str, module.exports or ()):
        file = module.members.get(name)
        if isinstance(file, griffe.Module) and name in file.members:
            module.set_member(name, griffe.Alias(name, file[name], parent=module))


def _add_constructor(cls: griffe.Class, pkg: griffe.Module) -> None:
    model = getattr(importlib.import_module(cls.module.path), cls.name, None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return
    init = cls.members.get("__init__")
    own = list(init.parameters) if isinstance(init, griffe.Function) else []
    if own and own[-1].kind is not griffe.ParameterKind.var_keyword:
        return
    # A constructor of its own that takes further options takes the fields.
    listed = own[:-1] or [_SELF]
    names = {one.name for one in listed} | _OF_LLAMAINDEX
    fields = [_parameter(name, model, pkg) for name in model.model_fields if name not in names]
    # What LlamaIndex declares is described there.
    fields = [one for one in fields if one.annotation is not None]
    made = griffe.Function("__init__", lineno=cls.lineno, endlineno=cls.endlineno, parent=cls)
    made.parameters = griffe.Parameters(*listed, *fields)
    cls.set_member("__init__", made)


def _parameter(name: str, model: type[BaseModel], pkg: griffe.Module) -> griffe.Parameter:
    """Take annotation and default as they are written, in the class that declares the field."""
    declared = next((base for base in model.__mro__ if name in inspect.get_annotations(base)), None)
    written = None if declared is None else _attribute(pkg, declared, name)
    return griffe.Parameter(
        name,
        annotation=None if written is None else written.annotation,
        kind=griffe.ParameterKind.keyword_only,
        default=None if written is None else written.value,
    )


def _attribute(pkg: griffe.Module, declared: type, name: str) -> griffe.Attribute | None:
    top, _, path = declared.__module__.partition(".")
    if top != pkg.name:
        return None
    found = pkg[f"{path}.{declared.__name__}.{name}"]
    return found if isinstance(found, griffe.Attribute) else None
