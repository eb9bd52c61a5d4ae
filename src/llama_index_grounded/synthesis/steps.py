"""The sub-answers of engines that answer in steps: texts that no retriever found, and that may be refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llama_index_grounded.evidence import included_text, strip, with_text
from llama_index_grounded.schema import Decision
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.packed import decision_on
from llama_index_grounded.synthesis.prompts import REFUSAL_TEXTS

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from llama_index_grounded.synthesis.respond import RefusalText

__all__ = ["all_refused", "has_no_origin", "without_old_keys"]


def has_no_origin(scored: NodeWithScore) -> bool:
    """Tell whether nobody retrieved the node from anywhere: engines build theirs from a bare text."""
    node = strip(scored).node
    return scored.score is None and not node.metadata and not node.relationships


def without_old_keys(nodes: Sequence[NodeWithScore]) -> tuple[list[NodeWithScore], list[Decision]]:
    """Take the markers out of sub-answers: they name sources of another query, and would name others here."""
    bare: list[NodeWithScore] = []
    decisions: list[Decision] = []
    for scored in nodes:
        text = included_text(scored.node)
        left = clean_answer(text, (), inline_citations=False, escapes="none").text if has_no_origin(scored) else text
        if left != text:
            decisions.append(decision_on(scored, "old_keys", action="shortened", value=len(text) - len(left)))
        bare.append(scored if left == text else with_text(scored, left))
    return bare, decisions


def all_refused(nodes: Sequence[NodeWithScore], refusal_text: RefusalText | None) -> bool:
    """Tell whether there are sub-answers, and nothing but refusals: they say that nothing was found, and back nothing.

    A refusal is known by its text, built-in or given; what a callable would say is not known.
    """
    own = [refusal_text] if isinstance(refusal_text, str) else []
    if isinstance(refusal_text, Mapping):
        own = [*refusal_text.values()]
    built_in = [text for texts in REFUSAL_TEXTS.values() for text in texts.values()]
    ends = tuple(text.rstrip() for text in (*built_in, *own))
    return bool(nodes) and all(
        has_no_origin(scored) and included_text(scored.node).rstrip().endswith(ends) for scored in nodes
    )
