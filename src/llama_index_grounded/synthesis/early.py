"""Whether the text of an answer class may be shown while it is written: only where nothing can change it any more.

A class of the user's own may redact the text, or refuse it, when the whole reply is read. It can do so in more ways
than anybody could list, so this looks for what is known to be harmless, and takes everything else for a change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args, get_origin

from llama_index_grounded.synthesis.answer import AnswerModel, Claim, ClaimedAnswer, GroundedAnswer, claim_class

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = ["keeps_the_text"]

_SAFE_CONFIG = (
    "alias_generator",
    "arbitrary_types_allowed",
    "extra",
    "frozen",
    "json_schema_extra",
    "populate_by_name",
    "protected_namespaces",
    "title",
    "use_attribute_docstrings",
    "validate_by_name",
)
"""Settings that leave every text as it is."""
_OF_EVERY_CLASS = {name for name in vars(Claim) if name.startswith("__")} | {"_abc_impl", "model_config", "__hash__"}
"""A frozen class is given a hash."""


def keeps_the_text(output_cls: type[AnswerModel]) -> bool:
    """Tell whether the answer is surely the text that the model writes.

    It is where a subclass has further fields without validators, and further methods: nothing of ours is overridden,
    no setting changes texts, and each field of ours is as it was, up to its description.
    """
    if not issubclass(output_cls, ClaimedAnswer):
        return _only_adds(output_cls, GroundedAnswer, GroundedAnswer.model_fields)
    claims, claim = output_cls.model_fields["claims"], claim_class(output_cls)
    return (
        claim is not None
        and (get_origin(claims.annotation), get_args(claims.annotation)) == (list, (claim,))
        and _form("claims", claims) == _form("claims", ClaimedAnswer.model_fields["claims"])
        and _only_adds(output_cls, ClaimedAnswer, AnswerModel.model_fields)
        and _only_adds(claim, Claim, Claim.model_fields)
    )


def _only_adds(cls: type[BaseModel], base: type[BaseModel], names: Iterable[str]) -> bool:
    """Tell whether a class leaves what it has of its base, and fields of these names, as they are."""
    fields, ours = cls.model_fields, base.model_fields
    own = [field for name, field in fields.items() if name not in ours]
    return (
        not any(name in ours or hasattr(base, name) for name in _defined(cls, base))
        and _validators(cls) == _validators(base)
        # A validator or a default of any field may be told of the fields before it, and write into them.
        and not any(hasattr(each, "func") for field in own for each in field.metadata)
        and not any(field.default_factory_takes_validated_data for field in own)
        and _settings(cls) == _settings(base)
        and all(fields[name].annotation == ours[name].annotation for name in names)
        and all(_form(name, fields[name]) == _form(name, ours[name]) for name in names)
    )


def _defined(cls: type[BaseModel], base: type[BaseModel]) -> set[str]:
    """Return the names that a class, or another of its bases, defines beside ours."""
    return {name for each in cls.__mro__ if each not in base.__mro__ for name in vars(each)} - _OF_EVERY_CLASS


def _validators(cls: type[BaseModel]) -> list[set[str]]:
    found = cls.__pydantic_decorators__
    kinds = (found.field_validators, found.model_validators, found.validators, found.root_validators)
    return [set(each) for each in kinds]


def _settings(cls: type[BaseModel]) -> dict[str, object]:
    return {name: value for name, value in cls.model_config.items() if name not in _SAFE_CONFIG}


def _form(name: str, field: FieldInfo) -> tuple[object, ...]:
    """Return what decides about the value of a field besides its type; an alias may be its own name."""
    return field.metadata, field.is_required(), field.validation_alias or name, field.discriminator
