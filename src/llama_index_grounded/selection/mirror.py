"""Where the trail of a query is kept while a foreign postprocessor has the nodes: on the query bundle.

One bundle may serve several queries, one after the other or at a time. Stamped nodes name the run that they belong to;
where none is left, the origin tells: the task or thread that works on the query, the engine's span, and the events of
LlamaIndex's callbacks in which the engine is: every query of an engine is one.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.callbacks.base import global_stack_trace
from llama_index.core.instrumentation.span import active_span_id

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle

    from llama_index_grounded.selection.trail import Trail

__all__ = ["Entry", "Mirror", "calling_events", "calling_span", "carried_origin"]

_ATTRIBUTE = "_llama_index_grounded"
# A synthesizer of ours takes its trail away; the limit is for bundles that only others use up. The last run of a living
# task or thread may still go on, and is kept beyond it: there are never more of them than tasks and threads.
_MOST_RUNS = 256


class _Origin(NamedTuple):
    lane: object
    """The task or thread."""
    span: str | None
    """LlamaIndex's name for the engine call that is running; None outside of any."""
    events: tuple[str, ...]
    """LlamaIndex's names for the events that have begun and not ended, the outermost first."""


_carried: ContextVar[_Origin | None] = ContextVar("llama_index_grounded_origin", default=None)


@contextmanager
def carried_origin() -> Generator[None, None, None]:
    """Let what runs inside, spans and worker threads included, count as called from here."""
    token = _carried.set(_here())
    try:
        yield
    finally:
        _carried.reset(token)


def calling_span() -> str | None:
    """Return the span of the engine that calls a stage; None for a stage that is called by hand."""
    return _origin().span


def calling_events() -> tuple[str, ...]:
    """Return the events in which a stage or synthesizer is called, the outermost first; one of them is the query's."""
    return _origin().events


class Entry(NamedTuple):
    """How far a run has come, and where."""

    lane: weakref.ref[object]
    span: str | None
    events: tuple[str, ...]
    trail: Trail


class Mirror:
    """The trails of the runs that use one query bundle. Copies and pickles of the bundle begin with an empty one."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._limit = _MOST_RUNS

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
        """Remember how far a run has come."""
        origin = _origin()
        self._entries.pop(trail.run, None)
        self._entries[trail.run] = Entry(weakref.ref(origin.lane), origin.span, origin.events, trail)
        if len(self._entries) > self._limit:
            self._forget()

    def _forget(self) -> None:
        """Forget the oldest runs that can not go on, and look again when there are twice as many."""
        entries = list(self._entries.items())
        last = {id(lane): run for run, entry in entries if not _has_ended(lane := entry.lane())}
        running = set(last.values())
        stale = [run for run, _ in entries if run not in running]
        for run in stale[: max(0, len(entries) - _MOST_RUNS)]:
            self._entries.pop(run, None)
        self._limit = _MOST_RUNS if len(running) < _MOST_RUNS else 2 * len(running)

    def release(self, run: int) -> None:
        """Forget a run that has ended."""
        self._entries.pop(run, None)

    def trail_of(self, run: int) -> Trail | None:
        """Return the trail of a run."""
        entry = self._entries.get(run)
        return None if entry is None else entry.trail

    def here(self) -> Entry | None:
        """Return the latest entry of this task or thread, else the only one there is if its own has ended.

        A task or thread that still runs may be another query, so its trail is never taken.
        """
        entries = list(self._entries.values())
        lane = _origin().lane
        own = [entry for entry in entries if entry.lane() is lane]
        if own:
            return own[-1]
        return entries[0] if len(entries) == 1 and _has_ended(entries[0].lane()) else None


def _origin() -> _Origin:
    return _carried.get() or _here()


def _here() -> _Origin:
    return _Origin(_lane(), active_span_id.get(), tuple(global_stack_trace.get()))


def _lane() -> object:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread() if task is None else task


def _has_ended(lane: object) -> bool:
    if isinstance(lane, asyncio.Task):
        return lane.done()
    return not (isinstance(lane, threading.Thread) and lane.is_alive())
