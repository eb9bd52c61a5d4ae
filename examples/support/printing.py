"""What the quickstart prints: plain lines on stdout for the answer, on stderr for the way there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llama_index_grounded import Citation, GroundedResult
    from llama_index_grounded.schema import Decision
    from llama_index_grounded.synthesis.plan import Plan


def say(line: str) -> None:
    """Print a line that is no part of the answer."""
    print(line, file=sys.stderr)


def show_progress(done: int, total: int) -> None:
    """Count the stored chunks, on one line where the terminal can rewrite it."""
    rewrites = sys.stderr.isatty()
    end = "\r" if rewrites and done < total else "\n"
    print(f"Ingesting: {done} of {total} chunks", end=end, file=sys.stderr, flush=True)


def answer_lines(result: GroundedResult, seconds: float) -> list[str]:
    """Lay out an answer or a refusal with everything that backs it.

    Args:
        result: From ``response.grounded``.
        seconds: Time from the question to the answer, retrieval included.
    """
    return [
        result.answer,
        "",
        f"Verdict: {result.verdict or '-'}",
        *_reason(result),
        *(citation_line(citation) for citation in result.citations),
        *(f"Warning: {warning}" for warning in result.warnings),
        f"Top score: {_number(result.top_score)}",
        _tokens(result),
        f"Elapsed: {seconds:.2f} s, of which {result.elapsed_ms / 1000:.2f} s for the answer",
        "",
        *audit_lines(result),
    ]


def preview_lines(preview: Plan) -> list[str]:
    """Lay out what would be sent, message by message, and how its size compares with the allowance."""
    sent = [f"--- {message.role.value}\n{message.content}" for message in preview.messages]
    refusal = preview.refusal
    return [
        *(sent if refusal is None else [f"Nothing would be sent: {refusal.reason} ({refusal.detail})"]),
        f"--- {preview.tokens} of {_number(preview.allowance)} prompt tokens, {len(preview.sources)} sources",
        *(decision_line(decision) for decision in preview.decisions),
    ]


def audit_lines(result: GroundedResult) -> list[str]:
    """Lay out the audit log of the pack: what the model saw, in order, and what each stage did."""
    return [
        "Audit log of the pack:",
        *(
            f"  {source.key} {source.node_id}: score {_number(source.score)}, {_number(source.tokens)} tokens"
            f"{', cited' if source.cited else ''}"
            for source in result.sources
        ),
        *(f"  {decision_line(decision)}" for decision in result.decisions),
        f"  configuration {result.fingerprint}",
    ]


def decision_line(decision: Decision) -> str:
    """Say in one line what a stage did with a node, and why."""
    limit = "" if decision.limit is None else f" against {_number(decision.limit)}"
    value = "" if decision.value is None else f" ({_number(decision.value)}{limit})"
    twin = "" if decision.twin is None else f", see {decision.twin}"
    return f"{decision.stage} {decision.action} {decision.node_id}: {decision.reason}{value}{twin}"


def _reason(result: GroundedResult) -> list[str]:
    if result.refusal is None:
        return []
    detail = f" ({result.refusal.detail})" if result.refusal.detail else ""
    return [f"Refused: {result.refusal.reason}{detail}"]


def _tokens(result: GroundedResult) -> str:
    estimated, reported = result.usage.estimated_prompt_tokens, _number(result.usage.prompt_tokens)
    calls = "1 model call" if result.llm_calls == 1 else f"{result.llm_calls} model calls"
    return f"Prompt tokens: {estimated} estimated, {reported} reported ({calls})"


def citation_line(citation: Citation) -> str:
    """Name a citation by its key, title, section and link."""
    parts = [citation.title or citation.document_id, citation.section, citation.url]
    return f"[{citation.key}] " + " | ".join(part for part in parts if part)


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")
