"""The fingerprint of a configuration, which is the same in every process."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from inspect import getattr_static
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodDescriptorType, MethodType
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from pydantic import BaseModel

from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.llm.windows import is_ollama
from llama_index_grounded.synthesis.answer import AnswerModel

if TYPE_CHECKING:
    from llama_index_grounded.selection.stage import Stage
    from llama_index_grounded.synthesis.options import Options

__all__ = ["fingerprint", "written"]

_SECRETS = ("key", "token", "secret", "password", "credentials", "authorization")
_PLAIN = (bytes, date, time, timedelta, Decimal, UUID, PurePath)
"""Besides texts and numbers, what writes itself the same way everywhere."""
_SINGLE = (str, int, float, Enum, type(None), *_PLAIN)
_FEW, _DEEPEST_OBJECT = 32, 3
_MOST, _DEEPEST = 1 << 63, 50
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, MethodDescriptorType)
_SHOWN = (*_SINGLE, *_FUNCTIONS, type, LLM, BaseEmbedding, BasePromptTemplate)


def fingerprint(options: Options, stages: Iterable[Stage], *, template: Sequence[object], model: LLM | None) -> str:
    """Hash the configuration: two answers with one fingerprint were made under the same options.

    Functions count by module and qualified name alone: two lambdas of one function are the same to it, and so is a
    rule whose code was changed. A model that a stage or a check takes from ``Settings`` counts as that, not as itself.
    Of an object without declared fields, what its constructor was not given, or does not keep by name, does not count,
    and neither does what an index or a table that it was given holds; a count that it keeps under the name of an
    argument does.

    Args:
        options: The synthesizer's.
        stages: What the nodes went through.
        template: The texts of the user message.
        model: The LLM; None where ``Settings`` can give none.
    """
    text = json.dumps(written([options, list(stages), template, model]), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def written(value: object, above: tuple[int, ...] = ()) -> Any:
    """Write a value as JSON can hold it, without anything that differs from one process to the next.

    LLMs and embedding models, stages, renderers, dataclasses and everything else with declared fields is its class and
    its fields; an answer class is its name, its schema and its settings. An object without declared fields is its class
    and what its constructor was given, as far as it keeps that by name and it is a value, a few of them, a function, a
    model or another such object. Keys and passwords of models and of such objects are left out.

    Args:
        value: What to write.
        above: Ids of what holds the value; whatever holds itself, or lies fifty levels deep, is its class.

    Example:
        >>> from llama_index_grounded import ScoreGate
        >>> written(ScoreGate(min_score=0.5))["min_score"], written(len), written(object())
        (0.5, 'builtins.len', 'builtins.object')
    """
    value = value.value if isinstance(value, Enum) else value
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) < _MOST else hex(value)  # JSON takes no number of thousands of digits
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, _PLAIN):
        return [_name(type(value)), str(value)]
    if id(value) in above or len(above) >= _DEEPEST:
        return _name(type(value))
    return _of_parts(value, (*above, id(value)))


def _of_parts(value: object, above: tuple[int, ...]) -> Any:
    if isinstance(value, functools.partial):
        partial = cast("functools.partial[object]", value)
        value = (partial.func, partial.args, partial.keywords)
    if isinstance(value, (list, tuple)):
        return [written(item, above) for item in cast("Sequence[object]", value)]
    if isinstance(value, (type, *_FUNCTIONS)):
        return _function(value, above)
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return _object(value, above)
    if isinstance(value, (set, frozenset)):
        return _sorted([written(item, above) for item in cast("Iterable[object]", value)])
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return _sorted([[written(key, above), written(item, above)] for key, item in pairs])
    return _built(value, above)


def _built(value: object, above: tuple[int, ...], depth: int = 0) -> Any:
    """Write an object without declared fields: its class, and what its constructor was given and is still there.

    Whatever else it holds may be a count, a lock or a connection, which is no configuration.
    """
    given = _public({name: item for name, item in _given(value) if name != "callback_manager"})
    name = _name(type(value))
    return {"class": name, **{key: _setting(item, above, depth) for key, item in given.items()}} if given else name


def _setting(item: object, above: tuple[int, ...], depth: int) -> Any:
    """Write a single value, a few of them, a function, a model or a template, and another such object near the top.

    What an index, a store or a table holds is documents, grows while it is used, and takes as long to read as it is
    large: it is its class.
    """
    if isinstance(item, (list, tuple, set, frozenset, dict)):
        values = cast("Sequence[object]", [*item.items()] if isinstance(item, dict) else [*item])[: _FEW + 1]
        flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
        few = len(values) <= _FEW and all(isinstance(each, _SINGLE) for each in flat)
        return written(item, above) if few else _name(type(item))
    if isinstance(item, _SHOWN):
        return written(item, above)
    if isinstance(item, BaseModel) or dataclasses.is_dataclass(item) or id(item) in above or depth >= _DEEPEST_OBJECT:
        return _name(type(item))
    return _built(item, (*above, id(item)), depth + 1)


def _given(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of the constructor that an object keeps by their name, or that name with an underscore."""
    held = getattr(value, "__dict__", None)
    kept = cast("dict[str, Any]", held) if isinstance(held, dict) else dict[str, Any]()
    for cls in type(value).__mro__:
        made = vars(cls).get("__init__")
        for name in inspect.signature(made).parameters if isinstance(made, FunctionType) else ():
            for place in (name, f"_{name}"):
                if place in kept:
                    yield name, kept[place]
                elif isinstance(getattr_static(value, place, None), MemberDescriptorType) and hasattr(value, place):
                    yield name, getattr(value, place)


def _function(function: object, above: tuple[int, ...]) -> Any:
    name, owner = _name(function), getattr(function, "__self__", None)
    if isinstance(function, type) and issubclass(function, AnswerModel):
        metadata = {each: field.metadata for each, field in function.model_fields.items()}
        return [name, written([schema_of(function), function.model_config, metadata], above)]
    return name if owner is None or inspect.ismodule(owner) else [name, written(owner, above)]


def _object(value: object, above: tuple[int, ...]) -> Any:
    if isinstance(value, (LLM, BaseEmbedding)):
        fields = _public({name: item for name, item in _fields(value).items() if not _is_noted(value, name)})
    elif isinstance(value, BaseModel):
        fields = _fields(value)
    else:
        fields = {each.name: getattr(value, each.name, None) for each in dataclasses.fields(cast("Any", value))}
    return {"class": _name(type(value)), **{name: written(item, above) for name, item in fields.items()}}


def _fields(model: BaseModel) -> dict[str, Any]:
    """Return the declared fields, read past properties and warnings; LlamaIndex sets the callback manager itself."""
    return {name: model.__dict__.get(name) for name in type(model).model_fields if name != "callback_manager"}


def _is_noted(model: object, name: str) -> bool:
    """Tell a window that may be what the server said, and was unknown before the first call."""
    return name == "context_window" and is_ollama(model)


def _public(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what gives access, such as ``api_key``, also from options and headers: it shapes no answer."""
    return {
        name: _public(cast("dict[str, Any]", item)) if isinstance(item, dict) else item
        for name, item in fields.items()
        if not str(name).lower().endswith(_SECRETS)
    }


def _name(thing: object) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _sorted(items: list[Any]) -> list[Any]:
    return sorted(items, key=functools.partial(json.dumps, sort_keys=True))
