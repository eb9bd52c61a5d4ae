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

    def __add__(self, more: Usage) -> Usage:
        """Add two counts; one unknown makes the sum unknown."""
        return Usage(
            prompt_tokens=_sum(self.prompt_tokens, more.prompt_tokens),
            completion_tokens=_sum(self.completion_tokens, more.completion_tokens),
            estimated_prompt_tokens=self.estimated_prompt_tokens + more.estimated_prompt_tokens,
        )


def _sum(one: int | None, more: int | None) -> int | None:
    return None if one is None or more is None else one + more
