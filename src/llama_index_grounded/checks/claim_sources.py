"""Which sources count for a claim of the answer."""

from __future__ import annotations

from llama_index_grounded.schema import AnswerClaim
from llama_index_grounded.synthesis.checking import CheckContext

__all__ = ["claim_sources"]


def claim_sources(claim: AnswerClaim, context: CheckContext) -> tuple[str, ...]:
    """Return the keys that a claim names, and behind them those in which a check before found its quote.

    Args:
        claim: One claim of the answer.
        context: What the check is given; ``found`` says where quotes stand.

    Returns:
        Keys of sources of the prompt, each once.
    """
    found = (match.key for match in context.found if (match.quote, match.keys) == (claim.quote, claim.keys))
    moved = (key for key in found if key is not None and key in context.sources)
    return tuple(dict.fromkeys((*claim.keys, *moved)))
