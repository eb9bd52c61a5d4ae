"""What checks are shown of an answer, and what becomes of it after them: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from llama_index_grounded.evidence import FieldName, field_for_llm, included_text
from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import Citation, Refusal, RefusalReason
from llama_index_grounded.selection.passages import origin_of
from llama_index_grounded.synthesis.answer import AnswerModel, ClaimedAnswer, GroundedAnswer
from llama_index_grounded.synthesis.checking import CheckContext, OnFail, ShownSource

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

    from llama_index_grounded.schema import CheckResult, QuoteMatch
    from llama_index_grounded.synthesis.plan import Plan
    from llama_index_grounded.synthesis.validate import Judgement

__all__ = ["Ruling", "cite", "context_of", "rule", "sound"]

_DESCRIBING: tuple[FieldName, ...] = ("title", "section", "heading", "page", "updated")
_MOST_NAMES = 200
"""Characters of the names of failed checks in a refusal."""
_OWN = GroundedAnswer.model_fields.keys() | ClaimedAnswer.model_fields.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What becomes of an answer after its checks."""

    refusal: Refusal | None = None
    ask_again: bool = False
    """True where a check wants another answer."""
    complaint: str = ""
    """What the model is told then."""


def context_of(question: str, plan: Plan, judgement: Judgement, answer: AnswerModel) -> CheckContext:
    """Show an answer and what the model saw."""
    shown = {
        source.key: ShownSource(ref=source, text=included_text(scored.node), shown=_described(scored.node))
        for source, scored in zip(plan.sources, plan.nodes, strict=True)
    }
    return CheckContext(
        question=question,
        answer=judgement.text,
        sources=MappingProxyType(shown),
        cited=judgement.cited,
        verdict=judgement.verdict,
        claims=judgement.claims,
        unescape=plan.unescape,
        extra=MappingProxyType({name: value for name, value in answer if name not in _OWN}),
    )


def _described(node: BaseNode) -> Mapping[str, str]:
    fields = {name: field_for_llm(node, name) for name in _DESCRIBING}
    return MappingProxyType({name: clean(value) for name, value in fields.items() if value})


def sound(result: CheckResult, context: CheckContext) -> bool:
    """Tell whether what a check reports can be: places in the answer, passages in the sources, counts from zero on."""
    places = [(span.start, span.end) for span in result.spans] + [(claim.start, claim.end) for claim in result.claims]
    if any(not 0 <= start < end <= len(context.answer) for start, end in places) or _negative(result):
        return False
    return all(quote.key is None or _stands(quote, context) for quote in result.quotes)


def _negative(result: CheckResult) -> bool:
    usage = result.usage
    counts = (result.llm_calls, usage.prompt_tokens, usage.completion_tokens, usage.estimated_prompt_tokens)
    return any(count is not None and count < 0 for count in counts)


def _stands(quote: QuoteMatch, context: CheckContext) -> bool:
    source = context.sources.get(quote.key or "")
    if source is None or quote.start is None or quote.end is None or not 0 <= quote.start < quote.end:
        return False
    return source.text[quote.start : quote.end] == quote.text


def rule(policies: Sequence[OnFail], results: Sequence[CheckResult]) -> Ruling:
    """Refuse where a check that failed is to refuse; a check that was skipped decides nothing."""
    failed = [(policy, result) for policy, result in zip(policies, results, strict=True) if result.status == "failed"]
    stopping = [(policy, result) for policy, result in failed if policy != "flag"]
    if not stopping:
        return Ruling()
    names = " ".join(", ".join(result.name for _, result in stopping).split())[:_MOST_NAMES]
    refusal = Refusal(reason=RefusalReason.failed_check, detail=f"the answer failed: {names}")
    again = all(policy == "retry" for policy, _ in stopping)
    complaint = "; ".join(result.detail or f"it failed the check {result.name}" for _, result in stopping)
    return Ruling(refusal=refusal, ask_again=again, complaint=complaint)


def cite(keys: Iterable[str], plan: Plan, results: Sequence[CheckResult]) -> tuple[Citation, ...]:
    """Cite sources in the order of their keys, each passage that a check found in one as a citation of its own.

    A passage that stands in a source which the answer does not name is cited from there, behind the others. Of a
    source that was joined from several chunks, the one is cited in which the passage begins.
    """
    by_key = {source.key: source for source in plan.sources}
    shown = {source.key: scored.node for source, scored in zip(plan.sources, plan.nodes, strict=True)}
    passages: dict[str, dict[tuple[int, int], Citation]] = {key: {} for key in keys}
    for quote in (quote for result in results for quote in result.quotes):
        if quote.key in by_key and quote.start is not None and quote.end is not None:
            found: dict[str, object] = {"quote": quote.text, "start": quote.start, "end": quote.end}
            found |= _chunk_at(shown[quote.key], quote.start)
            citation = Citation.of(by_key[quote.key]).model_copy(update=found)
            passages.setdefault(quote.key, {})[quote.start, quote.end] = citation
    return tuple(
        citation
        for key, found in passages.items()
        for citation in (sorted(found.values(), key=lambda each: each.start or 0) or [Citation.of(by_key[key])])
    )


def _chunk_at(node: BaseNode, start: int) -> dict[str, object]:
    """Name the chunk that a character of a passage came from, where that is known."""
    origin = origin_of(node, start)
    return {} if origin is None else {"node_id": origin.node_id, "chunk_id": origin.chunk_id}
