"""Pack what fits, best first, and never let a rejected node speak for another.

Place: after everything that removes repetitions, before the order.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field, PrivateAttr, model_validator

from llama_index_grounded._allowed import need_able
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import included_text
from llama_index_grounded.rendering import AnyRenderer, XmlRenderer
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.allowance import Allowance, PromptPlanner, safety_margin
from llama_index_grounded.selection.carrier import Evidence, Removal, rank_of, slot_of
from llama_index_grounded.selection.packing import OnOversize, Pack, Packer
from llama_index_grounded.selection.restore import Parts, fresh_ledgers, unreduced, worth_a_replay
from llama_index_grounded.selection.stage import Kind, Outcome, Stage
from llama_index_grounded.tokens import TokenCounter

__all__ = ["TokenBudget"]

Count = Annotated[int, Field(strict=True, ge=1)]
Reserve = Annotated[int, Field(strict=True, ge=0)]


class TokenBudget(Stage):
    """Admit nodes in rank order as long as they fit, counted as they will be rendered, tags and attributes included.

    A node that does not fit is skipped and a later one may fit. What is rejected counts as never seen: paragraphs and
    nodes that an earlier stage removed in its favour come back, in rank order, if they fit. A passage that does not fit
    as a whole is taken apart, and its chunks are packed alone. Blank nodes are left out.

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
    packs: ClassVar[bool] = True

    max_tokens: Count | None = None
    top_n: Count | None = None
    counter: TokenCounter | None = None
    renderer: AnyRenderer | None = None
    on_oversize: OnOversize = "skip"
    for_prompt: bool = False
    """True for a budget that `for_synthesizer` made."""
    context_window: Count | None = None
    safety_margin: Reserve | None = None
    history_tokens: Reserve = 0
    note_tokens: Reserve = 0

    _link: _Link = PrivateAttr(default_factory=lambda: _Link(None))

    @model_validator(mode="after")
    def _check_combination(self) -> TokenBudget:
        if self.max_tokens is None and self.top_n is None and not self.for_prompt:
            msg = "TokenBudget needs a limit: max_tokens, top_n, or TokenBudget.for_synthesizer(...)"
            raise ConfigurationError(msg)
        if not self.for_prompt and self._of_a_prompt() != (None, None, 0, 0):
            msg = "context_window, safety_margin, history_tokens, note_tokens belong to TokenBudget.for_synthesizer"
            raise ConfigurationError(msg)
        if self.for_prompt and not (self.counter is None and self.renderer is None):
            raise ConfigurationError("TokenBudget.for_synthesizer takes the counter and renderer of its synthesizer")
        return self

    def _of_a_prompt(self) -> tuple[int | None, int | None, int, int]:
        return self.context_window, self.safety_margin, self.history_tokens, self.note_tokens

    @classmethod
    def for_synthesizer(
        cls,
        synthesizer: PromptPlanner,
        *,
        context_window: int | None = None,
        safety_margin: int | None = None,
        history_tokens: int = 0,
        note_tokens: int = 0,
        top_n: int | None = None,
        **options: Any,
    ) -> TokenBudget:
        """Pack for one synthesizer: count its whole prompt and leave room for its answer.

        Renderer, counter and ``num_output`` are the synthesizer's.

        Args:
            synthesizer: Usually a `CitingSynthesizer`.
            context_window: The model's window in tokens; by default what the LLM says.
            safety_margin: Tokens kept free; by default the larger of 256 and 5 % of the window.
            history_tokens: Tokens that something else takes in the same prompt; a `ChatQuery` counts its own history.
            note_tokens: Tokens kept free for what later stages add, such as `ConflictFlagger.note_tokens`.
            top_n: Most nodes.
            options: Further options of `TokenBudget`: ``max_tokens``, ``on_oversize``, ``keys``.

        Raises:
            ConfigurationError: For what is no such synthesizer (a ValueError).
        """
        need_able("synthesizer", synthesizer, "frame_tokens", "a CitingSynthesizer")
        budget = cls(
            for_prompt=True,
            context_window=context_window,
            safety_margin=safety_margin,
            history_tokens=history_tokens,
            note_tokens=note_tokens,
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
        prompt_limit = packer.rooms[0].limit if self.for_prompt else None
        full = packer.full_room()
        if full is not None:
            return Outcome([], self._refused(nodes, full), sizes=packer.sizes, prompt_limit=prompt_limit)
        parts = Parts(nodes)
        pack = packer.pack(nodes, parts_of=parts.of)
        if worth_a_replay(nodes.trail, pack):
            pack = packer.pack(unreduced(nodes), fresh_ledgers(nodes.trail), parts.of)
        removals = [
            Removal(admission.came, included_text(admission.scored.node), admission.twins)
            for admission in pack.admitted
            if admission.scored is not admission.came
        ]
        return Outcome(
            _in_order(nodes, pack),
            self._report(nodes, pack),
            removals,
            packer.sizes,
            renderer=packer.renderer,
            prompt_limit=prompt_limit,
            turned_away={slot_of(gone.scored) for gone in pack.rejected if gone.reason != "duplicate"},
        )

    def _refused(self, nodes: Evidence, full: Allowance) -> list[Decision]:
        needed = full.limit - full.left(1)
        return [self.decision(scored, "refused", "prompt_too_long", value=needed, limit=full.limit) for scored in nodes]

    def _packer(self, nodes: Evidence, query: QueryBundle | None) -> Packer:
        sizes = dict(nodes.trail.sizes)
        rooms: list[Allowance] = []
        if self.for_prompt:
            planner = self._planner()
            renderer, counter = planner.renderer, planner.counter
            rooms.append(self._prompt_room(planner, query, sizes))
        else:
            renderer = XmlRenderer() if self.renderer is None else self.renderer
            counter = TokenCounter.default() if self.counter is None else self.counter
        if self.max_tokens is not None:
            rooms.append(Allowance(limit=self.max_tokens, frame=0, counter=counter))
        return Packer(
            renderer=renderer,
            counter=counter,
            rooms=rooms,
            top_n=self.top_n,
            on_oversize=self.on_oversize,
            sizes=sizes,
        )

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
        window = planner.context_window() if self.context_window is None else self.context_window
        reserve = safety_margin(window) if self.safety_margin is None else self.safety_margin
        return Allowance(
            limit=window - planner.num_output - reserve - self.history_tokens - self.note_tokens,
            frame=planner.frame_tokens(query, sizes),
            counter=planner.counter,
        )

    def _report(self, nodes: Evidence, pack: Pack) -> list[Decision]:
        came = {slot_of(scored): scored for scored in nodes}
        decisions = [
            self.decision(gone.scored, "dropped", gone.reason, value=gone.value, limit=gone.limit, twin=gone.twin)
            for gone in pack.rejected
            if slot_of(gone.scored) in came
        ]
        for admission in pack.admitted:
            scored = admission.scored
            before_it = came.get(slot_of(scored))
            if before_it is scored:
                continue
            text = included_text(scored.node)
            before = "" if before_it is None else included_text(before_it.node)
            grown = len(text) - len(before)
            if grown < 0:
                twin = next(iter(admission.twins), None)
                reason = "passage_split" if slot_of(scored) in pack.split else "duplicate"
                decisions.append(self.decision(scored, "shortened", reason, value=-grown, twin=twin))
            elif text != before:
                decisions.append(self.decision(scored, "restored", "twin_rejected", value=grown))
        return decisions


class _Link:
    """Holds the synthesizer; a copy of the budget shares it, a pickle loses it."""

    def __init__(self, planner: PromptPlanner | None) -> None:
        self.planner = planner

    def __deepcopy__(self, memo: object) -> _Link:
        return self

    def __reduce__(self) -> tuple[type[_Link], tuple[None]]:
        return _Link, (None,)


def _in_order(nodes: Evidence, pack: Pack) -> list[NodeWithScore]:
    """Keep the incoming order; nodes that came back take the place of their rank."""
    admitted = [admission.scored for admission in pack.admitted]
    ranks = [rank_of(scored) for scored in nodes]
    if ranks == sorted(ranks):
        return sorted(admitted, key=rank_of)
    places = {slot_of(scored): place for place, scored in enumerate(nodes)}
    return sorted(admitted, key=lambda scored: places.get(slot_of(scored), len(nodes)))
