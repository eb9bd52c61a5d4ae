"""What an option may be, refused in the same words everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.errors import ConfigurationError

__all__ = [
    "need_able",
    "need_flag",
    "need_llm",
    "need_nodes",
    "need_one_of",
    "need_part",
    "need_seconds",
    "need_share",
    "need_whole",
]


def need_one_of(name: str, value: object, literal: Any) -> None:
    """Refuse what is none of the words of a ``Literal``.

    Example:
        >>> from typing import Literal
        >>> need_one_of("placement", "left", Literal["edges", "end"])
        Traceback (most recent call last):
        ...
        llama_index_grounded.errors.ConfigurationError: placement must be one of edges, end, not 'left'
    """
    if not isinstance(value, str) or value not in get_args(literal):
        msg = f"{name} must be one of {', '.join(get_args(literal))}, not {value!r}"
        raise ConfigurationError(msg)


def need_flag(name: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise ConfigurationError(msg)


def need_seconds(name: str, value: object) -> None:
    """Refuse what is no time; None stands for no limit."""
    if value is not None and not (_is_number(value) and 0 < cast("float", value) < math.inf):
        msg = f"{name} must be a positive number of seconds or None, not {value!r}"
        raise ConfigurationError(msg)


def need_share(name: str, value: object) -> None:
    """Refuse what does not lie between 0 and 1, both included."""
    if not (_is_number(value) and 0 <= cast("float", value) <= 1):
        msg = f"{name} must be a number from 0 to 1, not {value!r}"
        raise ConfigurationError(msg)


def need_whole(name: str, value: object, *, least: int) -> None:
    """Refuse what is no whole number, or too small a one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}, not {value!r}"
        raise ConfigurationError(msg)


def need_llm(value: object) -> None:
    """Refuse what is no model; None stands for that of ``Settings``."""
    need_part("llm", value, (LLM, type(None)), "an LLM of LlamaIndex")


def need_part(name: str, value: object, kind: type | tuple[type, ...], what: str) -> None:
    """Refuse a part of another kind.

    Example:
        >>> need_part("llm", "gpt-4", LLM, "an LLM of LlamaIndex")
        Traceback (most recent call last):
        ...
        llama_index_grounded.errors.ConfigurationError: llm must be an LLM of LlamaIndex, not str
    """
    if not isinstance(value, kind):
        raise _other(name, value, what)


def need_able(name: str, value: object, method: str, what: str) -> None:
    """Refuse a part that can not do what it is there for; LlamaIndex itself asks for no more than the method.

    A text can do much of what a list can, and is none.
    """
    if isinstance(value, (type, str, Mapping)) or not callable(getattr(value, method, None)):
        raise _other(name, value, what)


def need_nodes(nodes: Iterable[object]) -> None:
    """Refuse nodes that no retriever has handed out: bare ones have no score."""
    for scored in nodes:
        need_part("each of the nodes", scored, NodeWithScore, "a NodeWithScore")


def _other(name: str, value: object, what: str) -> ConfigurationError:
    # The kind alone: a part's own words may be those of documents or tenants.
    came = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return ConfigurationError(f"{name} must be {what}, not {came}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
