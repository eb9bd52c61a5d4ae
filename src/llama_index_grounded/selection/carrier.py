"""The list that carries what has happened to the nodes of a query from one stage to the next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import DEFAULT_KEYS, STAMP, MetadataKeys, mark_of, with_stamp
from llama_index_grounded.schema import Usage
from llama_index_grounded.selection.remover import is_remover

if TYPE_CHECKING:
    from llama_index_grounded.rendering import Renderer
    from llama_index_grounded.schema import Decision
    from llama_index_grounded.selection.stage import Outcome, Stage

__all__ = [
    "Embedded",
    "Evidence",
    "Finding",
    "Notes",
    "Passage",
    "Place",
    "Removal",
    "Trail",
    "places",
    "rank_of",
    "slot_of",
]


def slot_of(scored: NodeWithScore) -> int:
    """Return the number of a stamped node within its run; it never changes."""
    slot: int = scored.node.metadata[STAMP]["slot"]
    return slot


def rank_of(scored: NodeWithScore) -> int:
    """Return the place of a stamped node in the order of the retriever or the last reranker, from 0."""
    rank: int = scored.node.metadata[STAMP]["rank"]
    return rank


@dataclass(frozen=True, slots=True)
class Removal:
    """What a remover took away from a node, or the whole node, in favour of a better-ranked one."""

    before: NodeWithScore
    """The node as it came to the remover."""
    text: str | None
    """The text that the remover left of it; None where it dropped the node."""
    twins: tuple[str, ...]
    """Ids of the nodes that keep what was taken away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What several chunks were joined into, so that a budget can take them apart again."""

    slot: int
    """Of the passage and of its best chunk."""
    text: str
    """As it was joined."""
    score: float | None
    fields: frozenset[str]
    """Names of the metadata fields that the passage was given."""
    parts: tuple[NodeWithScore, ...]
    """The chunks, best first. Only the best one once somebody has judged the passage without the others."""
    chunks: tuple[NodeWithScore, ...]
    """Every chunk in the text, also of passages in it; a guard asks about each."""

    def sealed(self) -> Passage:
        """Forget the chunks that were not seen as nodes of their own."""
        return replace(self, parts=self.parts[:1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Two nodes that disagree about something."""

    slots: tuple[int, int]
    detail: str
    confirmed: bool
    """False: only a cheap filter says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What stages that ask a model leave beside the nodes."""

    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, more: Notes) -> Notes:
        """Put the notes of two stages together; one unknown count makes the sum unknown."""
        return Notes(
            findings=(*self.findings, *more.findings),
            warnings=(*self.warnings, *more.warnings),
            calls=self.calls + more.calls,
            usage=self.usage + more.usage,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embedded:
    """What one embedding model has said in a query."""

    model: Any
    texts: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    questions: Mapping[tuple[str, ...], Sequence[float]] = field(default_factory=dict[tuple[str, ...], Sequence[float]])

    @property
    def length(self) -> int:
        """Length of the model's vectors; 0 while it has made none."""
        return next((len(vector) for made in (self.texts, self.questions) for vector in made.values()), 0)


class Place(NamedTuple):
    """One node that a stage handed out."""

    slot: int
    node_id: str
    document_id: str


def places(nodes: Iterable[NodeWithScore]) -> tuple[Place, ...]:
    """Note which nodes are handed out."""
    return tuple(map(place_of, nodes))


def place_of(scored: NodeWithScore) -> Place:
    """Note one node that is handed out."""
    mark = mark_of(scored)
    return Place(mark["slot"], scored.node.node_id, mark["identity"][0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What has happened to the nodes of one query so far."""

    run: int
    keys: MetadataKeys = DEFAULT_KEYS
    slots: int = 0
    """Number of nodes that were ever stamped in this run."""
    handed: tuple[Place, ...] = ()
    """The nodes that came in or that the last stage handed out, in that order."""
    stages: tuple[Stage, ...] = ()
    decisions: tuple[Decision, ...] = ()
    removals: tuple[Removal, ...] = ()
    passages: Mapping[int, Passage] = field(default_factory=dict[int, Passage])
    """What was joined, by slot."""
    seen: Mapping[int, NodeWithScore] = field(default_factory=dict[int, NodeWithScore])
    """What the removers let stay, by slot: copies of our own, that nobody can change in place."""
    sizes: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """Token counts of rendered blocks, so that no block is encoded twice in a query."""
    top_score: float | None = None
    """The best signal that a gate has seen."""
    notes: Notes = field(default_factory=Notes)
    renderer: Renderer | None = None
    """How the nodes will be shown, once a stage has counted them so."""
    prompt_limit: int | None = None
    """Most tokens that a budget lets the prompt take; None where none packs for a prompt."""
    guarded: int = 0
    """The nodes whose slot is below have come to a guard."""
    shown: int = 0
    """The nodes whose slot is below have come to another stage, whose decisions may name them."""
    unguarded: str = ""
    """The first stage, where there is one, to which nodes came that no guard had seen."""
    embedded: tuple[Embedded, ...] = ()
    """What embedding models have said, one record for each, so that no text is embedded twice in a query."""

    def sealed(self) -> Trail:
        """Forget whole nodes that a remover dropped or that were joined: somebody has judged the rest without them."""
        return replace(
            self,
            removals=tuple(removal for removal in self.removals if removal.text is not None),
            passages={slot: passage.sealed() for slot, passage in self.passages.items()},
        )

    def without(self, slots: Collection[int]) -> Iterable[Removal]:
        """Return what was removed, whole nodes aside that were turned away when they came back."""
        return (one for one in self.removals if one.text is not None or slot_of(one.before) not in slots)

    def knowing(self, embedded: Sequence[Embedded]) -> Trail:
        """Remember what embedding models have said so far."""
        if not embedded:
            return self
        asked = {id(one.model) for one in embedded}
        others = [one for one in self.embedded if id(one.model) not in asked]
        return replace(self, embedded=(*others, *embedded))

    def after(self, stage: Stage, outcome: Outcome, handed: tuple[Place, ...], decisions: Iterable[Decision]) -> Trail:
        """Go on with what a stage made of the nodes that this trail handed to it, and where each of them stands."""
        removes = bool(is_remover(stage))
        judges = stage.judges and not (removes or stage.packs or stage.kind == "reorder")
        trail = self.sealed() if judges else self
        removals = (*trail.without(outcome.turned_away), *outcome.removals)
        guarded, shown, unguarded = self._named_by(stage)
        return replace(
            trail.knowing(outcome.embedded),
            guarded=guarded,
            shown=shown,
            unguarded=unguarded,
            handed=handed,
            stages=(*trail.stages, stage),
            decisions=(*trail.decisions, *decisions),
            removals=removals,
            passages=trail.passages
            if not outcome.passages
            else {**trail.passages, **{passage.slot: passage for passage in outcome.passages}},
            seen=self._seen_after(outcome.nodes, removes=removes, packs=stage.packs) if removals else {},
            sizes={**trail.sizes, **outcome.sizes} if outcome.sizes else trail.sizes,
            top_score=trail.top_score if outcome.top_score is None else outcome.top_score,
            notes=trail.notes if outcome.notes is None else trail.notes + outcome.notes,
            renderer=trail.renderer if outcome.renderer is None else outcome.renderer,
            prompt_limit=trail.prompt_limit if outcome.prompt_limit is None else outcome.prompt_limit,
        )

    def _named_by(self, stage: Stage) -> tuple[int, int, str]:
        """Return ``guarded``, ``shown`` and ``unguarded`` after a stage."""
        if stage.guards:
            return self.slots, self.shown, self.unguarded
        return self.guarded, self.slots, self.unguarded or (stage.class_name() if self.slots > self.guarded else "")

    def _seen_after(self, nodes: Sequence[NodeWithScore], *, removes: bool, packs: bool) -> Mapping[int, NodeWithScore]:
        if not (removes or packs):
            return self.seen
        left = {slot_of(scored): scored for scored in nodes}
        never = {place.slot for place in self.handed} - left.keys()
        seen = {slot: scored for slot, scored in self.seen.items() if slot not in never}
        if removes:
            seen.update((slot, with_stamp(scored, mark_of(scored))) for slot, scored in left.items())
        return seen


class Evidence(list[NodeWithScore]):
    """A list of stamped nodes that knows its trail. To everybody else it is a plain list, and a copy is one."""

    def __init__(self, nodes: Iterable[NodeWithScore], trail: Trail) -> None:
        super().__init__(nodes)
        self.trail = trail
        self.came = tuple(super().__iter__())
        """The nodes as they are now; a stage may sort the list itself."""
        self._maker = active_span_id.get()
        self._readers: set[str | None] = set()

    def __iter__(self) -> Iterator[NodeWithScore]:
        """Iterate, and note who does."""
        self._readers.add(active_span_id.get())
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        """Return a part, and note to whom."""
        self._readers.add(active_span_id.get())
        return super().__getitem__(place)

    def __reduce__(self) -> tuple[type[list[NodeWithScore]], tuple[list[NodeWithScore]]]:
        """Copy and pickle as a plain list: the trail belongs to the query that is running."""
        return list, (self.plain(),)

    def plain(self) -> list[NodeWithScore]:
        """Copy the nodes into a plain list without counting as a reader."""
        return list(super().__iter__())

    def places_of(self, chosen: Iterable[NodeWithScore]) -> tuple[Place, ...]:
        """Note which nodes are handed on. Most are the very objects that came in, whose places are known.

        Raises:
            KeyError: If a node was never stamped.
        """
        chosen = self.plain() if chosen is self else chosen
        known = dict(zip(map(id, self.came), self.trail.handed, strict=True))
        return tuple([known.get(id(scored)) or place_of(scored) for scored in chosen])

    def read_by_others(self) -> bool:
        """Tell whether anybody has read the nodes but the stage that made this list and the one that runs now.

        A guard that found nothing wrong may return the very list that it was given; that it has read it is all that
        can be known of it. LlamaIndex names whoever runs in a span, and code outside of any span judges nothing.
        """
        return bool(self._readers - {self._maker, active_span_id.get(), None})
