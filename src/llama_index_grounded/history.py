"""The turns of a conversation that go into a prompt: never evidence, never larger than the room that they are given.

Place: before the query; a `ChatQuery` carries them through the engine, so that the budget counts them and the
synthesizer shows them. Memory is LlamaIndex's: its buffers decide what is remembered, this decides what fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.schema import QueryBundle

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import Renderer, XmlRenderer, clean
from llama_index_grounded.text.case import bare
from llama_index_grounded.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index.core.memory import BaseMemory

    _Order = Callable[[Sequence[Sequence[ChatMessage]]], Iterable[int]]

__all__ = ["ChatQuery", "from_memory", "history_of", "recent_turns", "relevant_turns"]

_WORD = re.compile(r"\w{3,}")
_SHOWN = frozenset({MessageRole.USER, MessageRole.ASSISTANT, MessageRole.SYSTEM})
_LAST = 1


def _written(history: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    return [message.model_dump(mode="json") for message in history]


def _read(history: Iterable[Any]) -> tuple[ChatMessage, ...]:
    return tuple(map(ChatMessage.model_validate, history))


@dataclass
class ChatQuery(QueryBundle):
    """A question together with the earlier turns that the model is to see.

    An engine that makes a new query of it, such as ``TransformQueryEngine``, loses the turns: transform the query in
    the retriever, with a ``TransformRetriever``.

    Example:
        >>> query = ChatQuery("And for e-books?", history=(ChatMessage(role="user", content="How long for books?"),))
        >>> query.query_str, len(query.history)
        ('And for e-books?', 1)
    """

    # The dataclasses of LlamaIndex go through dataclasses-json, which can not write messages by itself.
    history: Sequence[ChatMessage] = field(
        default=(), metadata={"dataclasses_json": {"encoder": _written, "decoder": _read}}
    )
    """Earlier messages, oldest first; what stands in them is shown as conversation, never as a source."""


def history_of(query: QueryBundle) -> tuple[ChatMessage, ...]:
    """Return the earlier messages that a query carries; none for a plain one."""
    return tuple(query.history) if isinstance(query, ChatQuery) else ()


def recent_turns(
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    counter: TokenCounter | None = None,
    renderer: Renderer | None = None,
) -> list[ChatMessage]:
    """Keep the latest turns, whole, up to the first that does not fit: a user's message and what follows it.

    Args:
        messages: Oldest first. Messages of tools are left out.
        max_tokens: Most tokens of all that is kept.
        counter: The synthesizer's, so that the same is counted; by default LlamaIndex's tokenizer setting.
        renderer: The synthesizer's: turns are counted with the escapes under which they will stand in the prompt; by
            default `XmlRenderer`.
    """
    newest_first: _Order = lambda turns: range(len(turns) - 1, -1, -1)  # noqa: E731 - its type stands beside it
    return _packed(_turns(messages), max_tokens, _size(counter, renderer), newest_first, gaps=False)


def relevant_turns(
    messages: Sequence[ChatMessage],
    question: str,
    *,
    max_tokens: int,
    counter: TokenCounter | None = None,
    renderer: Renderer | None = None,
) -> list[ChatMessage]:
    """Keep the last turn and the earlier turns that share words with the question, as many as fit, in their order.

    Words of three letters and more count, without case and marks: "İADE" is "iade".

    Args:
        messages: Oldest first. Messages of tools are left out.
        question: What is asked now.
        max_tokens: Most tokens of all that is kept.
        counter: See `recent_turns`.
        renderer: See `recent_turns`.

    Example:
        >>> talk = [
        ...     ChatMessage(role=role, content=text)
        ...     for role, text in [
        ...         ("user", "May I return books?"), ("assistant", "Within 21 days."),
        ...         ("user", "Where is my parcel?"), ("assistant", "On its way."),
        ...         ("user", "Thanks."), ("assistant", "You are welcome."),
        ...     ]
        ... ]
        >>> [message.content for message in relevant_turns(talk, "And return e-books?", max_tokens=100)]
        ['May I return books?', 'Within 21 days.', 'Thanks.', 'You are welcome.']
    """
    asked = _words(question)

    def by_relevance(turns: Sequence[Sequence[ChatMessage]]) -> Iterable[int]:
        shared = [len(asked & _words(" ".join(map(_text, turn)))) for turn in turns]
        last = max(len(turns) - _LAST, 0)
        earlier = sorted((place for place in range(last) if shared[place]), key=lambda at: (-shared[at], -at))
        return [*range(last, len(turns)), *earlier]

    return _packed(_turns(messages), max_tokens, _size(counter, renderer), by_relevance, gaps=True)


def from_memory(
    memory: BaseMemory,
    question: str,
    *,
    max_tokens: int,
    counter: TokenCounter | None = None,
    renderer: Renderer | None = None,
) -> list[ChatMessage]:
    """Take what a memory of LlamaIndex remembers (a buffer, a summary), and of that the latest turns that fit."""
    remembered = memory.get(input=question)
    return recent_turns(remembered, max_tokens=max_tokens, counter=counter, renderer=renderer)


def _turns(messages: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    turns: list[list[ChatMessage]] = []
    for message in messages:
        if message.role not in _SHOWN or not _text(message).strip():
            continue
        if message.role is not MessageRole.ASSISTANT or not turns:
            turns.append([])
        turns[-1].append(message)
    return turns


@dataclass(frozen=True, slots=True)
class _Size:
    """Counts turns as they will stand in a prompt."""

    counter: TokenCounter
    renderer: Renderer

    def tokens(self, turn: Iterable[ChatMessage]) -> int:
        return sum(self.counter.tokens(self.renderer.escape(clean(_text(message)))) for message in turn)


def _size(counter: TokenCounter | None, renderer: Renderer | None) -> _Size:
    return _Size(
        TokenCounter.default() if counter is None else counter, XmlRenderer() if renderer is None else renderer
    )


def _packed(
    turns: Sequence[Sequence[ChatMessage]], max_tokens: int, size: _Size, order: _Order, *, gaps: bool
) -> list[ChatMessage]:
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"max_tokens must be a whole number of at least 0, not {max_tokens!r}")
    kept: list[int] = []
    used = 0
    for place in order(turns):
        more = size.tokens(turns[place])
        if size.counter.estimate(used + more) <= max_tokens:
            kept.append(place)
            used += more
        elif not gaps:
            break
    return [message for place in sorted(kept) for message in turns[place]]


def _text(message: ChatMessage) -> str:
    return message.content or ""


def _words(text: str) -> set[str]:
    return set(_WORD.findall(bare(text)))
