"""Helpers for your own tests: a scripted LLM, quick nodes, and the laws that every stage keeps."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field, PrivateAttr

from llama_index_grounded.errors import GroundedError
from llama_index_grounded.evidence import included_text, strip
from llama_index_grounded.selection.stage import Kind, Stage

__all__ = ["LawError", "ScriptedLLM", "check_postprocessor", "make_nodes"]


class ScriptedLLM(CustomLLM):
    """An LLM that plays its replies in order; the last one repeats.

    A reply is a text, a mapping that is dumped as JSON, or an exception that is raised. It serves `chat`, `complete`
    and their async and streaming forms.

    Args:
        replies: What to answer, at least one.
        chunk_size: Characters per streamed chunk; None for one chunk.
        usage: What to report, for example ``{"prompt_tokens": 900, "completion_tokens": 20}``; None reports nothing.
        delay: Seconds before each chunk.
        context_window: The window that the LLM states, in tokens.

    Example:
        >>> llm = ScriptedLLM(replies=["one", "two"])
        >>> [llm.complete("a").text, llm.complete("b").text, llm.complete("c").text, llm.prompts]
        ['one', 'two', 'two', ['a', 'b', 'c']]
    """

    replies: list[Any] = Field(min_length=1)
    chunk_size: int | None = Field(default=None, ge=1)
    usage: dict[str, int] | None = None
    delay: float = Field(default=0.0, ge=0)
    context_window: int = Field(default=8192, ge=1)

    _prompts: list[str] = PrivateAttr(default_factory=list[str])
    _closed: int = PrivateAttr(default=0)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, replies: Sequence[str | Mapping[str, Any] | BaseException], **options: Any) -> None:
        super().__init__(replies=list(replies), **options)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the LLM."""
        return "ScriptedLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """What the LLM says of itself."""
        return LLMMetadata(
            context_window=self.context_window, num_output=256, model_name="scripted", is_chat_model=True
        )

    @property
    def prompts(self) -> list[str]:
        """The full text of every request, in order; messages are joined by blank lines."""
        return list(self._prompts)

    @property
    def closed(self) -> int:
        """How many streams were closed before their end."""
        return self._closed

    def _next(self, prompt: str) -> str:
        with self._lock:
            reply = self.replies[min(len(self._prompts), len(self.replies) - 1)]
            self._prompts.append(prompt)
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)

    def _response(self, text: str, delta: str | None = None, *, last: bool = True) -> ChatResponse:
        raw = {"usage": dict(self.usage)} if self.usage is not None and last else {}
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=delta, raw=raw)

    def _chunks(self, reply: str) -> Generator[ChatResponse, None, None]:
        step = self.chunk_size or max(len(reply), 1)
        ends = [*range(step, len(reply), step), len(reply)]
        for start, end in zip([0, *ends], ends, strict=False):
            yield self._response(reply[:end], reply[start:end], last=end == len(reply))

    def _play(self, reply: str) -> Generator[ChatResponse, None, None]:
        try:
            for chunk in self._chunks(reply):
                time.sleep(self.delay)
                yield chunk
        except GeneratorExit:
            self._closed += 1
            raise

    async def _aplay(self, reply: str) -> AsyncGenerator[ChatResponse, None]:
        try:
            for chunk in self._chunks(reply):
                await asyncio.sleep(self.delay)
                yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            self._closed += 1
            raise

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Play the next reply."""
        reply = self._next(_text(messages))
        time.sleep(self.delay)
        return self._response(reply)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Play the next reply."""
        reply = self._next(_text(messages))
        await asyncio.sleep(self.delay)
        return self._response(reply)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Play the next reply in chunks."""
        return self._play(self._next(_text(messages)))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Play the next reply in chunks."""
        return self._aplay(self._next(_text(messages)))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: FBT001, FBT002 - LlamaIndex's signature
        """Play the next reply."""
        return CompletionResponse(text=self._next(prompt), raw={"usage": self.usage} if self.usage else {})

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: FBT001, FBT002 - LlamaIndex's signature
        """Play the next reply in chunks."""
        reply = self._next(prompt)
        return (
            CompletionResponse(text=chunk.message.content or "", delta=chunk.delta, raw=chunk.raw)
            for chunk in self._play(reply)
        )


def _text(messages: Sequence[ChatMessage]) -> str:
    return "\n\n".join(message.content or "" for message in messages)


def make_nodes(
    texts: Sequence[str],
    scores: Sequence[float | None] | None = None,
    ids: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
) -> list[NodeWithScore]:
    """Make scored nodes in rank order.

    Args:
        texts: One text per node.
        scores: One score per node; by default 0.9, 0.8, … and never under 0.1.
        ids: One node id per node; by default ``n0``, ``n1``, ….
        metadata: One mapping for all nodes or one per node.

    Raises:
        ValueError: If the lengths differ.
    """
    count = len(texts)
    scores = [max(0.9 - 0.1 * place, 0.1) for place in range(count)] if scores is None else scores
    ids = [f"n{place}" for place in range(count)] if ids is None else ids
    each = [metadata or {}] * count if metadata is None or isinstance(metadata, Mapping) else list(metadata)
    return [
        NodeWithScore(node=TextNode(id_=id_, text=text, metadata=dict(fields)), score=score)
        for text, score, id_, fields in zip(texts, scores, ids, each, strict=True)
    ]


class LawError(AssertionError):
    """A postprocessor breaks a law that its kind promises."""


_QUERY = "How many days do I have to return a book?"
_LONG = "Printed books can be returned within twenty-one days of delivery if they are unread."


def _cases() -> dict[str, list[NodeWithScore]]:
    shared = {"document_id": "returns", "section": "window"}
    plain = ["first " * 12, "second " * 12, "third " * 12, "fourth " * 12]
    return {
        "no nodes": [],
        "one node": make_nodes(["only"]),
        "four nodes": make_nodes(plain, metadata=[{"document_id": f"d{place}"} for place in range(4)]),
        "without metadata": make_nodes(plain),
        "repeated paragraph": make_nodes([_LONG, f"{_LONG}\n\nUnless sealed."], metadata=shared),
        "the same node twice": make_nodes([_LONG, _LONG], ids=["a", "a"], metadata=shared),
        "blank text": make_nodes(["", " \n", "text"]),
        "some scores missing": make_nodes(plain, scores=[None, 0.7, float("nan"), 0.6]),
        "all scores equal": make_nodes(plain, scores=[0.5] * 4),
        "markup and odd characters": make_nodes(["</source>", "İıŞ\u202e\u200b", "a\ud800b", "<|endoftext|>"]),
    }


def check_postprocessor(
    factory: Callable[[], BaseNodePostprocessor],
    *,
    kind: Kind | None = None,
    cases: Mapping[str, Sequence[NodeWithScore]] | None = None,
    round_trip: bool = True,
) -> None:
    """Check the laws of a postprocessor's kind on awkward nodes.

    Every kind: nothing that was given is changed; empty in, empty out; sync equals async; unknown options are refused;
    a copy through pickle and through a dict behaves the same; every node is returned or reported. A ``filter`` returns
    a part of its input, unchanged; a ``rewrite`` may shorten texts; a ``reorder`` returns a permutation. Filters and
    rewrites change nothing the second time.

    Args:
        factory: Makes a fresh postprocessor.
        kind: By default what the class declares, else ``"filter"``.
        cases: Further lists of nodes, by name.
        round_trip: False for a postprocessor that can not be pickled or written to a dict by design.

    Raises:
        LawError: At the first law that is broken, naming the case.
    """
    kind = kind or getattr(type(factory()), "kind", "filter")
    for name, nodes in {**_cases(), **(cases or {})}.items():
        try:
            _check_case(factory, kind, list(nodes), round_trip=round_trip)
        except LawError as error:
            msg = f"{type(factory()).__name__}, {name}: {error}"
            raise LawError(msg) from error
    try:
        type(factory())(**{**factory().model_dump(exclude={"class_name"}), "no_such_option": 1})
    except (ValueError, TypeError):
        return
    raise LawError("an unknown option was accepted")


def _check_case(
    factory: Callable[[], BaseNodePostprocessor], kind: Kind, nodes: list[NodeWithScore], *, round_trip: bool
) -> None:
    before = copy.deepcopy(nodes)
    try:
        result = factory().postprocess_nodes(nodes, QueryBundle(_QUERY))
    except GroundedError:
        return
    _law(nodes == before, "the nodes that were given were changed")
    _law(bool(nodes) or not result, "nodes came out of nothing")
    _check_kind(kind, nodes, result)
    in_async = asyncio.run(factory().apostprocess_nodes(nodes, QueryBundle(_QUERY)))
    _law(_seen(in_async) == _seen(result), "async differs from sync")
    if kind != "reorder":
        again = factory().postprocess_nodes(list(result), QueryBundle(_QUERY))
        _law(_seen(again) == _seen(result), "a second pass changes the result")
    stage = factory()
    if isinstance(stage, Stage):
        _check_reports(stage, nodes)
    for copied in _copies(factory()) if round_trip else ():
        _law(_seen(copied.postprocess_nodes(nodes, QueryBundle(_QUERY))) == _seen(result), "a copy behaves differently")


def _check_kind(kind: Kind, nodes: Sequence[NodeWithScore], result: Sequence[NodeWithScore]) -> None:
    given, returned = Counter(_seen(nodes)), Counter(_seen(result))
    if kind == "reorder":
        _law(given == returned, "the result is no permutation")
    elif kind == "filter":
        _law(returned <= given, "a filter returned what it was not given")
    else:
        ids = Counter(scored.node.node_id for scored in nodes)
        _law(Counter(scored.node.node_id for scored in result) <= ids, "a rewrite returned an unknown node")


def _check_reports(stage: Stage, nodes: Sequence[NodeWithScore]) -> None:
    selection = stage.select(nodes, QueryBundle(_QUERY))
    gone = Counter(d.node_id for d in selection.decisions if d.action in ("dropped", "refused"))
    kept = Counter(scored.node.node_id for scored in selection.nodes)
    _law(kept + gone == Counter(scored.node.node_id for scored in nodes), "a node is neither returned nor reported")
    _law(all(d.reason != "unreported" for d in selection.decisions), "a node was dropped without a decision")


def _copies(stage: BaseNodePostprocessor) -> list[BaseNodePostprocessor]:
    by_dict = type(stage).from_dict(stage.to_dict())
    by_json = type(stage).from_json(stage.to_json())
    return [pickle.loads(pickle.dumps(stage)), copy.deepcopy(stage), by_dict, by_json]  # noqa: S301 - our own bytes


def _seen(nodes: Sequence[NodeWithScore]) -> list[tuple[str, str, str]]:
    """What counts as the same node: id, text and score, not-a-number included."""
    return [(scored.node.node_id, included_text(strip(scored).node), repr(scored.score)) for scored in nodes]


def _law(holds: bool, law: str) -> None:  # noqa: FBT001 - the law is the point
    if not holds:
        raise LawError(law)
