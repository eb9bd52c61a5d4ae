"""The errors of this package, drawn as a tree.

GroundedError
├── ConfigurationError   an option, a template or a combination of them can not work (also a ValueError)
├── AccessViolationError a node came to a guard that the query may not read
├── MissingScoreError    a gate needs a score and no node has one (also a ValueError)
└── GenerationError      the model gave no usable answer and ``on_error="raise"`` is set (also a RuntimeError)

Others are Python's and Pydantic's own: a ValueError for a blank question, a TypeError for an option that nothing knows,
and a ValidationError (a ValueError) for an option of a stage or another Pydantic model that can not be, also where a
ConfigurationError says why.

A failed judgement is never an error: missing evidence, a low score or an invalid citation end in a refusal with a
reason, which is a result like any other.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index_grounded.schema import RefusalReason

__all__ = ["AccessViolationError", "ConfigurationError", "GenerationError", "GroundedError", "MissingScoreError"]


class GroundedError(Exception):
    """Base of this package's own errors."""


class ConfigurationError(GroundedError, ValueError):
    """An option, a template or a combination of them can not work."""


class AccessViolationError(GroundedError):
    """A node came to a guard that this query may not read.

    The message holds counts and the names of rules, so it may reach the reader; the ids are data for the operator.
    """

    def __init__(self, stage: str, received: int, violations: tuple[tuple[str, str], ...]) -> None:
        rules = ", ".join(dict.fromkeys(rule for _, rule in violations))
        super().__init__(
            f"{stage}: {len(violations)} of {received} nodes may not be read by this query ({rules}). "
            "See node_ids of this error, and why the retriever's own filter let them through."
        )
        self.stage = stage
        self.received = received
        """Number of nodes that came to the guard."""
        self.violations = violations
        """Pairs of a node id and the rule that the node breaks: require, filters, predicate or predicate_error."""

    @property
    def node_ids(self) -> tuple[str, ...]:
        """Ids of the nodes that may not be read."""
        return tuple(node_id for node_id, _ in self.violations)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data, not the message; see `MissingScoreError`."""
        return type(self), (self.stage, self.received, self.violations), self.__dict__


class MissingScoreError(GroundedError, ValueError):
    """A gate was asked to judge nodes of which none has a score."""

    def __init__(self, stage: str, node_ids: tuple[str, ...]) -> None:
        super().__init__(
            f"{stage}: none of the {len(node_ids)} nodes has a score, so there is nothing to compare with min_score. "
            "Put the gate right after a retriever that scores, or set on_missing_score to 'pass' or 'refuse'."
        )
        self.stage = stage
        self.node_ids = node_ids

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data, not the message: worker processes hand errors back this way."""
        return type(self), (self.stage, self.node_ids), self.__dict__


class GenerationError(GroundedError, RuntimeError):
    """The model gave no usable answer; the provider's own error is the cause (``__cause__``)."""

    def __init__(self, message: str, *, reason: RefusalReason, retryable: bool) -> None:
        super().__init__(message)
        self.reason = reason
        """Why there is no answer: provider_error, invalid_output or deadline_exceeded."""
        self.retryable = retryable
        """Whether the same query may succeed later without a change."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data with the message; the cause stays behind, as Python has it for every error."""
        make = functools.partial(type(self), reason=self.reason, retryable=self.retryable)
        return make, (str(self),), self.__dict__
