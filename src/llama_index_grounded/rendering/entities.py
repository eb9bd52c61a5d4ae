"""Entities and their attributes, read from the metadata of a node."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field, field_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import STAMP, included_text, keys_of
from llama_index_grounded.metadata import scalar
from llama_index_grounded.rendering.base import one_line
from llama_index_grounded.rendering.escaping import clean
from llama_index_grounded.rendering.markdown import FramedRenderer

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = ["LINE_END", "EntityRenderer", "Record", "records_of"]

LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
"""What ends a line to any reader."""

_NEVER = frozenset({STAMP, "document_id", "doc_id", "ref_doc_id", "node_id", "id_", "chunk_id", "_node_content", "url"})
# What readers and parsers of LlamaIndex say about a file; of an entity it says nothing.
_ABOUT_THE_FILE = frozenset(
    {
        *("file_name", "file_path", "file_type", "file_size", "page_label", "header_path", "_node_type"),
        *("creation_date", "last_modified_date", "last_accessed_date"),
    }
)
_NAMES = ("name", "entity")
_ADDRESS = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://|www\.|mailto:|data:[^\s,]*,)", re.IGNORECASE)

Name = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entity, not yet cleaned; a node itself is a record without a name."""

    entity: str | None
    attributes: tuple[tuple[str, str], ...]

    def texts(self) -> Iterator[str]:
        """Go through everything that will be shown."""
        yield self.entity or ""
        for name, value in self.attributes:
            yield name
            yield value


class EntityRenderer(FramedRenderer):
    """Base of the renderers that show metadata as evidence; a subclass writes the records down.

    Args:
        attributes: Which descriptive fields to show in the heading, in this order; absent ones are left out.
        fields: Which metadata fields, and which attributes of entities, to show, in this order; by default all that the
            user lets a model see, save what identifies the node or describes its file.
        entities: The metadata field that holds entities: a mapping from names to attributes, a list of mappings with a
            ``name``, or a list of names.
        show_text: Show the node's own text behind the records.
        show_relevance: Show the score, rounded to two decimals, as ``Relevance``.
    """

    fields: tuple[Name, ...] | None = None
    entities: Name = "entities"
    show_text: bool = True

    @field_validator("fields")
    @classmethod
    def _fields_once(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if names is not None and len(set(names)) < len(names):
            msg = f"fields must name each metadata field once, not {names}"
            raise ConfigurationError(msg)
        return names

    @abstractmethod
    def included(self, node: BaseNode) -> str:
        """Write the records of a node down, and its own text behind them."""

    def _records(self, node: BaseNode) -> list[Record]:
        return list(records_of(node, fields=self.fields, entities=self.entities, shown=self.attributes))

    def _own_text(self, node: BaseNode) -> str:
        text = clean(included_text(node)) if self.show_text else ""
        return text if text.strip() else ""

    def _removed(self, node: BaseNode) -> int:
        return sum(len(text) - len(clean(text)) for text in self._texts(node))

    def _texts(self, node: BaseNode) -> Iterable[str]:
        yield from (included_text(node),) if self.show_text else ()
        for record in self._records(node):
            yield from record.texts()


def records_of(
    node: BaseNode, *, fields: tuple[str, ...] | None, entities: str, shown: Iterable[str] = ()
) -> Iterator[Record]:
    """Read what the metadata of a node says about it and about the entities in it.

    Fields that the user excludes from LLM text, ids, addresses and the fields that are ``shown`` elsewhere stay out, as
    do nested values other than lists, which become one text with commas.
    """
    keys = keys_of(node)
    never = {*_NEVER, keys.document_id, keys.chunk_id, keys.revision, keys.version, keys.url}
    hidden = {*never, *node.excluded_llm_metadata_keys}
    elsewhere = {entities, *(getattr(keys, name) for name in shown), *(_ABOUT_THE_FILE if fields is None else ())}
    own = tuple(_attributes(node.metadata, fields, hidden | elsewhere))
    if own:
        yield Record(entity=None, attributes=own)
    if entities not in hidden:
        yield from _entities(node.metadata.get(entities), fields, hidden)


def _entities(found: object, fields: tuple[str, ...] | None, hidden: set[str]) -> Iterator[Record]:
    if isinstance(found, Mapping):
        named: Iterable[tuple[object, object]] = cast("Mapping[object, object]", found).items()
    elif isinstance(found, (list, tuple)):
        named = [_with_name(item, hidden) for item in cast("list[object]", found)]
    else:
        named = [(found, None)]
    for name, content in named:
        values = cast("Mapping[object, object]", content) if isinstance(content, Mapping) else {"value": content}
        attributes = tuple(_attributes(values, fields if isinstance(content, Mapping) else None, hidden))
        entity = _text(name)
        if entity or attributes:
            yield Record(entity=entity, attributes=attributes)


def _with_name(item: object, hidden: set[str]) -> tuple[object, object]:
    """Split an item of a list into the entity's name and its attributes."""
    if not isinstance(item, Mapping):
        return item, None
    values = cast("Mapping[Any, object]", item)
    key = next((name for name in _NAMES if name not in hidden and _text(values.get(name))), None)
    return values.get(key), {name: value for name, value in values.items() if name != key}


def _attributes(
    values: Mapping[Any, object], fields: tuple[str, ...] | None, hidden: set[str]
) -> Iterator[tuple[str, str]]:
    names = values if fields is None else [name for name in fields if name in values]
    for name in names:
        if str(name) not in hidden and (text := _text(values[name])) is not None:
            yield str(name), text


def _text(value: object) -> str | None:
    """Read a value as text; None for blank and nested ones, for what is not a number and for addresses."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        items = [_text(item) for item in cast("list[object]", value) if not isinstance(item, (list, tuple))]
        return ", ".join(item for item in items if item is not None) or None
    text = scalar(value)
    return text if text and one_line(text) and not _ADDRESS.match(clean(text)) else None
