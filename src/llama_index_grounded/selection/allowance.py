"""How many tokens of a prompt are left for evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

    from llama_index_grounded.rendering import Renderer
    from llama_index_grounded.tokens import TokenCounter

__all__ = ["Allowance", "PromptPlanner"]

SAFETY_TOKENS = 256
SAFETY_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The room of one prompt, in tokens."""

    limit: int
    """What the estimate of the counted prompt may reach."""
    frame: int
    """Plain tokens of everything but the sources."""
    counter: TokenCounter

    def left(self, used: int) -> int:
        """Return the estimated tokens that stay free when the sources take ``used`` plain tokens."""
        return self.limit - self.counter.estimate(self.frame + used)

    def fits(self, used: int) -> bool:
        """Tell whether sources of ``used`` plain tokens fit; exactly at the limit they do."""
        return self.left(used) >= 0


def safety_margin(window: int) -> int:
    """Return the default reserve for a window: the larger of 256 tokens and 5 %."""
    return max(SAFETY_TOKENS, int(window * SAFETY_SHARE))


class PromptPlanner(Protocol):
    """What a budget needs to know of the synthesizer that it packs for."""

    @property
    def renderer(self) -> Renderer:
        """How sources are rendered."""
        ...

    @property
    def counter(self) -> TokenCounter:
        """How tokens are counted."""
        ...

    @property
    def num_output(self) -> int:
        """Tokens that are kept free for the answer."""
        ...

    def context_window(self) -> int:
        """Return the model's window in tokens."""
        ...

    def frame_tokens(self, query: QueryBundle, sizes: dict[tuple[str, str], int]) -> int:
        """Count everything but the sources: system prompt, rules, history, question, envelope, schema."""
        ...
