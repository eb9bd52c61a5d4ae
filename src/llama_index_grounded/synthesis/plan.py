"""Turn packed nodes and a question into the messages that will be sent, and see that they fit.

A plan is everything that is decided before a model is called; a preview shows it, a query carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage

from llama_index_grounded.evidence import identity, included_text, mark_of, strip, with_text
from llama_index_grounded.llm.providers import Kind
from llama_index_grounded.llm.structured import bounded
from llama_index_grounded.rendering import Removed, Renderer, unescape
from llama_index_grounded.rendering.renderer import key_at, shown_text, size_of
from llama_index_grounded.schema import Action, Conflict, Decision, Refusal, RefusalReason, SourceRef, Usage
from llama_index_grounded.selection.carrier import slot_of
from llama_index_grounded.selection.trail import FOREIGN
from llama_index_grounded.synthesis.links import UrlFor, with_url
from llama_index_grounded.synthesis.parts import PromptParts
from llama_index_grounded.synthesis.prompts import conflict_notes
from llama_index_grounded.synthesis.unescaping import unescape_of

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_grounded.selection.trail import Evidence, Trail

__all__ = ["Plan", "make_plan"]

STAGE = "CitingSynthesizer"
_GATE_REASONS: dict[str, str] = {"low_margin": RefusalReason.low_score}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be sent, or why nothing will be."""

    nodes: Sequence[NodeWithScore]
    """The packed nodes in prompt order, with the included text."""
    sources: tuple[SourceRef, ...]
    messages: tuple[ChatMessage, ...]
    tokens: int
    """Estimated tokens of the messages, and of the schema where it goes out beside them."""
    allowance: int | None
    """What the messages may take: the window less the room for the reply; None where no model was asked for it."""
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
    *,
    renderer: Renderer,
    window: Callable[[], int],
    num_output: int,
    url_for: UrlFor | None,
    in_steps: bool = False,
) -> Plan:
    """Drop what can not be shown, fit the rest into the window and write the messages.

    The LLM is looked up (``prompt``, ``window``) only where there is something to ask it. An engine that answers
    ``in_steps`` passes its own sub-answers as nodes; they are marked as synthetic.
    """
    sizes = dict(evidence.trail.sizes)
    texts = {slot_of(scored): shown_text(renderer, scored.node) for scored in evidence}
    nodes, decisions = _readable(evidence, texts)
    if not nodes:
        return _empty((*evidence.trail.decisions, *decisions), evidence.trail)
    parts = prompt()
    allowance = window() - num_output
    framing = parts.frame(query, sizes)
    frame = sum(framing.values())
    noted = parts.count(_notes(_conflicts(nodes, evidence.trail), renderer), sizes)
    nodes, unfit = _fit(nodes, parts, frame + noted, allowance, sizes)
    rendering = renderer.render(nodes)
    conflicts = _conflicts(nodes, evidence.trail)
    notes = _notes(conflicts, renderer)
    noted = parts.count(notes, sizes)
    frame += noted
    counts = [size_of(scored, place, renderer, parts.counter, sizes) for place, scored in enumerate(nodes)]
    total = parts.counter.estimate(frame + sum(counts))
    plan = Plan(
        nodes=[_as_shown(scored, texts[slot_of(scored)]) for scored in nodes],
        sources=tuple(
            with_url(source, url_for).model_copy(
                update={"tokens": size, "synthetic": in_steps and _has_no_origin(scored)}
            )
            for source, size, scored in zip(rendering.sources, counts, nodes, strict=True)
        ),
        messages=parts.messages(query, rendering.text + notes) if nodes else (),
        tokens=total if nodes else 0,
        allowance=allowance,
        decisions=(*evidence.trail.decisions, *decisions, *unfit, *_cleaned(rendering.removed, nodes)),
        kind=parts.kind,
        # Grammars of local servers know the keyword; a strict mode elsewhere may refuse it.
        schema=bounded(parts.schema, len(nodes)) if parts.kind == "ollama" else parts.schema,
        warnings=(*parts.warnings, *evidence.trail.notes.warnings),
        conflicts=conflicts,
        calls=evidence.trail.notes.calls,
        usage=evidence.trail.notes.usage,
        top_score=_top_score(evidence, rendering.sources),
        shares={**framing, "notes": noted, "sources": sum(counts), "reply": num_output},
        unescape=unescape_of(renderer),
        schema_tokens=total - parts.counter.estimate(frame + sum(counts) - parts.schema_tokens(sizes)),
    )
    refusal = None if nodes else _why_empty(plan.decisions, parts.counter.estimate(frame), allowance)
    return replace(plan, refusal=refusal)


def _conflicts(nodes: Sequence[NodeWithScore], trail: Trail) -> tuple[Conflict, ...]:
    """Name the keys of what stages found to disagree, of the nodes that are shown."""
    keys = {slot_of(scored): key_at(place) for place, scored in enumerate(nodes)}
    return tuple(
        Conflict(keys=tuple(keys[slot] for slot in found.slots), detail=found.detail, confirmed=found.confirmed)
        for found in trail.notes.findings
        if all(slot in keys for slot in found.slots)
    )


def _notes(conflicts: Sequence[Conflict], renderer: Renderer) -> str:
    """Write what is told about sources that disagree, as it is sent: its details are words of documents."""
    return renderer.escape(conflict_notes(conflicts))


def _empty(decisions: tuple[Decision, ...], trail: Trail) -> Plan:
    return Plan(
        nodes=(),
        sources=(),
        messages=(),
        tokens=0,
        allowance=None,
        decisions=decisions,
        kind="prompt",
        schema={},
        refusal=_why_empty(decisions, 0, None),
        top_score=trail.top_score,
        warnings=trail.notes.warnings,
        calls=trail.notes.calls,
        usage=trail.notes.usage,
    )


def _readable(evidence: Evidence, texts: Mapping[int, str]) -> tuple[list[NodeWithScore], list[Decision]]:
    """Leave out nodes that show no text: an image, or nothing but white space and invisible characters."""
    dropped = [_decision(scored, "empty_text") for scored in evidence if not texts[slot_of(scored)].strip()]
    return [scored for scored in evidence if texts[slot_of(scored)].strip()], dropped


def _fit(
    nodes: list[NodeWithScore],
    parts: PromptParts,
    frame: int,
    allowance: int,
    sizes: dict[tuple[str, str], int],
) -> tuple[list[NodeWithScore], list[Decision]]:
    """Drop nodes from the lowest rank until the prompt fits; the question and the rules always stay."""
    kept = list(nodes)
    dropped: list[Decision] = []
    used = sum(size_of(scored, place, parts.renderer, parts.counter, sizes) for place, scored in enumerate(kept))
    while kept and parts.counter.estimate(frame + used) > allowance:
        weakest = max(range(len(kept)), key=lambda place: mark_of(kept[place])["rank"])
        size = size_of(kept[weakest], weakest, parts.renderer, parts.counter, sizes)
        left = allowance - parts.counter.estimate(frame + used - size)
        dropped.append(_decision(kept.pop(weakest), "over_window", value=size, limit=left))
        used -= size
    return kept, dropped


def _has_no_origin(scored: NodeWithScore) -> bool:
    """Tell whether nobody retrieved the node from anywhere: engines build theirs from a bare text."""
    node = strip(scored).node
    return scored.score is None and not node.metadata and not node.relationships


def _as_shown(scored: NodeWithScore, shown: str) -> NodeWithScore:
    return scored if shown == included_text(scored.node) else with_text(scored, shown)


def _cleaned(removed: Sequence[Removed], nodes: Sequence[NodeWithScore]) -> list[Decision]:
    by_key = {key_at(place): scored for place, scored in enumerate(nodes)}
    return [
        _decision(by_key[record.key], "invisible_characters", action="shortened", value=record.characters)
        for record in removed
    ]


def _decision(scored: NodeWithScore, reason: str, *, action: Action = "dropped", **numbers: float) -> Decision:
    return Decision(
        stage=STAGE,
        action=action,
        node_id=scored.node.node_id,
        document_id=identity(scored.node).document_id,
        reason=reason,
        value=numbers.get("value"),
        limit=numbers.get("limit"),
    )


def _why_empty(decisions: Sequence[Decision], frame: int, allowance: int | None) -> Refusal:
    """Name the reason that the last stage gave for leaving nothing."""
    for decision in reversed(decisions):
        if decision.stage == FOREIGN:
            break
        if decision.reason in ("over_budget", "over_window"):
            room = "" if allowance is None else f" (the rest of the prompt takes {frame} of {allowance} tokens)"
            return Refusal(reason=RefusalReason.prompt_too_long, detail=f"not one source fits{room}")
        reason = _GATE_REASONS.get(decision.reason, decision.reason)
        if (decision.action == "refused" and reason in list(RefusalReason)) or reason == RefusalReason.low_score:
            return Refusal(reason=RefusalReason(reason), detail=_numbers(decision, decisions))
        if decision.action == "refused":  # by a rule of the application, in its own words
            return Refusal(reason=RefusalReason.insufficient_evidence, detail=f"{decision.stage}: {decision.reason}")
    return Refusal(reason=RefusalReason.no_evidence, detail="no source was left to answer from")


def _numbers(last: Decision, decisions: Sequence[Decision]) -> str:
    """Name the best value that the stage turned down, and what it was compared with."""
    alike = [each for each in decisions if (each.stage, each.reason) == (last.stage, last.reason)]
    best = max((each.value for each in alike if each.value is not None), default=None)
    value = "nothing" if best is None else f"{best:g}"
    limit = "" if last.limit is None else f" against a limit of {last.limit:g}"
    return f"{last.stage}: {last.reason}, {value}{limit}"


def _top_score(evidence: Evidence, sources: Sequence[SourceRef]) -> float | None:
    """Return the gate's best signal, else the best score of the packed nodes."""
    if evidence.trail.top_score is not None:
        return evidence.trail.top_score
    return max((source.score for source in sources if source.score is not None), default=None)
