"""A renderer as an option that can be written down and read again."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field, PlainSerializer, PlainValidator, SerializationInfo, TypeAdapter

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering.base import BlockRenderer
from llama_index_grounded.rendering.json_blocks import JsonRenderer
from llama_index_grounded.rendering.key_value import KeyValueRenderer
from llama_index_grounded.rendering.markdown import MarkdownRenderer
from llama_index_grounded.rendering.renderer import Renderer, as_renderer
from llama_index_grounded.rendering.table import TableRenderer
from llama_index_grounded.rendering.xml import XmlRenderer

__all__ = ["AnyRenderer"]

_OURS = (XmlRenderer, JsonRenderer, MarkdownRenderer, TableRenderer, KeyValueRenderer)
_Ours = Annotated[
    XmlRenderer | JsonRenderer | MarkdownRenderer | TableRenderer | KeyValueRenderer, Field(discriminator="kind")
]


@functools.cache
def _reader() -> TypeAdapter[Any]:
    return TypeAdapter(_Ours)


def _read(value: object) -> Renderer:
    """Take a renderer as it is, and read one of ours from a mapping; what was written before kinds existed is XML."""
    if isinstance(value, Mapping):
        written = cast("Mapping[str, object]", value)
        return cast("Renderer", _reader().validate_python({"kind": "xml", **written}))
    return as_renderer(value)


def _write(value: Renderer, info: SerializationInfo) -> dict[str, Any]:
    if type(value) in _OURS:
        return cast("BlockRenderer", value).model_dump(mode=info.mode)
    msg = f"a renderer of one's own can not be written to a dict or to JSON: {type(value).__name__}"
    raise ConfigurationError(msg)


AnyRenderer = Annotated[Renderer, PlainValidator(_read), PlainSerializer(_write)]
"""The type of a Pydantic field for a renderer: ours survive dict and JSON, a user's own is passed on as it is."""
