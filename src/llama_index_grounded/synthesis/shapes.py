"""What the fields of ours must hold in an answer class of the user's own, which may give them other types."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.llm.structured import InvalidReplyError
from llama_index_grounded.schema import Verdict
from llama_index_grounded.synthesis.answer import AnswerModel, Claim, ClaimedAnswer, GroundedAnswer

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["check_answer", "check_answer_class", "check_claim"]

_ONE: dict[str, tuple[type, str]] = {
    "verdict": (Verdict, "a Verdict"),
    "answer": (str, "a text"),
    "quote": (str, "a text"),
    "text": (str, "a text"),
}
_MANY: dict[str, tuple[type, str]] = {
    "sources": (str, "a list of texts"),
    "claims": (Claim, "a list of claims"),
}
_LISTS = (list, tuple, Sequence)


def check_answer_class(output_cls: type[AnswerModel]) -> None:
    """Refuse a class with a field of ours that may hold what nobody could read. All but the verdict may be None.

    Raises:
        ConfigurationError: If it has one.
    """
    _check_fields(output_cls, _base(output_cls))
    if issubclass(output_cls, ClaimedAnswer):
        for part in _parts(output_cls.model_fields["claims"].annotation):
            for claim in _items(part):
                _check_fields(claim, Claim)


def check_answer(answer: AnswerModel) -> None:
    """Refuse an answer with a field that a validator of its class made something else of.

    Raises:
        InvalidReplyError: If it has one.
    """
    _check_values(answer, _base(type(answer)))
    if isinstance(answer, ClaimedAnswer):
        for claim in answer.claims or ():
            check_claim(claim)


def check_claim(claim: Claim) -> None:
    """Refuse one claim in the same way."""
    _check_values(claim, Claim)


def _base(output_cls: type[AnswerModel]) -> type[AnswerModel]:
    return ClaimedAnswer if issubclass(output_cls, ClaimedAnswer) else GroundedAnswer


def _check_fields(cls: type[BaseModel], base: type[BaseModel]) -> None:
    for name in base.model_fields:
        annotation = cls.model_fields[name].annotation
        kind, words = _ONE.get(name) or _MANY[name]
        parts = [part for part in _parts(annotation) if part is not NoneType or name == "verdict"]
        fit = [_is(part, kind) if name in _ONE else _is_list(part, kind) for part in parts]
        if not fit or not all(fit):
            msg = f"the field {name} of {cls.__name__} must be {words}, not {annotation}"
            raise ConfigurationError(msg)


def _parts(annotation: Any) -> list[Any]:
    """Return the members of a union; anything else is its own. What decorates or names a type is taken off."""
    for named in ("__value__", "__supertype__"):
        if hasattr(annotation, named):
            return _parts(getattr(annotation, named))
    if get_origin(annotation) is Annotated:
        return _parts(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [part for each in get_args(annotation) for part in _parts(each)]
    return [annotation]


def _items(annotation: Any) -> list[Any]:
    """Return the types of what a list holds."""
    return [part for item in get_args(annotation) if item is not ... for part in _parts(item)]


def _is(part: Any, kind: type) -> bool:
    if get_origin(part) is Literal:
        return all(isinstance(value, kind) for value in get_args(part))
    return get_origin(part) is None and isinstance(part, type) and issubclass(part, kind)


def _is_list(part: Any, kind: type) -> bool:
    items = _items(part)
    return get_origin(part) in _LISTS and bool(items) and all(_is(item, kind) for item in items)


def _check_values(model: BaseModel, base: type[BaseModel]) -> None:
    for name in base.model_fields:
        value = getattr(model, name)
        if name in _ONE:
            sound = isinstance(value, _ONE[name][0])
        else:
            kind, _ = _MANY[name]
            sound = isinstance(value, (list, tuple)) and all(isinstance(one, kind) for one in cast("Any", value))
        if not sound and (value is not None or name == "verdict"):
            msg = f"a validator of {type(model).__name__} made something else of {name}"
            raise InvalidReplyError(msg)
