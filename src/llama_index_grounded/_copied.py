"""Copies of Pydantic models, in half the time of Pydantic's own."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from pydantic import BaseModel

__all__ = ["copied"]

_Model = TypeVar("_Model", bound=BaseModel)
_new = object.__new__
# What an instance consists of; set by name, each would take as long as the copy of the fields.
_set_values, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def copied(model: _Model, update: dict[str, Any]) -> _Model:
    """Copy as ``model_copy`` does, in half the time where a model has nothing but its declared fields."""
    kind = type(model)
    if not _copies_plainly(kind):
        return model.model_copy(update=update)
    copy: _Model = _new(kind)
    _set_values(copy, {**model.__dict__, **update})
    _set_names(copy, model.__pydantic_fields_set__.union(update))
    _set_extra(copy, None)
    _set_private(copy, None)
    return copy


@functools.lru_cache(maxsize=256)
def _copies_plainly(kind: type[BaseModel]) -> bool:
    """Tell whether instances consist of their fields, and are copied as all models are."""
    more = kind.model_config.get("extra") == "allow" or kind.__private_attributes__
    return not more and kind.__copy__ is BaseModel.__copy__ and kind.model_copy is BaseModel.model_copy
