"""One tree of errors, with data on them."""

from __future__ import annotations

import copy
import pickle

import pytest

from llama_index_grounded.errors import (
    AccessViolationError,
    ConfigurationError,
    GenerationError,
    GroundedError,
    MissingScoreError,
)
from llama_index_grounded.schema import RefusalReason

ERRORS = [
    GroundedError("x"),
    ConfigurationError("no such field"),
    MissingScoreError("ScoreGate", ("n1", "n2")),
    AccessViolationError("AccessGuard", 3, (("n1", "filters"),)),
    GenerationError("the model is away", reason=RefusalReason.provider_error, retryable=True),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_cross_processes(error: GroundedError) -> None:
    """An error comes out of pickle and deep copy with its type, its message and its data."""
    for copied in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301 - our own bytes
        assert type(copied) is type(error)
        assert str(copied) == str(error)
        assert vars(copied) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_one_name_catches_them_all(error: GroundedError) -> None:
    """Everything that the package raises on purpose is a GroundedError."""
    with pytest.raises(GroundedError):
        raise error


@pytest.mark.parametrize(
    "error, builtin",
    [(ConfigurationError, ValueError), (MissingScoreError, ValueError), (GenerationError, RuntimeError)],
)
def test_errors_are_what_python_would_raise(error: type[GroundedError], builtin: type[Exception]) -> None:
    """Code that knows nothing of this package catches them by Python's own names."""
    assert issubclass(error, builtin)


def test_a_missing_score_names_the_nodes_and_the_way_out() -> None:
    """The error carries the stage and the node ids as data, and says what to set."""
    error = MissingScoreError("ScoreGate", ("n1", "n2"))
    assert (error.stage, error.node_ids) == ("ScoreGate", ("n1", "n2"))
    assert "ScoreGate" in str(error)
    assert "on_missing_score" in str(error)


def test_a_generation_error_says_whether_to_try_again() -> None:
    """Reason and retryable are data, not words in a message."""
    error = GenerationError("late", reason=RefusalReason.deadline_exceeded, retryable=True)
    assert (error.reason, error.retryable) == (RefusalReason.deadline_exceeded, True)
