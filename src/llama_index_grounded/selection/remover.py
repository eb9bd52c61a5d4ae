"""What every remover promises, so that a budget can take back what was removed in favour of a node that it rejects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeGuard

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

__all__ = ["Cut", "Ledger", "Remover", "is_remover"]


@dataclass(frozen=True, slots=True)
class Cut:
    """What a remover leaves of one node, and who holds the rest."""

    after: NodeWithScore | None
    """The very node where nothing was removed, a shortened copy, or None where nothing new is left."""
    twins: Mapping[str, int] = field(default_factory=dict[str, int])
    """Removed characters by the id of the node that keeps them, in the order of the text."""


class Ledger(Protocol):
    """What one remover knows to be admitted, so that the rest can be judged against it."""

    def trim(self, candidate: NodeWithScore) -> Cut:
        """Take away what is admitted already."""
        ...

    def admit(self, scored: NodeWithScore, came: NodeWithScore) -> None:
        """Note that the model will see a node, and that before it was trimmed it came as ``came``."""
        ...


class Remover(Protocol):
    """A stage that removes what a better-ranked node already says."""

    def ledger(self) -> Ledger:
        """Begin with nothing admitted."""
        ...


def is_remover(stage: object) -> TypeGuard[Remover]:
    """Tell a stage that removes: asking a protocol itself would take longer than most stages."""
    return callable(getattr(stage, "ledger", None))
