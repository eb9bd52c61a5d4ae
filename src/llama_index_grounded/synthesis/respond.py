"""Turn the outcome of a query into what LlamaIndex and its users read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import Response

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import strip
from llama_index_grounded.schema import GroundedResult, Refusal, RefusalReason
from llama_index_grounded.synthesis.checked import cite
from llama_index_grounded.synthesis.prompts import REFUSAL_TEXTS, Language
from llama_index_grounded.synthesis.shortcuts import Shortcuts

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from llama_index_grounded.synthesis.answer import AnswerModel
    from llama_index_grounded.synthesis.conversation import Outcome
    from llama_index_grounded.synthesis.plan import Plan

__all__ = [
    "GroundedResponse",
    "RefusalText",
    "build_response",
    "build_result",
    "check_refusal_text",
    "for_readers",
    "refusal_words",
]

RefusalText = str | Mapping[str, str] | Callable[[Refusal], str]


@dataclass
class GroundedResponse(Shortcuts, Response):
    """A LlamaIndex response that knows what it stands on.

    ``str()`` is the answer or the refusal text; ``source_nodes`` are all packed nodes in prompt order with the included
    text; ``metadata`` is LlamaIndex's mapping plus ``"grounded"``, JSON-ready. ``answerable``, ``verdict``,
    ``citations`` and ``refusal`` are shortcuts to what ``grounded`` holds.
    """

    grounded: GroundedResult = field(kw_only=True)
    """Everything: verdict, sources, refusal, usage, decisions."""
    parsed: AnswerModel | None = None
    """The model's accepted reply, with the fields that your own subclass adds; None for a refusal."""


def check_refusal_text(refusal_text: RefusalText | None, language: str) -> None:
    """Refuse an unknown language or an unknown reason at once, not in front of a user."""
    if language not in REFUSAL_TEXTS:
        msg = f"language must be one of {sorted(REFUSAL_TEXTS)}, not {language!r}; refusal_text takes any other"
        raise ConfigurationError(msg)
    if isinstance(refusal_text, Mapping):
        unknown = [str(reason) for reason in refusal_text if reason not in list(RefusalReason)]
        if unknown:
            msg = f"refusal_text names unknown reasons: {', '.join(unknown)}"
            raise ConfigurationError(msg)
    elif not (refusal_text is None or isinstance(refusal_text, str) or callable(refusal_text)):
        raise ConfigurationError("refusal_text must be a text, a mapping from reason to text, or a callable")
    texts = refusal_text.values() if isinstance(refusal_text, Mapping) else [refusal_text]
    for text in texts:
        if text is not refusal_text or isinstance(text, str):
            _checked(text)


def _checked(text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        msg = f"a refusal text must be a text that is not blank, not {text!r}"
        raise ConfigurationError(msg)
    return text


def refusal_words(refusal: Refusal, refusal_text: RefusalText | None, language: Language) -> str:
    """Return the text for a refusal: the user's own, else the built-in one of the language."""
    built_in = REFUSAL_TEXTS[language][refusal.reason]
    if refusal_text is None:
        return built_in
    if isinstance(refusal_text, str):
        return refusal_text
    if isinstance(refusal_text, Mapping):
        return refusal_text.get(refusal.reason, built_in)
    return _checked(refusal_text(refusal))


def build_result(
    plan: Plan, outcome: Outcome | None, *, words: Callable[[Refusal], str], elapsed_ms: float, fingerprint: str
) -> GroundedResult:
    """Put plan and outcome together. Without an outcome no model was called."""
    refusal = plan.refusal if outcome is None else outcome.assessment.refusal
    judgement = None if outcome is None else outcome.assessment.judgement
    cited = () if refusal or judgement is None else judgement.cited
    checks = outcome.checks if outcome else ()
    citations = () if refusal else cite(cited, plan, checks)
    named = {citation.key for citation in citations}
    sources = tuple(source.model_copy(update={"cited": source.key in named}) for source in plan.sources)
    said_no = refusal is not None and refusal.reason is RefusalReason.not_in_sources
    shared: dict[str, Any] = {
        "answerable": refusal is None,
        "verdict": judgement.verdict if judgement and (refusal is None or said_no) else None,
        "answer": _text(refusal, outcome, words),
        "citations": citations,
        "claims": () if refusal or judgement is None else judgement.claims,
        "sources": sources,
        "invalid_source_ids": judgement.invalid if judgement else (),
        "refusal": refusal,
        "checks": checks,
        "decisions": plan.decisions,
        "conflicts": plan.conflicts,
        "top_score": plan.top_score,
        "elapsed_ms": elapsed_ms,
        "fingerprint": fingerprint,
        "warnings": (*plan.warnings, *(outcome.warnings if outcome else ())),
    }
    if outcome is None:
        return GroundedResult(**shared, usage=plan.usage, llm_calls=plan.calls)
    return GroundedResult(
        **shared,
        usage=outcome.usage,
        llm_calls=outcome.calls,
        raw_output=outcome.raw_output,
    )


def _text(refusal: Refusal | None, outcome: Outcome | None, words: Callable[[Refusal], str]) -> str:
    """Return what is shown; what was shown already stands, whatever came after it."""
    if refusal is None:
        return outcome.assessment.judgement.text if outcome and outcome.assessment.judgement else ""
    return (outcome.shown if outcome else "") or words(refusal)


def build_response(
    result: GroundedResult,
    plan: Plan,
    additional: Sequence[NodeWithScore],
    parsed: AnswerModel | None,
) -> GroundedResponse:
    """Make the response."""
    nodes, metadata = for_readers(plan, additional)
    metadata["grounded"] = result.model_dump(mode="json")
    return GroundedResponse(
        response=result.answer, source_nodes=nodes, metadata=metadata, grounded=result, parsed=parsed
    )


def for_readers(plan: Plan, additional: Sequence[NodeWithScore]) -> tuple[list[NodeWithScore], dict[str, Any]]:
    """Return the source nodes of a response and their metadata by node id; the stamps of the stages stay behind."""
    nodes = [strip(scored) for scored in (*plan.nodes, *additional)]
    return nodes, {scored.node.node_id: scored.node.metadata for scored in nodes}
