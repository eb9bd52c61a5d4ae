"""How a test tells slow code from a busy machine, which only ever adds time: the fastest of some runs counts.

Time is that of the processor and of this thread, with the garbage collector off: what it looks through is all that
the other tests of the process left behind.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ROUNDS = 8


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail unless `work(4 * size)` takes about four times as long as `work(size)`; quadratic work takes sixteen times.

    `size` should be large enough for what grows to outweigh what does not.
    """
    work(size // 10)  # loads and compiles what the first call does
    small = min(_timed(lambda: work(size))[0] for _ in range(3))
    large = float("inf")
    for _ in range(ROUNDS):
        small = min(small, _timed(lambda: work(size))[0])
        large = min(large, _timed(lambda: work(4 * size))[0])
        if large < 8 * small:
            return
    raise AssertionError(f"{large:.4f} s for {4 * size}, {small:.4f} s for {size}: {large / small:.1f} times")


def assert_within(seconds: float, work: Callable[[], T]) -> T:
    """Fail unless `work` takes less than `seconds`; return what it returns."""
    took = []
    for _ in range(ROUNDS):
        needed, result = _timed(work)
        if needed < seconds:
            return result
        took.append(needed)
    raise AssertionError(f"{min(took):.3f} s where {seconds} s are allowed")


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    on = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        result = work()
        return time.thread_time() - start, result
    finally:
        if on:
            gc.enable()
