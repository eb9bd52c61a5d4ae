"""What the rules of an application have in common: they answer at once, with True itself, and a blank value is none."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, cast

from llama_index_grounded.errors import ConfigurationError

__all__ = ["is_blank", "is_true", "refuse_async"]

_UNSEEN = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols without a shape: fillers of Hangul and the Braille blank."""
_SHAPES = frozenset("LNPS")
_DEEPEST = 8


def refuse_async(predicate: object) -> None:
    """Refuse a function, or an object with a call, that only returns a coroutine.

    Raises:
        ConfigurationError: For one that is known as such; `is_true` finds the others.
    """
    asynchronous = (predicate, getattr(predicate, "__call__", None))  # noqa: B004 - the method, not whether there is one
    if any(map(inspect.iscoroutinefunction, asynchronous)):
        raise ConfigurationError("predicate must answer at once; an async function only returns a coroutine")


def is_true(predicate: Callable[[Any], object], argument: object) -> bool:
    """Ask a predicate, which must return True itself: 1, "yes" and other truthy values are a no.

    Raises:
        ConfigurationError: Where it returns something to await.
    """
    answer = predicate(argument)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()  # Python would warn that nobody has awaited it.
        raise ConfigurationError(f"predicate must answer at once; it returned a {type(answer).__name__} to await")
    return answer is True


def is_blank(value: object) -> bool:
    r"""Tell whether a value says nothing: None, not-a-number, a text without a visible character, or only such values.

    Example:
        >>> [is_blank(value) for value in ("\u200b ", [""], float("nan"), {}, 0, False, "x")]
        [True, True, True, True, False, False, False]
    """
    return _is_blank(value, _DEEPEST)


def _is_blank(value: object, deep: int) -> bool:
    if isinstance(value, str):
        return not any(unicodedata.category(char)[0] in _SHAPES and char not in _UNSEEN for char in value)
    if isinstance(value, bytes):
        return not value.strip()
    if isinstance(value, Mapping):
        value = list(cast("Mapping[object, object]", value).values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return deep == 0 or all(_is_blank(item, deep - 1) for item in cast("list[object]", value))
    return value is None or _is_no_number(value)


def _is_no_number(value: object) -> bool:
    """Tell not-a-number and not-a-time, which differ from themselves; what can not be compared at all is blank, too."""
    try:
        return bool(value != value)  # noqa: PLR0124 - this is the test for them
    except Exception:  # noqa: BLE001 - a signaling NaN, pandas' NA
        return True
