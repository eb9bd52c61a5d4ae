"""The base of all records, and the decisions that the stages report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

__all__ = ["Action", "Decision", "Record"]

Action = Literal["kept", "shortened", "dropped", "restored", "moved", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one stage did with one node, and why. Ids and numbers only."""

    stage: str
    """Class name of the stage, or ``CitingSynthesizer``."""
    action: Action
    node_id: str
    document_id: str
    reason: str
    """A short fixed word, for example ``low_score``, ``duplicate`` or ``over_budget``."""
    value: float | None = None
    """The measured number: a score, a count of tokens or of characters, a position."""
    limit: float | None = None
    """What the value was compared with, in the same unit."""
    twin: str | None = None
    """Node id of the node in whose favour this one was dropped or shortened."""


def _storable(value: Any) -> Any:
    """Replace what JSON can not hold: halves of surrogate pairs, and numbers that are none."""
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Decision):
        fields = ("node_id", "document_id", "twin", "value", "limit")
        return replace(value, **{name: _storable(getattr(value, name)) for name in fields})
    if isinstance(value, (tuple, list)):
        return tuple(map(_storable, value))
    if isinstance(value, Real) and not isinstance(value, int):
        return float(value) if math.isfinite(value) else None
    return value


class Record(BaseModel):
    """Base of the frozen records."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _round_trips(cls, data: Any) -> Any:
        """Models and PDF readers write halves of surrogate pairs, and retrievers scores that are no numbers."""
        return {name: _storable(value) for name, value in data.items()} if isinstance(data, dict) else data
