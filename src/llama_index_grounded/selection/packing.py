"""Admit nodes one after the other as long as they fit."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.rendering import Renderer
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.selection.allowance import Allowance
from llama_index_grounded.selection.carrier import rank_of, slot_of
from llama_index_grounded.selection.remover import Cut, Ledger
from llama_index_grounded.selection.restore import trim_by_all
from llama_index_grounded.tokens import TokenCounter

__all__ = ["Admission", "OnOversize", "Pack", "Packer", "Rejection"]

OnOversize = Literal["skip", "stop"]
_NONE: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A node that was not admitted."""

    scored: NodeWithScore
    reason: str
    """``over_budget``, ``top_n``, ``empty_text`` or ``duplicate``."""
    value: float | None = None
    """Tokens that the node needs, or characters that repeat."""
    limit: float | None = None
    """Tokens that were left."""
    twin: str | None = None
    """Node id of an admitted node that says the same."""
    final: bool = False
    """True where no node behind it was admitted either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A node that was admitted."""

    scored: NodeWithScore
    came: NodeWithScore
    """The candidate, before it was trimmed; the same node where nothing was cut."""
    twins: tuple[str, ...]
    """Ids of the admitted nodes that hold what was cut."""


@dataclass(frozen=True, slots=True)
class Pack:
    """What was admitted and what was not, both in rank order."""

    admitted: list[Admission] = field(default_factory=list[Admission])
    rejected: list[Rejection] = field(default_factory=list[Rejection])
    split: set[int] = field(default_factory=set[int])
    """Slots of the passages that were taken apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packer:
    """The limits of one prompt."""

    renderer: Renderer
    counter: TokenCounter
    rooms: Sequence[Allowance]
    top_n: int | None
    on_oversize: OnOversize
    sizes: dict[tuple[str, str], int]
    """Token counts by counter and text: what was counted in this query before, and what is counted now."""

    def full_room(self) -> Allowance | None:
        """Find a limit that leaves no token for evidence."""
        return next((room for room in self.rooms if not room.fits(1)), None)

    def pack(
        self,
        candidates: Iterable[NodeWithScore],
        ledgers: Sequence[Ledger] = (),
        parts_of: Callable[[NodeWithScore], Sequence[NodeWithScore]] = lambda _: (),
    ) -> Pack:
        """Admit what fits, in rank order; each candidate is first trimmed against what is admitted so far.

        A passage that does not fit is taken apart, and its parts wait for their turn by rank.
        """
        pack = Pack()
        blocks = BlockCounter(self.renderer, self.counter, self.sizes)
        used, stopped = 0, False
        numbers = itertools.count()
        waiting = sorted([(rank_of(candidate), next(numbers), candidate) for candidate in candidates])
        if self._counts_all and not ledgers:
            blocks.prepare([candidate for _, _, candidate in waiting])
        # Parts are put in behind the place that this has come to.
        for place, (_, _, candidate) in enumerate(waiting, start=1):
            after, twins = candidate, _NONE
            if ledgers:
                cut = trim_by_all(candidate, ledgers)
                if cut.after is None:
                    pack.rejected.append(_repeated(candidate, cut))
                    continue
                after, twins = cut.after, tuple(cut.twins)
            rejection, size = self._judge(after, blocks, len(pack.admitted), used, stopped=stopped)
            if rejection is not None:
                parts = self._parts(candidate, rejection, pack, parts_of, stopped=stopped)
                for part in parts:
                    bisect.insort(waiting, (rank_of(part), next(numbers), part), lo=place)
                if parts:
                    continue
                pack.rejected.append(rejection)
                stopped = stopped or rejection.final
                continue
            used += size
            pack.admitted.append(Admission(scored=after, came=candidate, twins=twins))
            for ledger in ledgers:
                ledger.admit(after, candidate)
        return pack

    @property
    def _counts_all(self) -> bool:
        """True where each candidate is counted, whatever becomes of those before it."""
        return bool(self.rooms) and self.top_n is None and self.on_oversize == "skip"

    def _parts(
        self,
        candidate: NodeWithScore,
        rejection: Rejection,
        pack: Pack,
        parts_of: Callable[[NodeWithScore], Sequence[NodeWithScore]],
        *,
        stopped: bool,
    ) -> Sequence[NodeWithScore]:
        """Take a passage that is too large apart, once: its best part has its slot."""
        slot = slot_of(candidate)
        if rejection.reason != "over_budget" or stopped or slot in pack.split:
            return ()
        parts = parts_of(candidate)
        if parts:
            pack.split.add(slot)
        return parts

    def _judge(
        self, scored: NodeWithScore, blocks: BlockCounter, place: int, used: int, *, stopped: bool
    ) -> tuple[Rejection | None, int]:
        """Return what speaks against a node, and its size in plain tokens."""
        if blocks.is_blank(scored):
            return Rejection(scored=scored, reason="empty_text"), 0
        if self.top_n is not None and place >= self.top_n:
            return Rejection(scored=scored, reason="top_n", value=place, limit=self.top_n, final=True), 0
        if stopped:
            return Rejection(scored=scored, reason="over_budget", final=True), 0
        if not self.rooms:
            return None, 0
        size = blocks.tokens(scored, place)
        fits = all(room.fits(used + size) for room in self.rooms)
        return None if fits else self._over(scored, size, used), size

    def _over(self, scored: NodeWithScore, size: int, used: int) -> Rejection:
        """Report a node that does not fit, by the limit that is exceeded most."""
        tightest = min(self.rooms, key=lambda room: room.left(used + size))
        left = tightest.left(used)
        needed = left - tightest.left(used + size)
        stops = self.on_oversize == "stop"
        return Rejection(scored=scored, reason="over_budget", value=needed, limit=left, final=stops)


def _repeated(candidate: NodeWithScore, cut: Cut) -> Rejection:
    repeated, twin = sum(cut.twins.values()), next(iter(cut.twins))
    return Rejection(scored=candidate, reason="duplicate", value=repeated, twin=twin)
