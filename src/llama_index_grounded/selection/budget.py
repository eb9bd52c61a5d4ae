"""Pack what fits, best first, and never let a rejected node speak for another.

Place: after everything that removes repetitions, before the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, PrivateAttr, model_validator

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import included_text, mark_of, with_stamp
from llama_index_grounded.rendering import Renderer, XmlRenderer, clean
from llama_index_grounded.rendering.renderer import size_of
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.allowance import Allowance, PromptPlanner, safety_margin
from llama_index_grounded.selection.stage import Kind, Ledger, Outcome, Stage
from llama_index_grounded.selection.trail import Evidence, Removal
from llama_index_grounded.tokens import TokenCounter

__all__ = ["TokenBudget"]

Count = Annotated[int, Field(strict=True, ge=1)]
Reserve = Annotated[int, Field(strict=True, ge=0)]


class TokenBudget(Stage):
    """Admit nodes in rank order as long as they fit, counted as they will be rendered, tags and attributes included.

    A node that does not fit is skipped and a later one may fit. What is rejected counts as never seen: paragraphs and
    nodes that an earlier stage removed in its favour come back, in rank order, if they fit. Blank nodes are left out.

    Args:
        max_tokens: Most tokens that the rendered sources may take. Needed unless ``top_n`` or a synthesizer limits.
        top_n: Most nodes.
        counter: How to count; by default LlamaIndex's own tokenizer setting, else ``o200k_base``.
        renderer: How the nodes will be rendered; by default `XmlRenderer`.
        on_oversize: ``"skip"`` a node that does not fit, or ``"stop"`` at the first one.
        keys: Names of the identifying metadata fields.

    Raises:
        ValidationError: Without any limit, or for an impossible one (a ValueError).
        ConfigurationError: On use after the link to a synthesizer was lost, or without the query that it counts.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> budget = TokenBudget(max_tokens=40)
        >>> [node.text for node in budget.postprocess_nodes(make_nodes(["word " * 60, "short"]))]
        ['short']
    """

    kind: ClassVar[Kind] = "rewrite"

    max_tokens: Count | None = None
    top_n: Count | None = None
    counter: TokenCounter | None = None
    renderer: XmlRenderer | None = None
    on_oversize: Literal["skip", "stop"] = "skip"
    for_prompt: bool = False
    """True for a budget that `for_synthesizer` made."""
    context_window: Count | None = None
    safety_margin: Reserve | None = None
    history_tokens: Reserve = 0

    _link: _Link = PrivateAttr(default_factory=lambda: _Link(None))

    @model_validator(mode="after")
    def _needs_a_limit(self) -> TokenBudget:
        if self.max_tokens is None and self.top_n is None and not self.for_prompt:
            msg = "TokenBudget needs a limit: max_tokens, top_n, or TokenBudget.for_synthesizer(...)"
            raise ConfigurationError(msg)
        if not self.for_prompt and (self.context_window, self.safety_margin, self.history_tokens) != (None, None, 0):
            msg = "context_window, safety_margin and history_tokens belong to TokenBudget.for_synthesizer(...)"
            raise ConfigurationError(msg)
        return self

    @classmethod
    def for_synthesizer(
        cls,
        synthesizer: PromptPlanner,
        *,
        context_window: int | None = None,
        safety_margin: int | None = None,
        history_tokens: int = 0,
        top_n: int | None = None,
        **options: Any,
    ) -> TokenBudget:
        """Pack for one synthesizer: count its whole prompt and leave room for its answer.

        Renderer, counter and ``num_output`` are the synthesizer's.

        Args:
            synthesizer: Usually a `CitingSynthesizer`.
            context_window: The model's window in tokens; by default what the LLM says.
            safety_margin: Tokens kept free; by default the larger of 256 and 5 % of the window.
            history_tokens: Tokens that a chat history takes in the same prompt.
            top_n: Most nodes.
            options: Further options of `TokenBudget`.
        """
        budget = cls(
            for_prompt=True,
            context_window=context_window,
            safety_margin=safety_margin,
            history_tokens=history_tokens,
            top_n=top_n,
            **options,
        )
        budget._link = _Link(synthesizer)
        return budget

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Pack once; pack again with what was removed in favour of a rejected node, if there is such a thing."""
        if not nodes:
            return Outcome(nodes)
        packer = self._packer(nodes, query)
        full = next((room for room in packer.rooms if not room.fits(1)), None)
        if full is not None:
            needed = full.limit - full.left(0)
            refused = [
                self.decision(scored, "refused", "prompt_too_long", value=needed, limit=full.limit) for scored in nodes
            ]
            return Outcome([], refused, sizes=packer.sizes)
        ranked = sorted(nodes, key=_rank)
        pack = packer.pack(ranked, [])
        removals = nodes.trail.removals
        if pack.rejected and removals:
            candidates = _candidates(ranked, removals)
            pack = packer.pack(candidates, _ledgers(removals))
        return Outcome(_in_order(nodes, pack.admitted), self._report(nodes, pack), sizes=packer.sizes)

    def _packer(self, nodes: Evidence, query: QueryBundle | None) -> _Packer:
        sizes = dict(nodes.trail.sizes)
        rooms: list[Allowance] = []
        renderer, counter = self.renderer or XmlRenderer(), self.counter or TokenCounter.default()
        if self.for_prompt:
            planner = self._planner()
            renderer, counter = planner.renderer, planner.counter
            rooms.append(self._prompt_room(planner, query, sizes))
        if self.max_tokens is not None:
            rooms.append(Allowance(limit=self.max_tokens, frame=0, counter=counter))
        return _Packer(renderer, counter, rooms, self.top_n, self.on_oversize, sizes)

    def _planner(self) -> PromptPlanner:
        if self._link.planner is None:
            msg = "this TokenBudget has lost its synthesizer (by pickle or dict); make it anew with for_synthesizer"
            raise ConfigurationError(msg)
        return self._link.planner

    def _prompt_room(
        self, planner: PromptPlanner, query: QueryBundle | None, sizes: dict[tuple[str, str], int]
    ) -> Allowance:
        if query is None:
            msg = "TokenBudget.for_synthesizer counts the whole prompt, so it needs the query: pass query_bundle"
            raise ConfigurationError(msg)
        window = self.context_window or planner.context_window()
        reserve = safety_margin(window) if self.safety_margin is None else self.safety_margin
        return Allowance(
            limit=window - planner.num_output - reserve - self.history_tokens,
            frame=planner.frame_tokens(query.query_str, sizes),
            counter=planner.counter,
        )

    def _report(self, nodes: Evidence, pack: _Pack) -> list[Decision]:
        came = {mark_of(scored)["slot"]: scored for scored in nodes}
        decisions = [
            self.decision(scored, "dropped", reason, value=value, limit=limit)
            for scored, reason, value, limit in pack.rejected
            if mark_of(scored)["slot"] in came
        ]
        for scored in pack.admitted:
            before = came.get(mark_of(scored)["slot"])
            returned = len(included_text(scored.node)) - (len(included_text(before.node)) if before else 0)
            if before is None or returned > 0:
                decisions.append(self.decision(scored, "restored", "twin_rejected", value=returned))
        return decisions


class _Link:
    """Holds the synthesizer; a copy of the budget shares it, a pickle loses it."""

    def __init__(self, planner: PromptPlanner | None) -> None:
        self.planner = planner

    def __deepcopy__(self, memo: object) -> _Link:
        return self

    def __reduce__(self) -> tuple[type[_Link], tuple[None]]:
        return _Link, (None,)


@dataclass(slots=True)
class _Pack:
    admitted: list[NodeWithScore] = field(default_factory=list[NodeWithScore])
    rejected: list[tuple[NodeWithScore, str, float | None, float | None]] = field(
        default_factory=list[tuple[NodeWithScore, str, float | None, float | None]]
    )
    """Node, reason, its size in plain tokens, the tokens that were left."""


@dataclass(frozen=True, slots=True)
class _Packer:
    renderer: Renderer
    counter: TokenCounter
    rooms: Sequence[Allowance]
    top_n: int | None
    on_oversize: Literal["skip", "stop"]
    sizes: dict[tuple[str, str], int]

    def pack(self, candidates: Iterable[NodeWithScore], ledgers: Sequence[Ledger]) -> _Pack:
        """Admit what fits, in the order given; each candidate is first trimmed against what is admitted so far."""
        pack = _Pack()
        used, stopped = 0, False
        for candidate in candidates:
            scored = _trimmed(candidate, ledgers)
            if scored is None:
                pack.rejected.append((candidate, "duplicate", None, None))
                continue
            reason, size = ("over_budget", 0) if stopped else self._judge(scored, len(pack.admitted), used)
            if reason:
                left = min((room.left(used) for room in self.rooms), default=None)
                pack.rejected.append((candidate, reason, size or None, left if reason == "over_budget" else None))
                stopped = stopped or (self.on_oversize == "stop" and reason == "over_budget")
                continue
            used += size
            pack.admitted.append(scored)
            for ledger in ledgers:
                ledger.admit(scored)
        return pack

    def _judge(self, scored: NodeWithScore, place: int, used: int) -> tuple[str, int]:
        """Return the reason against a node, empty if there is none, and its size in plain tokens."""
        if not clean(included_text(scored.node)).strip():
            return "empty_text", 0
        if self.top_n is not None and place >= self.top_n:
            return "top_n", 0
        if not self.rooms:
            return "", 0
        size = size_of(scored, place, self.renderer, self.counter, self.sizes)
        return ("" if all(room.fits(used + size) for room in self.rooms) else "over_budget"), size


def _trimmed(candidate: NodeWithScore, ledgers: Sequence[Ledger]) -> NodeWithScore | None:
    scored: NodeWithScore | None = candidate
    for ledger in ledgers:
        if scored is None:
            return None
        scored = ledger.trim(scored)
    return scored


def _candidates(ranked: Sequence[NodeWithScore], removals: Sequence[Removal]) -> list[NodeWithScore]:
    """List the nodes as they were before anything was removed, in rank order.

    A node whose text somebody else has changed since is taken as it is. Nodes that were dropped as a whole are here
    only while no other stage has judged the rest without them (`Trail.sealed`).
    """
    firsts: dict[int, Removal] = {}
    lasts: dict[int, Removal] = {}
    for removal in removals:
        slot = mark_of(removal.before)["slot"]
        firsts.setdefault(slot, removal)
        lasts[slot] = removal
    candidates: list[NodeWithScore] = []
    for scored in ranked:
        slot = mark_of(scored)["slot"]
        after = lasts[slot].after if slot in lasts else None
        same = after is not None and included_text(after.node) == included_text(scored.node)
        candidates.append(_at_rank(firsts[slot].before, scored) if same else scored)
    present = {mark_of(scored)["slot"] for scored in ranked}
    gone = [firsts[slot].before for slot, last in lasts.items() if last.after is None and slot not in present]
    return sorted([*candidates, *gone], key=_rank)


def _at_rank(before: NodeWithScore, now: NodeWithScore) -> NodeWithScore:
    """Take the text from before and the rank and score of now: a reranker may have stood in between."""
    copy = with_stamp(before, {**mark_of(before), "rank": mark_of(now)["rank"]})
    return copy.model_copy(update={"score": now.score})


def _ledgers(removals: Sequence[Removal]) -> list[Ledger]:
    """Ask each remover once for an empty ledger, in the order in which they ran."""
    removers = {id(removal.remover): removal.remover for removal in removals}
    return [remover.ledger() for remover in removers.values()]


def _in_order(nodes: Evidence, admitted: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Keep the incoming order; nodes that came back take the place of their rank."""
    places = {mark_of(scored)["slot"]: place for place, scored in enumerate(nodes)}
    ranks = [mark_of(scored)["rank"] for scored in nodes]
    by_rank = ranks == sorted(ranks)
    if by_rank:
        return sorted(admitted, key=_rank)
    return sorted(admitted, key=lambda scored: places.get(mark_of(scored)["slot"], len(nodes)))


def _rank(scored: NodeWithScore) -> int:
    return mark_of(scored)["rank"]
