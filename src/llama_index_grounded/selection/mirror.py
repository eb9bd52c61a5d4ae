"""Where the trail of a query is kept while a foreign postprocessor has the nodes: on the query bundle.

One bundle may serve several queries at a time. Stamped nodes name the run that they belong to; where none is left, the
lane tells: the task or thread that works on the query.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

    from llama_index_grounded.selection.trail import Trail

__all__ = ["Mirror", "carried_lane"]

_ATTRIBUTE = "_llama_index_grounded"
# A synthesizer of ours takes its trail away; the limit is for bundles that only others use up.
_MOST_RUNS = 256
_carried: ContextVar[object | None] = ContextVar("llama_index_grounded_lane", default=None)


@contextmanager
def carried_lane() -> Generator[None, None, None]:
    """Let worker threads that are started inside count as the task that starts them."""
    token = _carried.set(_lane())
    try:
        yield
    finally:
        _carried.reset(token)


class Mirror:
    """The trails of the runs that use one query bundle. Copies and pickles of the bundle begin with an empty one."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[object], Trail]] = {}

    @classmethod
    def of(cls, bundle: QueryBundle) -> Mirror:
        """Return the mirror of a bundle."""
        attributes: dict[str, Any] = vars(bundle)
        mirror: Mirror = attributes.setdefault(_ATTRIBUTE, cls())
        return mirror

    def __reduce__(self) -> tuple[type[Mirror], tuple[()]]:
        """Keep weak references and whole documents out of copies and pickles."""
        return Mirror, ()

    def keep(self, trail: Trail) -> None:
        """Remember how far a run has come, and in which lane."""
        self._entries.pop(trail.run, None)
        self._entries[trail.run] = (weakref.ref(_lane()), trail)
        for stale in list(self._entries)[:-_MOST_RUNS]:
            self._entries.pop(stale, None)

    def release(self, run: int) -> None:
        """Forget a run that has ended."""
        self._entries.pop(run, None)

    def trail_of(self, run: int) -> Trail | None:
        """Return the trail of a run."""
        entry = self._entries.get(run)
        return None if entry is None else entry[1]

    def here(self) -> Trail | None:
        """Return the latest trail of this lane, else the only one there is if its lane has ended.

        Another lane that still runs may be another query, so its trail is never taken.
        """
        entries = list(self._entries.values())
        lane = _lane()
        own = [trail for owner, trail in entries if owner() is lane]
        if own:
            return own[-1]
        return entries[0][1] if len(entries) == 1 and _has_ended(entries[0][0]()) else None


def _lane() -> object:
    carried = _carried.get()
    if carried is not None:
        return carried
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread() if task is None else task


def _has_ended(lane: object) -> bool:
    if isinstance(lane, asyncio.Task):
        return lane.done()
    return not (isinstance(lane, threading.Thread) and lane.is_alive())
