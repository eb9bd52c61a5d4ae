"""What a node is as evidence: its identity, its rank, its included and its original text.

The first stage that sees a node stamps it: a copy gets one namespaced metadata key, kept out of LLM and embedding text,
with the run, the rank (place in the incoming order) and the identity. Later stages and the renderer read the stamp, so
the names of the metadata fields are given once. The synthesizer strips the stamp before a response leaves. How metadata
is read without a stamp stands in `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from llama_index_grounded._copied import copied
from llama_index_grounded.metadata import (
    DEFAULT_KEYS,
    DEFAULT_NAMES,
    FieldName,
    MetadataKeys,
    described,
    keys_named,
    scalar,
)

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

__all__ = [
    "DEFAULT_KEYS",
    "STAMP",
    "FieldName",
    "Identity",
    "MetadataKeys",
    "Stamp",
    "copied",
    "field",
    "field_for_llm",
    "fields",
    "fields_for_llm",
    "identity",
    "identity_under",
    "included_text",
    "mark_of",
    "once",
    "stamp",
    "stamp_of",
    "strip",
    "with_stamp",
    "with_text",
]

STAMP = "llama_index_grounded"

_EXCLUDED = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")


class Identity(NamedTuple):
    """What makes a chunk itself. A chunk id alone is never assumed unique."""

    document_id: str
    revision: str | None
    version: str | None
    chunk_id: str


class _Place(TypedDict):
    run: int
    """Number of the pass through the stages."""
    slot: int
    """Number of the node within the run; it never changes."""
    rank: int
    """Place in the order in which a retriever or reranker handed the nodes over, from 0."""
    identity: tuple[str, str | None, str | None, str]


class Stamp(_Place, total=False):
    """What travels in node metadata between the stages. Never changed in place: a new mapping replaces it."""

    keys: dict[str, str]
    """The field names; absent where they are the defaults."""
    original: str
    """The text before the first stage shortened it; absent while nothing did."""
    also_in: tuple[str, ...]
    """Ids of documents whose near-duplicate was left out for this node."""
    scores: dict[str, float | None]
    """Scores that a `RecordScore` stage noted, by name."""
    spans: tuple[tuple[int, int, str, str], ...]
    """Of a passage: start, end, node id and chunk id of each chunk in its text, in rank order; they may overlap."""
    twins: Mapping[str, str]
    """Documents of the nodes that were left out for this one, by run and slot of those nodes."""
    vector: tuple[int, str]
    """The embedding of the text: a checksum of that text, and the numbers as Base64 of 32-bit floats."""


class _OurStamp(dict[str, Any]):
    """Tells a stamp from whatever a document's own metadata holds under the same key: JSON can not make one."""

    made: tuple[object, str, str] = None, "", ""
    """What `once` was asked last: function, text, answer. In one tuple, so that threads see all or none."""


def stamp_of(node: BaseNode) -> Stamp | None:
    """Return the stamp of a node, or None where no stage has seen it."""
    found: Any = node.metadata.get(STAMP)
    return found if type(found) is _OurStamp else None  # type: ignore[return-value]


def keys_of(node: BaseNode) -> MetadataKeys:
    """Return the field names that a node was stamped with."""
    found = stamp_of(node)
    names = found.get("keys") if found else None
    return keys_named(tuple(names.values())) if names else DEFAULT_KEYS


def identity_under(node: BaseNode, keys: MetadataKeys) -> Identity:
    """Work out the identity of a node from its metadata."""
    value, node_id = node.metadata.get, node.node_id
    return Identity(
        scalar(value(keys.document_id)) or node.ref_doc_id or node_id,
        scalar(value(keys.revision)),
        scalar(value(keys.version)),
        scalar(value(keys.chunk_id)) or node_id,
    )


def identity(node: BaseNode) -> Identity:
    """Return the stamped identity, or work it out under the default field names."""
    found = stamp_of(node)
    if not found:
        return identity_under(node, DEFAULT_KEYS)
    who = found["identity"]
    return who if isinstance(who, Identity) else Identity(*who)


def mark_of(scored: NodeWithScore) -> Stamp:
    """Return the stamp of a node that a stage has stamped.

    Raises:
        KeyError: If no stage has stamped the node.
    """
    mark: Stamp = scored.node.metadata[STAMP]
    return mark


def field(node: BaseNode, name: FieldName) -> str | None:
    """Return a descriptive field as text, or None where it is absent."""
    return fields(node, (name,)).get(name)


def fields(node: BaseNode, names: Iterable[FieldName]) -> dict[str, str]:
    """Return the descriptive fields that are there, by name."""
    metadata = node.metadata
    return described(metadata, _names_in(metadata), names)


def field_for_llm(node: BaseNode, name: FieldName) -> str | None:
    """Return a descriptive field, or None where the user keeps the metadata behind it away from the model."""
    return fields_for_llm(node, (name,)).get(name)


def fields_for_llm(node: BaseNode, names: Iterable[FieldName]) -> dict[str, str]:
    """Return the descriptive fields that are there and that the user does not keep away from the model, by name."""
    metadata = node.metadata
    return described(metadata, _names_in(metadata), names, node.excluded_llm_metadata_keys)


def _names_in(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the names of the metadata fields that a node was stamped with."""
    mark = metadata.get(STAMP)
    names: Mapping[str, str] = mark.get("keys", DEFAULT_NAMES) if type(mark) is _OurStamp else DEFAULT_NAMES
    return names


def included_text(node: BaseNode) -> str:
    """Return the text that the model will see: the node's own, without metadata."""
    if type(node) is TextNode:  # spares the way there, which is long for what every stage asks
        return node.text
    return node.get_content(metadata_mode=MetadataMode.NONE)


def once(node: BaseNode, make: Callable[[str], str]) -> str:
    """Return what a function makes of the included text; a stamped node remembers the last answer."""
    text, mark = included_text(node), stamp_of(node)
    if not isinstance(mark, _OurStamp):
        return make(text)
    asked, before, after = mark.made
    if before is not text or asked is not make:
        after = make(text)
        mark.made = make, text, after
    return after


def stamp(scored: NodeWithScore, keys: MetadataKeys, *, run: int, slot: int, rank: int) -> NodeWithScore:
    """Copy a node and stamp it; a node that was stamped before keeps its identity, original text and field names."""
    before = stamp_of(scored.node)
    if before:
        mark: Stamp = {**before, "run": run, "slot": slot, "rank": rank}
    else:
        mark = {"run": run, "slot": slot, "rank": rank, "identity": identity_under(scored.node, keys)}
        if keys is not DEFAULT_KEYS:
            mark["keys"] = keys.model_dump()
    copy = with_stamp(scored, mark)
    if copy.score is not None and type(copy.score) is not float:
        copy.score = _plain(copy.score)
    return copy


def _plain(score: Any) -> Any:
    """Make a float of a score: those of NumPy, which rerankers assign, can not be written as JSON."""
    try:
        return float(score)
    except (TypeError, ValueError, OverflowError):
        return score


def with_stamp(scored: NodeWithScore, mark: Stamp) -> NodeWithScore:
    """Copy a node with another stamp, the key excluded from LLM and embedding text."""
    node = scored.node
    llm, embed = node.excluded_llm_metadata_keys, node.excluded_embed_metadata_keys
    update: dict[str, Any] = {
        "metadata": {**node.metadata, STAMP: _OurStamp(mark)},
        "excluded_llm_metadata_keys": llm if STAMP in llm else [*llm, STAMP],
        "excluded_embed_metadata_keys": embed if STAMP in embed else [*embed, STAMP],
    }
    return copied(scored, {"node": copied(node, update)})


def with_text(scored: NodeWithScore, text: str) -> NodeWithScore:
    """Copy a stamped node with another included text; the first original text stays reachable in the stamp."""
    mark: Stamp = mark_of(scored)
    if "original" not in mark:
        mark = {**mark, "original": included_text(scored.node)}
    copy = with_stamp(scored, mark)
    copy.node.set_content(text)
    return copy


def strip(scored: NodeWithScore) -> NodeWithScore:
    """Copy a node without the stamp; a node that has none is returned as it is."""
    node = scored.node
    if STAMP not in node.metadata:
        return scored
    update: dict[str, Any] = {"metadata": {k: v for k, v in node.metadata.items() if k != STAMP}}
    for name in _EXCLUDED:
        update[name] = [key for key in getattr(node, name) if key != STAMP]
    return scored.model_copy(update={"node": node.model_copy(update=update)})
