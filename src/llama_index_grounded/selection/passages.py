"""Join chunks that overlap or touch in their document into one contiguous passage, so that nothing is read twice.

Place: after the gate and any reranker, before everything that shortens texts. A budget that has no room for a passage
takes it apart again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, ClassVar, NamedTuple, get_args

from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from pydantic import Field

from llama_index_grounded.evidence import (
    STAMP,
    FieldName,
    Stamp,
    field,
    field_for_llm,
    identity,
    included_text,
    keys_of,
    mark_of,
    stamp_of,
    with_stamp,
)
from llama_index_grounded.metadata import known
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Evidence, Passage, rank_of, slot_of
from llama_index_grounded.selection.relations import neighbour_ids, source_node
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.selection.stretches import Joined, Stretch, groups, join

__all__ = ["Origin", "PassageMerger", "origin_of"]


class Origin(NamedTuple):
    """The chunk that a character came from."""

    node_id: str
    chunk_id: str


def origin_of(node: BaseNode, offset: int) -> Origin | None:
    """Tell which chunk a character of a node's included text came from; the best-ranked one, if several hold it.

    Where a later stage has cut the text, lines are looked up in the passage, so of equal lines the first one counts.

    Args:
        node: As it comes from a stage; nodes of a response carry no stamp and are their own origin.
        offset: Character in the node's text, from 0.

    Returns:
        None for a character that stands between two chunks, or that is not in the passage.

    Raises:
        IndexError: If the text has no such character.
    """
    text = included_text(node)
    if not 0 <= offset < len(text):
        msg = f"the text has {len(text)} characters, none at {offset}"
        raise IndexError(msg)
    mark = stamp_of(node)
    if mark is None or "spans" not in mark:
        return Origin(node.node_id, identity(node).chunk_id)
    place = _place_before(text, mark["original"], offset) if "original" in mark else offset
    if place is None:
        return None
    return next((Origin(*who) for start, end, *who in mark["spans"] if start <= place < end), None)


def _place_before(text: str, original: str, offset: int) -> int | None:
    """Find the character of a text that whole lines were taken out of in the text before that."""
    at = begin = 0
    for line in text.splitlines(keepends=True):
        found = original.find(line, at)
        if begin + len(line) > offset:
            return None if found < 0 else found + offset - begin
        at = at if found < 0 else found + len(line)
        begin += len(line)
    return None


class PassageMerger(Stage):
    """Join chunks of one document that overlap or touch into one passage, in source order.

    Chunks are joined only where it is safe to say that they are one text: same document, revision and version, same
    source and same title, section, heading, page, url and date; character ranges that fit their texts; the same
    characters wherever they overlap. A chunk that names its neighbours (LlamaIndex's parsers do) is joined to these
    only. Where chunks disagree, all of them stay as they are, and so do shortened, blank, image and index nodes.

    The passage has the node id, chunk id and rank of its best-ranked chunk, the best known score, and the metadata on
    which all its chunks agree: a guard behind it finds no field that holds for a part only. Its embedding is unknown.
    `origin_of` tells which chunk a character came from. The other chunks are reported as dropped, reason ``merged``,
    with the passage's node id as twin, and the passage as kept, reason ``merged``, with its characters as value.

    Args:
        max_gap: Characters that may lie between two chunks. Nobody has them here, so ``…`` on a line of its own stands
            in their place, also where a splitter has only left out white space.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = make_nodes(["Returns take ", "take five days."], metadata={"document_id": "returns"})
        >>> for scored, start in zip(nodes, (0, 8)):
        ...     scored.node.start_char_idx, scored.node.end_char_idx = start, start + len(scored.text)
        >>> [scored.text for scored in PassageMerger().postprocess_nodes(nodes)]
        ['Returns take five days.']
    """

    kind: ClassVar[Kind] = "rewrite"
    packs: ClassVar[bool] = True

    max_gap: Annotated[int, Field(strict=True, ge=0)] = 0

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Join what belongs together; a passage stands where its best-ranked chunk stood."""
        frames: dict[Hashable, list[tuple[Stretch, NodeWithScore]]] = defaultdict(list)
        for scored in nodes:
            stretch = _stretch(scored.node)
            if stretch is not None:
                frames[_frame(scored.node)].append((stretch, scored))
        now = {slot_of(scored): scored for scored in nodes}
        decisions: list[Decision] = []
        passages: list[Passage] = []
        for stretches, chunks in _joinable(frames.values(), self.max_gap):
            joined = join(stretches)
            if joined is None:
                continue
            whole = _whole(stretches, chunks, joined)
            parts = sorted(chunks, key=rank_of)
            passages.append(_passage(whole, parts, nodes.trail.passages))
            decisions.append(self.decision(whole, "kept", "merged", value=len(joined.text)))
            for part in parts[1:]:
                twin = whole.node.node_id
                size = len(included_text(part.node))
                decisions.append(self.decision(part, "dropped", "merged", value=size, twin=twin))
                del now[slot_of(part)]
            now[slot_of(whole)] = whole
        return Outcome(list(now.values()), decisions, passages=passages)


def _joinable(
    frames: Iterable[Sequence[tuple[Stretch, NodeWithScore]]], max_gap: int
) -> Iterator[tuple[list[Stretch], list[NodeWithScore]]]:
    for frame in frames:
        for group in groups([stretch for stretch, _ in frame], max_gap):
            if len(group) > 1:
                yield [frame[at][0] for at in group], [frame[at][1] for at in group]


def _stretch(node: BaseNode) -> Stretch | None:
    """Read a node's place in its document; None where it has none, or none that fits its text."""
    if not isinstance(node, TextNode) or isinstance(node, (ImageNode, IndexNode)):
        return None
    mark = stamp_of(node)
    start, end, text = node.start_char_idx, node.end_char_idx, included_text(node)
    if not (isinstance(start, int) and isinstance(end, int)) or start < 0 or end - start != len(text):
        return None
    if not text or text.isspace():
        return None
    # A passage is not joined once more: what else belonged to it was there the first time.
    if mark is not None and ("original" in mark or "spans" in mark):
        return None
    previous, following = neighbour_ids(node)
    return Stretch(
        start=start,
        end=end,
        text=text,
        node_id=node.node_id,
        previous=previous,
        following=following,
    )


def _frame(node: BaseNode) -> Hashable:
    """Return what chunks must share: positions count from one source, and a citation shows one section and page."""
    shown = tuple((field(node, name), field_for_llm(node, name)) for name in get_args(FieldName))
    return identity(node)[:3], source_node(node), shown


def _whole(stretches: Sequence[Stretch], chunks: Sequence[NodeWithScore], joined: Joined) -> NodeWithScore:
    """Make the passage from a copy of its best-ranked chunk."""
    ranked = sorted(zip(chunks, stretches, joined.starts, strict=True), key=lambda item: rank_of(item[0]))
    best = ranked[0][0]
    farthest, last = max(zip(stretches, chunks, strict=True), key=lambda item: item[0].end)
    update: dict[str, Any] = {
        "metadata": _agreed([chunk.node for chunk, *_ in ranked]),
        "relationships": _between(best.node, chunks[0].node, last.node),
        "start_char_idx": stretches[0].start,
        "end_char_idx": farthest.end,
        "embedding": None,
    }
    for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
        update[name] = list(dict.fromkeys(chain.from_iterable(getattr(chunk.node, name) for chunk, *_ in ranked)))
    node = best.node.model_copy(update=update)
    node.set_content(joined.text)
    mark: Stamp = mark_of(best)
    spans = [(start, start + len(stretch.text), *_names(chunk.node)) for chunk, stretch, start in ranked]
    score = _best_score([chunk.score for chunk, *_ in ranked])
    return with_stamp(best.model_copy(update={"node": node, "score": score}), {**mark, "spans": tuple(spans)})


def _names(node: BaseNode) -> tuple[str, str]:
    return node.node_id, identity(node).chunk_id


def _best_score(scores: Sequence[float | None]) -> float | None:
    return max((score for score in scores if known(score) is not None), default=scores[0])  # type: ignore[type-var]


def _agreed(nodes: Sequence[BaseNode]) -> dict[str, Any]:
    """Return the best chunk's metadata without what another chunk does not say; what identifies it stays."""
    best, *others = nodes
    keys = keys_of(best)
    own = {STAMP, keys.document_id, keys.chunk_id, keys.revision, keys.version}
    return {
        name: value
        for name, value in best.metadata.items()
        if name in own or all(name in node.metadata and _same(value, node.metadata[name]) for node in others)
    }


def _same(one: object, two: object) -> bool:
    try:
        return one is two or (type(one) is type(two) and bool(one == two))
    except Exception:  # noqa: BLE001 - arrays and the like can not be compared: nobody knows that they are the same
        return False


def _between(best: BaseNode, first: BaseNode, last: BaseNode) -> dict[NodeRelationship, Any]:
    """Return the best chunk's relationships; the passage's neighbours are those of its ends."""
    ends = {NodeRelationship.PREVIOUS: first, NodeRelationship.NEXT: last}
    found = {name: node.relationships[name] for name, node in ends.items() if name in node.relationships}
    return {**{name: other for name, other in best.relationships.items() if name not in ends}, **found}


def _passage(whole: NodeWithScore, parts: Sequence[NodeWithScore], before: Mapping[int, Passage]) -> Passage:
    chunks = [before[slot_of(part)].chunks if slot_of(part) in before else (part,) for part in parts]
    return Passage(
        slot=slot_of(whole),
        text=included_text(whole.node),
        score=whole.score,
        fields=frozenset(whole.node.metadata),
        parts=tuple(parts),
        chunks=tuple(chain(*chunks)),
    )
