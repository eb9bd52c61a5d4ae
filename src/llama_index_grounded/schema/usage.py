"""What a query cost."""

from __future__ import annotations

from llama_index_grounded.schema.record import Record

__all__ = ["Usage"]


class Usage(Record):
    """Tokens, summed over all calls of one query; None where a provider did not report, 0 where no call was made."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    estimated_prompt_tokens: int = 0
    """Our own count of what was sent."""
