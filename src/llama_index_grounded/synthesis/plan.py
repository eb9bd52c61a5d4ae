"""Turn packed nodes and a question into the messages that will be sent, and see that they fit.

A plan is everything that is decided before a model is called; a preview shows it, a query carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage

from llama_index_grounded.evidence import included_text, with_text
from llama_index_grounded.llm.providers import Kind
from llama_index_grounded.llm.structured import bounded
from llama_index_grounded.rendering import Removed, unescape
from llama_index_grounded.rendering.renderer import key_at, shown_text
from llama_index_grounded.schema import Conflict, Decision, Refusal, RefusalReason, SourceRef, Usage
from llama_index_grounded.selection.trail import FOREIGN
from llama_index_grounded.synthesis.links import UrlFor, with_url
from llama_index_grounded.synthesis.packed import decision_on, pack
from llama_index_grounded.synthesis.steps import all_refused, has_no_origin, without_old_keys
from llama_index_grounded.synthesis.unescaping import unescape_of

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.rendering import Renderer
    from llama_index_grounded.selection.trail import Evidence, Trail
    from llama_index_grounded.synthesis.options import Options
    from llama_index_grounded.synthesis.packed import Packed
    from llama_index_grounded.synthesis.parts import PromptParts
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["Plan", "make_plan"]

_GATE_REASONS: dict[str, str] = {"low_margin": RefusalReason.low_score}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be sent, or why nothing will be.

    Example:
        >>> from llama_index_grounded import CitingSynthesizer
        >>> from llama_index_grounded.testing import ScriptedLLM, make_nodes
        >>> nodes = make_nodes(["Within 21 days."], metadata={"title": "Returns"})
        >>> print(CitingSynthesizer(ScriptedLLM(["never asked"])).preview("How long?", nodes).text)
        <source id="S1" title="Returns">
        Within 21 days.
        </source>
        <BLANKLINE>
    """

    nodes: Sequence[NodeWithScore]
    """The packed nodes in prompt order, with the included text."""
    sources: tuple[SourceRef, ...]
    text: str = ""
    """The sources as the model would see them; they stand in the messages in one piece. Empty where nothing is sent."""
    messages: tuple[ChatMessage, ...]
    tokens: int
    """Estimated tokens of the messages, and of the schema where it goes out beside them."""
    allowance: int | None
    """What the messages may take: the window less the room for the reply; None where no model was asked for it."""
    window: int | None = None
    """The model's window in tokens, as far as it was asked for."""
    kept_free: int = 0
    """Tokens of the window that a `TokenBudget` kept free beside the reply: its safety margin, and what it was told.

    A smaller window of the budget's own counts here too.
    """
    decisions: tuple[Decision, ...]
    kind: Kind
    """How the reply is given its form."""
    schema: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
    top_score: float | None = None
    conflicts: tuple[Conflict, ...] = ()
    """Sources that disagree; the model is told."""
    calls: int = 0
    """Calls of a model that stages made on the way here, and what they cost."""
    usage: Usage = field(default_factory=Usage)
    shares: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where the tokens go, as counted, without the counter's margin: the parts of the prompt, and the reply."""
    unescape: Callable[[str], str] = unescape
    """Undoes the escapes of the prompt in what a model copied from it."""
    schema_tokens: int = 0
    """Those of the schema beside the messages: providers differ in whether they count it."""


def make_plan(
    query: QueryBundle,
    evidence: Evidence,
    prompt: Callable[[], PromptParts],
    window: Callable[[], int],
    options: Options,
    *,
    in_steps: bool = False,
) -> Plan:
    """Drop what can not be shown, fit the rest into the window and write the messages.

    The LLM is looked up (``prompt``, ``window``) only where there is something to ask it.
    """
    given, bared = without_old_keys(evidence) if in_steps else (evidence, [])
    nodes, unreadable = _readable(given, options.renderer)
    begun = _begun((*evidence.trail.decisions, *bared, *unreadable), evidence.trail)
    if in_steps and all_refused(nodes, options.refusal_text):
        refusal = Refusal(reason=RefusalReason.no_evidence, detail="every step of the engine was refused")
        return replace(begun, refusal=refusal)
    last = None if nodes else _last_word(begun.decisions)
    if not nodes and (last is None or last.reason != RefusalReason.prompt_too_long):
        return replace(begun, refusal=_why_empty(last, begun.decisions))
    parts, allowance = prompt(), window() - options.num_output
    packed = pack(query, nodes, evidence.trail, parts, allowance)
    rendering = parts.renderer.render(packed.nodes)
    plan = replace(
        _worded(begun, packed, parts, query, rendering.text),
        nodes=[_as_shown(scored, parts.renderer) for scored in packed.nodes],
        sources=_sources(rendering.sources, packed, options.url_for, in_steps=in_steps),
        decisions=(*begun.decisions, *packed.unfit, *_cleaned(rendering.removed, packed.nodes)),
    )
    limit = allowance if evidence.trail.prompt_limit is None else evidence.trail.prompt_limit
    plan = replace(plan, kept_free=max(allowance - limit, 0))
    return _measured(plan, packed, parts.counter, allowance, options.num_output)


def _begun(decisions: tuple[Decision, ...], trail: Trail) -> Plan:
    """Note what is known before the prompt: what stages decided, asked and left to say."""
    return Plan(
        nodes=(),
        sources=(),
        messages=(),
        tokens=0,
        allowance=None,
        decisions=decisions,
        kind="prompt",
        schema={},
        top_score=trail.top_score,
        warnings=trail.notes.warnings,
        calls=trail.notes.calls,
        usage=trail.notes.usage,
    )


def _worded(begun: Plan, packed: Packed, parts: PromptParts, query: QueryBundle, sources: str) -> Plan:
    """Write the messages, and note in which form the reply is asked for."""
    return replace(
        begun,
        text=sources if packed.nodes else "",
        messages=parts.messages(query, sources + packed.told.notes) if packed.nodes else (),
        conflicts=packed.told.conflicts,
        kind=parts.kind,
        # Grammars of local servers know the keyword; a strict mode elsewhere may refuse it.
        schema=bounded(parts.schema, len(packed.nodes)) if parts.kind == "ollama" else parts.schema,
        warnings=(*parts.warnings, *begun.warnings),
        unescape=unescape_of(parts.renderer),
    )


def _sources(
    rendered: Sequence[SourceRef], packed: Packed, url_for: UrlFor | None, *, in_steps: bool
) -> tuple[SourceRef, ...]:
    """Say of each source where it links to, how large it is, and whether an engine wrote it.

    An engine that answers ``in_steps`` passes its own sub-answers as nodes; they are marked as synthetic.
    """
    return tuple(
        with_url(source, url_for).model_copy(update={"tokens": size, "synthetic": in_steps and has_no_origin(scored)})
        for source, size, scored in zip(rendered, packed.sizes, packed.nodes, strict=True)
    )


def _measured(plan: Plan, packed: Packed, counter: TokenCounter, allowance: int, num_output: int) -> Plan:
    """Add the figures: what the prompt takes, the best score; and, where no node fits, why nothing is sent."""
    evidence = sum(packed.sizes)
    total = counter.estimate(packed.frame + evidence)
    return replace(
        plan,
        tokens=total if plan.nodes else 0,
        allowance=allowance,
        window=allowance + num_output,
        top_score=_top_score(plan),
        shares={**packed.framing, "notes": packed.told.tokens, "sources": evidence, "reply": num_output},
        schema_tokens=total - counter.estimate(packed.frame + evidence - packed.framing["schema"]),
        refusal=None if plan.nodes else _no_room(packed, counter, allowance, num_output, plan.kept_free),
    )


def _readable(nodes: Sequence[NodeWithScore], renderer: Renderer) -> tuple[list[NodeWithScore], list[Decision]]:
    """Leave out nodes that show no text: an image, or nothing but white space and invisible characters."""
    blank = [not shown_text(renderer, scored.node).strip() for scored in nodes]
    dropped = [decision_on(scored, "empty_text") for scored, gone in zip(nodes, blank, strict=True) if gone]
    return [scored for scored, gone in zip(nodes, blank, strict=True) if not gone], dropped


def _as_shown(scored: NodeWithScore, renderer: Renderer) -> NodeWithScore:
    shown = shown_text(renderer, scored.node)
    return scored if shown == included_text(scored.node) else with_text(scored, shown)


def _cleaned(removed: Sequence[Removed], nodes: Sequence[NodeWithScore]) -> list[Decision]:
    by_key = {key_at(place): scored for place, scored in enumerate(nodes)}
    return [
        decision_on(by_key[record.key], "invisible_characters", action="shortened", value=record.characters)
        for record in removed
    ]


def _no_room(packed: Packed, counter: TokenCounter, allowance: int, num_output: int, kept_free: int) -> Refusal:
    """Say what the smallest source takes, or what fills the window, the largest part of the prompt first."""
    left = allowance - counter.estimate(packed.frame)
    sizes = [one.value for one in packed.unfit if one.reason == "over_window" and one.value is not None]
    if left > 0 and sizes:
        return Refusal(reason=RefusalReason.prompt_too_long, detail=_too_large(min(sizes), left))
    parts = sorted({**packed.framing, "notes": packed.told.tokens}.items(), key=lambda part: -part[1])
    listed = ", ".join(f"{name} {tokens}" for name, tokens in parts if tokens)
    window, free = allowance + num_output, f", {kept_free} are kept free" if kept_free else ""
    return Refusal(
        reason=RefusalReason.prompt_too_long,
        detail=f"no room for a source: of a window of {window} tokens the reply takes {num_output}{free}, "
        f"and the rest of the prompt needs {counter.estimate(packed.frame)} ({listed})",
    )


def _last_word(decisions: Sequence[Decision]) -> Decision | None:
    """Find the decision that left nothing; None where nobody of ours said why."""
    for decision in reversed(decisions):
        if decision.stage == FOREIGN:
            return None
        reason = _GATE_REASONS.get(decision.reason, decision.reason)
        if decision.action == "refused" or reason in ("over_budget", RefusalReason.low_score):
            return decision
    return None


def _why_empty(last: Decision | None, decisions: Sequence[Decision]) -> Refusal:
    """Name the reason that the last stage gave for leaving nothing."""
    if last is None:
        return Refusal(reason=RefusalReason.no_evidence, detail="no source was left to answer from")
    if last.reason == "over_budget":
        return Refusal(reason=RefusalReason.prompt_too_long, detail=_smallest(decisions))
    reason = _GATE_REASONS.get(last.reason, last.reason)
    if reason in list(RefusalReason):
        return Refusal(reason=RefusalReason(reason), detail=_numbers(last, decisions))
    # By a rule of the application, in its own words.
    return Refusal(reason=RefusalReason.insufficient_evidence, detail=f"{last.stage}: {last.reason}")


def _smallest(decisions: Sequence[Decision]) -> str:
    """Say what the smallest source would have taken, and what there was."""
    sizes = [(one.value, one.limit) for one in decisions if one.reason == "over_budget" and one.value is not None]
    needed, left = min(sizes, default=(None, None))
    return "not one source fits" if needed is None or left is None else _too_large(needed, left)


def _too_large(smallest: float, left: float) -> str:
    return f"not one source fits: the smallest takes {smallest:g} tokens, and there are {left:g}"


def _numbers(last: Decision, decisions: Sequence[Decision]) -> str:
    """Name the best value that the stage turned down, and what it was compared with."""
    alike = [each for each in decisions if (each.stage, each.reason) == (last.stage, last.reason)]
    best = max((each.value for each in alike if each.value is not None), default=None)
    if best is None and last.limit is None:
        return f"{last.stage}: {last.reason}"
    value = "nothing" if best is None else f"{best:g}"
    limit = "" if last.limit is None else f" against a limit of {last.limit:g}"
    return f"{last.stage}: {last.reason}, {value}{limit}"


def _top_score(plan: Plan) -> float | None:
    """Return the gate's best signal, else the best score of the packed nodes."""
    if plan.top_score is not None:
        return plan.top_score
    return max((source.score for source in plan.sources if source.score is not None), default=None)
