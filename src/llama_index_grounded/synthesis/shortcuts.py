"""What every response says without a look into ``grounded``."""

from __future__ import annotations

from typing import Protocol

from llama_index_grounded.schema import Citation, GroundedResult, Refusal, Verdict

__all__ = ["Shortcuts"]


class _Grounded(Protocol):
    @property
    def grounded(self) -> GroundedResult: ...


class Shortcuts:
    """The shortcuts of a response that has ``grounded``."""

    @property
    def answerable(self: _Grounded) -> bool:
        """True where there is an answer."""
        return self.grounded.answerable

    @property
    def verdict(self: _Grounded) -> Verdict | None:
        """The model's verdict; None where no valid answer came from a model."""
        return self.grounded.verdict

    @property
    def citations(self: _Grounded) -> tuple[Citation, ...]:
        """The valid citations, in the order of the answer's sources; none for a refusal."""
        return self.grounded.citations

    @property
    def refusal(self: _Grounded) -> Refusal | None:
        """Why there is no answer; None where there is one."""
        return self.grounded.refusal
