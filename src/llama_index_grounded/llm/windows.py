"""The context window of an LLM: what its user set, or what its server tells where nothing was set.

An Ollama without a window asks its server, and LlamaIndex then notes the answer on the object, as if it had been set.
What was seen unset, and what was told, is remembered here instead, for as long as the LLM object lives.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llama_index_grounded.llm import clients

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

__all__ = ["UNSET_WINDOW", "chooses_its_own_window", "is_ollama", "must_ask", "note_unset", "window_of"]

UNSET_WINDOW = (
    "Ollama was given no context_window, so the model's whole context length is sent as num_ctx; "
    "set context_window to what the machine can hold"
)
_OLLAMA_MODULE = "llama_index.llms.ollama"
_UNSET = -1


@dataclass(slots=True)
class _Seen:
    """An LLM that was seen without a window."""

    llm: weakref.ref[LLM]
    told: int | None = None
    """What its server said, once it was asked."""


_seen: dict[int, _Seen] = {}
"""By the id of the LLM: the objects are equal by value, and have no hash."""


def window_of(llm: LLM, seconds: float | None = None) -> int:
    """Return the model's context window in tokens; for Ollama the ``num_ctx`` that will be sent.

    Args:
        llm: The model.
        seconds: How long to wait for an Ollama server that has to be asked.
    """
    if not is_ollama(llm):
        return llm.metadata.context_window
    chosen = getattr(llm, "additional_kwargs", {}).get("num_ctx")
    if isinstance(chosen, int):
        return chosen
    seen = _unset(llm)
    if seen is None:
        return llm.metadata.context_window
    if seen.told is None:
        asking = llm.model_copy(update={"context_window": _UNSET})
        clients.limit_ollama(llm, asking, seconds)
        seen.told = asking.metadata.context_window
    own = _own(llm)
    return seen.told if own == _UNSET else own


def chooses_its_own_window(llm: LLM) -> bool:
    """Tell an Ollama that was given no window: the server's whole context length will be sent as ``num_ctx``.

    One whose window was noted on the object before it came here looks like one with a window.
    """
    return is_ollama(llm) and "num_ctx" not in getattr(llm, "additional_kwargs", {}) and _unset(llm) is not None


def must_ask(llm: LLM) -> bool:
    """Tell an Ollama whose server has to be asked for the window, which takes time."""
    seen = _unset(llm) if chooses_its_own_window(llm) else None
    return seen is not None and seen.told is None


def note_unset(llm: LLM) -> None:
    """Remember an Ollama without a window, before somebody else asks for it and it looks like one that was set."""
    if is_ollama(llm):
        _unset(llm)


def is_ollama(llm: object) -> bool:
    """Tell LlamaIndex's class for Ollama, and what is built on it, without importing it."""
    return any(base.__module__.startswith(_OLLAMA_MODULE) for base in type(llm).__mro__)


def _unset(llm: LLM) -> _Seen | None:
    """Return what is known of an LLM without a window of its user's; None for one that has one."""
    seen = _seen.get(id(llm))
    if seen is not None and seen.llm() is not llm:
        seen = None
    if seen is None and _own(llm) == _UNSET:
        place = id(llm)
        seen = _seen[place] = _Seen(weakref.ref(llm, lambda _: _forget(place)))
    # Another number than the server's was set by the user in the meantime.
    changed = seen is not None and seen.told is not None and _own(llm) not in (_UNSET, seen.told)
    return None if changed else seen


def _forget(place: int) -> None:
    _seen.pop(place, None)


def _own(llm: LLM) -> int:
    return getattr(llm, "context_window", 0)
