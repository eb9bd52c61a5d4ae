"""A Pydantic model that an LLM fills in: the schema that it is given, and how its reply is read.

The rule for a reply, in one piece: what does not begin with an object (white space, a byte order mark or the line of a
code fence may stand before it) is reasoning up to the next ``</think>`` or ``</thinking>``, whether a tag opened it or
the chat template did, and is dropped, as often as that is so. The answer is the JSON object that begins at the first
``{`` of what is left; everything before it (prose, a code fence) and after it is ignored, unless another ``{`` follows,
since two objects are no answer. No key may stand twice, no field may be missing, unknown or empty by default, and an
object that breaks off is never completed.
"""

from __future__ import annotations

import functools
import json
import re
import string
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from llama_index_grounded.errors import ConfigurationError

__all__ = [
    "BEFORE_AN_OBJECT",
    "END_OF_THINKING",
    "InvalidReplyError",
    "asked_names",
    "bounded",
    "field_names",
    "loads",
    "read_reply",
    "schema_of",
]

Model = TypeVar("Model", bound=BaseModel)

_THINK = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
END_OF_THINKING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
BEFORE_AN_OBJECT = re.compile(r"[\ufeff\s]*(?:```[A-Za-z]{0,16}[ \t\r\n]*)?")
"""What may stand before an object that is no word."""
_BLANK = "\ufeff" + string.whitespace
_ENDS_IN_AN_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{0,4}\Z")
_CUT_WORD = re.compile(r"(?:tr?u?|fa?l?s?|nu?l?|-)\Z")
_LONGEST_ESCAPE = len("\\u0000")
_MOST_NAMED_FAULTS = 3


class InvalidReplyError(ValueError):
    """A reply that is no answer; the text says why, and holds nothing that the model wrote."""


def read_reply(text: str, output_cls: type[Model]) -> Model:
    """Read a whole reply by the rule above.

    Raises:
        InvalidReplyError: If the reply is no complete, valid object.
    """
    place = _past_reasoning(text)
    start = text.find("{", place)
    if _THINK.search(text, place, len(text) if start < 0 else start):
        raise InvalidReplyError("the reply broke off while the model was thinking")
    if start < 0:
        raise InvalidReplyError(
            "the reply holds no JSON object" if text[place:].strip(_BLANK) else "the reply is empty"
        )
    fields, end = _decode(text, start)
    if "{" in text[end:]:
        raise InvalidReplyError("the reply holds more than one JSON object")
    try:
        return output_cls.model_validate(fields)
    except ValidationError as error:
        raise InvalidReplyError(_faults(error, output_cls)) from None
    except Exception as error:  # a validator of the user's class met a value that it did not expect
        msg = f"a validator of {output_cls.__name__} failed ({type(error).__name__})"
        raise InvalidReplyError(msg) from error


def _past_reasoning(text: str) -> int:
    place = 0
    while not _begins_with_an_object(text, place) and (end := END_OF_THINKING.search(text, place)):
        place = end.end()
    return place


def _begins_with_an_object(text: str, place: int) -> bool:
    before = BEFORE_AN_OBJECT.match(text, place)
    return before is not None and text.startswith("{", before.end())


def field_names(output_cls: type[BaseModel]) -> frozenset[str] | None:
    """Return the names that an answer may have; None where a subclass allows any."""
    return _known_names(output_cls) if output_cls.model_config.get("extra") == "forbid" else None


def asked_names(output_cls: type[BaseModel]) -> dict[str, str]:
    """Return the name by which each field is asked for, which is that of the schema and may be an alias.

    Raises:
        ConfigurationError: If a field that must be filled in has none, such as one that is read from inside of another.
    """
    offered, found = schema_of(output_cls).get("properties", {}), dict[str, str]()
    for name, field in output_cls.model_fields.items():
        names = [str(way[0]) for way in _ways(output_cls, name) if len(way) == 1 and way[0] in offered]
        if names:
            found[name] = names[0]
        elif field.is_required():
            msg = f"the schema of {output_cls.__name__} has no name for its field {name}, so nobody could fill it in"
            raise ConfigurationError(msg)
    return found


def _known_names(output_cls: type[BaseModel]) -> frozenset[str]:
    return frozenset(str(way[0]) for name in output_cls.model_fields for way in _ways(output_cls, name))


def _ways(output_cls: type[BaseModel], name: str) -> list[Sequence[int | str]]:
    """Return the paths by which Pydantic finds a field in an object."""
    config, alias = output_cls.model_config, output_cls.model_fields[name].validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [] if alias is None else [alias]
    paths: list[Sequence[int | str]] = [
        choice.path if isinstance(choice, AliasPath) else [choice] for choice in choices
    ]
    if config.get("validate_by_alias") is False or not paths:
        return [[name]]
    return [*paths, [name]] if config.get("validate_by_name") or config.get("populate_by_name") else paths


def loads(text: str) -> Any:
    """Read one JSON value by the rule for a reply.

    Raises:
        ValueError: If it is none, or holds what the rule refuses.
    """
    return _DECODER.decode(text)


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise InvalidReplyError(
            "the JSON object breaks off" if _is_cut(text, error) else "the JSON object is malformed"
        ) from None
    except InvalidReplyError:
        raise
    except ValueError:  # Python reads no whole number of more than some thousand digits
        raise InvalidReplyError("the JSON object holds a number that is too long") from None
    except RecursionError:
        raise InvalidReplyError("the JSON object is nested too deeply") from None


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether nothing but an end is wrong with the text so far."""
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
        return True
    if error.msg.startswith("Invalid \\u"):
        half = _ENDS_IN_AN_ESCAPE.search(text, max(0, len(text) - _LONGEST_ESCAPE))
        return half is not None and error.pos >= half.start()
    return error.msg.startswith("Expecting value") and _CUT_WORD.match(text, error.pos) is not None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InvalidReplyError("a key stands twice in the JSON object")
    return fields


def _refuse_constant(_: str) -> None:
    raise InvalidReplyError("the JSON object holds a number that JSON does not know")


def _faults(error: ValidationError, output_cls: type[BaseModel]) -> str:
    """Name known fields and kinds of faults. Values and unknown names stay out: they are the model's words."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    places = [str(fault["loc"][0]) if fault["loc"] else "object" for fault in found]
    known = _known_names(output_cls)
    named = [
        f"{place if place in known else 'an unknown field'}: {fault['type']}"
        for place, fault in zip(places, found, strict=True)
    ]
    return "the JSON object does not fit: " + ", ".join(named[:_MOST_NAMED_FAULTS])


# Not strict: small models write line breaks into strings, and what they mean is plain.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, strict=False)


@functools.lru_cache(maxsize=64)
def schema_of(output_cls: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of an answer class with its definitions written out, as grammars of local servers want it.

    Titles and the class's own docstring are left out: they are for programmers.

    Raises:
        ConfigurationError: If the class holds itself.
    """
    schema = output_cls.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})
    written = cast("dict[str, Any]", _inline(schema, definitions, ()))
    written.pop("description", None)
    return written


def bounded(schema: Any, most: int) -> Any:
    """Allow no list of sources to be longer than there are sources; a small model can count up for ever."""
    if isinstance(schema, list):
        return [bounded(item, most) for item in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    parts = {name: bounded(part, most) for name, part in cast("dict[str, Any]", schema).items()}
    sources = parts.get("sources")
    if isinstance(sources, dict) and cast("dict[str, Any]", sources).get("type") == "array":
        parts["sources"] = {"maxItems": most, **cast("dict[str, Any]", sources)}
    return parts


def _inline(part: Any, definitions: dict[str, Any], above: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_inline(item, definitions, above) for item in part]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(part, dict):
        return part
    fields = cast("dict[str, Any]", part)
    name = str(fields.get("$ref", "")).removeprefix("#/$defs/")
    if name in above:
        msg = f"the answer class holds itself ({name}); a recursive schema can not be sent"
        raise ConfigurationError(msg)
    if name in definitions:
        rest = {key: value for key, value in fields.items() if key != "$ref"}
        return _inline({**definitions[name], **rest}, definitions, (*above, name))
    # A property may be called "title"; a title of a schema is a text.
    return {
        key: _inline(value, definitions, above)
        for key, value in fields.items()
        if not (key == "title" and isinstance(value, str))
    }
