"""What outlives a query inside of the package: caches of functions, and containers of modules and classes."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["cached_texts"]

PACKAGE = "llama_index_grounded"
_CACHE = type(functools.lru_cache(maxsize=1)(lambda: None))


def cached_texts() -> list[str]:
    """Collect every text that a cache or a container of the package holds, in the keys and in the values."""
    roots = list(_roots())  # All at once: a list that is gone would lend its id to the next one.
    seen: set[int] = set()
    return [text for root in roots for text in _texts(root, seen)]


def _roots() -> Iterator[object]:
    for each in gc.get_objects():
        if isinstance(each, _CACHE) and str(getattr(each, "__module__", "")).startswith(PACKAGE):
            # The wrapped function leads to its whole module; the rest is what was asked and answered.
            yield [part for part in gc.get_referents(each) if not callable(part) and part is not vars(each)]
    for name, module in list(sys.modules.items()):
        if name.startswith(PACKAGE):
            for value in list(vars(module).values()):
                yield value if _holds_things(value) else None
                if isinstance(value, type) and value.__module__ == name:
                    yield [part for part in vars(value).values() if _holds_things(part)]


def _holds_things(value: object) -> bool:
    return isinstance(value, (dict, list, set)) or hasattr(value, "maxlen")


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    """Walk containers, and objects by their attributes."""
    if isinstance(value, (str, bytes)):
        yield value if isinstance(value, str) else value.decode(errors="replace")
        return
    if id(value) in seen or isinstance(value, type) or callable(value):
        return
    seen.add(id(value))
    if isinstance(value, dict):
        parts: list[Any] = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    else:
        slots = [getattr(value, slot, None) for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
        parts = [*getattr(value, "__dict__", {}).values(), *slots]
    for part in parts:
        yield from _texts(part, seen)
