"""What a node's metadata says of it: under which names, and as which text."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["DEFAULT_KEYS", "DEFAULT_NAMES", "FieldName", "MetadataKeys", "described", "keys_named", "known", "scalar"]

FieldName = Literal["title", "section", "heading", "page", "url", "updated"]
"""The fields that describe a node, as opposed to those that identify it."""


class MetadataKeys(BaseModel):
    """Names of the metadata fields that say what a node is.

    Where a field is absent, what LlamaIndex's own readers and parsers write takes its place: the document id falls
    back to ``ref_doc_id`` and then to ``node_id``, the chunk id to ``node_id``, the title to ``file_name``, the
    section to ``header_path`` (unless it is the bare root ``/``), the page to ``page_label`` and the date to
    ``last_modified_date``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    document_id: str = Field(default="document_id", min_length=1)
    chunk_id: str = Field(default="chunk_id", min_length=1)
    revision: str = Field(default="revision", min_length=1)
    version: str = Field(default="chunking_version", min_length=1)
    section: str = Field(default="section", min_length=1)
    title: str = Field(default="title", min_length=1)
    heading: str = Field(default="heading", min_length=1)
    page: str = Field(default="page", min_length=1)
    url: str = Field(default="url", min_length=1)
    updated: str = Field(default="last_updated", min_length=1)


DEFAULT_KEYS = MetadataKeys()
DEFAULT_NAMES: Mapping[str, str] = DEFAULT_KEYS.model_dump()
_HEADER_PATH = "header_path"
_FALLBACK: dict[FieldName, str] = {
    "title": "file_name",
    "section": _HEADER_PATH,
    "page": "page_label",
    "updated": "last_modified_date",
}


@functools.lru_cache(maxsize=64)
def keys_named(names: tuple[str, ...]) -> MetadataKeys:
    """Return the names of the fields, given in the order of `MetadataKeys`."""
    return MetadataKeys(**dict(zip(MetadataKeys.model_fields, names, strict=True)))


def scalar(value: object) -> str | None:
    """Read one metadata value as text; None for blank, missing, nested and not-a-number values."""
    if value is None:
        return None
    text = value if type(value) is str else _as_text(value)
    return None if not text or text.isspace() else text


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, Enum):
        return scalar(value.value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, date):  # a datetime is a date too, and so is pandas' "not a time"
        text = value.isoformat()
        return None if text == "NaT" else text
    if isinstance(value, (Integral, UUID, PurePath)):
        return str(value)
    finite = value.is_finite() if isinstance(value, Decimal) else isinstance(value, Real) and math.isfinite(value)
    return str(value) if finite else None


def described(
    metadata: Mapping[str, Any], keys: Mapping[str, str], names: Iterable[FieldName], excluded: Collection[str] = ()
) -> dict[str, str]:
    """Return the descriptive fields that are there, by name, in the order of ``names``.

    Args:
        metadata: Of a node.
        keys: Names of the fields, as `MetadataKeys` has them.
        names: Which fields to look for.
        excluded: Metadata keys that are kept away: a field that stands in one of them counts as absent.
    """
    found: dict[str, str] = {}
    for name in names:
        source = keys[name]
        text = scalar(metadata.get(source))
        if text is None and name in _FALLBACK:
            source = _FALLBACK[name]
            text = scalar(metadata.get(source))
        if text is not None and source not in excluded and (source != _HEADER_PATH or text.strip("/")):
            found[name] = text
    return found


def known(score: Any) -> float | None:
    """Read a score as a float; None, not-a-number, infinite ones and those beyond the range of floats are unknown."""
    if score is None:
        return None
    try:
        value = float(score)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None
