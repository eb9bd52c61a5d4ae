"""Wait for something that may never return, no longer than it may take."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_for"]

T = TypeVar("T")


def wait_for(run: Callable[[], T], seconds: float, name: str) -> T | None:
    """Run in a thread, in the caller's context, and return what comes of it; None where it takes longer or raises.

    The thread is left behind then; it keeps no program from ending.
    """
    found: list[T] = []
    here = contextvars.copy_context()
    thread = threading.Thread(target=lambda: found.append(here.run(run)), name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None
