"""One event loop in a thread of its own, for clients that can live in one loop only.

An evaluator keeps its model's async client, which belongs to the loop of its first call. Whatever calls it, from
threads, from other loops or without any, it runs here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["arun_here", "run_here"]

T = TypeVar("T")

_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def run_here(make: Callable[[], Coroutine[Any, Any, T]], seconds: float | None) -> T:
    """Run a coroutine and wait for it, in the caller's context.

    Raises:
        TimeoutError: If it takes longer; it is cancelled then.
    """
    future = _submit(make)
    try:
        return future.result(seconds)
    except concurrent.futures.TimeoutError:
        raise TimeoutError from None
    finally:
        future.cancel()


async def arun_here(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and await it; a cancellation reaches it."""
    return await asyncio.wrap_future(_submit(make))


def _submit(make: Callable[[], Coroutine[Any, Any, T]]) -> concurrent.futures.Future[T]:
    loop = _loop()
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def start() -> None:
        task = loop.create_task(make())
        task.add_done_callback(lambda done: _pass_on(done, future))
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(task.cancel))

    loop.call_soon_threadsafe(start, context=contextvars.copy_context())
    return future


def _pass_on(task: asyncio.Task[T], future: concurrent.futures.Future[T]) -> None:
    if future.done():  # given up; what the task brought is of no use
        if not task.cancelled():
            task.exception()
    elif task.cancelled():
        future.cancel()
    elif error := task.exception():
        future.set_exception(error)
    else:
        future.set_result(task.result())


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            # A daemon: an evaluator that never returns must not keep the program from ending.
            threading.Thread(target=loop.run_forever, name="evaluators", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
