"""Ask a model one question about evidence and get a filled-in Pydantic model, or why there is none.

For judges: gates, conflicts, groundedness. There is one call, no retry; nothing that a provider does raises.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from pydantic import BaseModel

from llama_index_grounded.llm.call import AsyncModelStream, Call, Deadline, Fault, ModelStream, within
from llama_index_grounded.llm.providers import SCHEMA_BESIDE, structured_by
from llama_index_grounded.llm.structured import InvalidReplyError, read_reply, schema_of
from llama_index_grounded.llm.waiting import wait_for
from llama_index_grounded.llm.windows import window_of
from llama_index_grounded.schema import Usage
from llama_index_grounded.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from llama_index_grounded.llm.reply import Reply

__all__ = ["Asked", "aask", "ask"]

Model = TypeVar("Model", bound=BaseModel)

_logger = logging.getLogger(__name__)
_MOST_OUTPUT = 1024
_GRACE = 0.1
"""Seconds in which a client that keeps to its time can still say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Model]):
    """What one call brought."""

    value: Model | None
    why: str = ""
    """Why there is no value; safe to show."""
    calls: int = 1
    """0 where the judge could not be asked."""
    usage: Usage


def ask(
    llm: LLM,
    messages: Sequence[ChatMessage],
    output_cls: type[Model],
    *,
    seconds: float | None = None,
    num_output: int = _MOST_OUTPUT,
) -> Asked[Model]:
    """Make one call and read its reply.

    Args:
        llm: The judge.
        messages: What to ask; documents in it must be escaped already.
        output_cls: What the judge fills in.
        seconds: How long to wait; None for no deadline.
        num_output: Most tokens of the reply.
    """
    deadline, sent = Deadline(seconds), list[Call]()

    def run() -> Asked[Model]:
        call = _prepared(llm, messages, output_cls, num_output, deadline)
        if isinstance(call, Asked):
            return call
        sent.append(call)
        return _asked(_listen(llm, call, deadline), call, output_cls)

    if seconds is None:
        return run()
    # Not every client can be told how long it may take.
    return wait_for(run, seconds + _GRACE, "judge") or _late(sent)


def _listen(llm: LLM, call: Call, deadline: Deadline) -> Reply | Fault:
    stream = ModelStream(llm, call, deadline)
    try:
        while isinstance(step := stream.next(), str):
            pass
    finally:
        stream.close()
    return step


def _late(sent: Sequence[Call]) -> Asked[Any]:
    why = "the judge did not answer in its time"
    _logger.error("no judgement: %s", why)
    return Asked(value=None, why=why, calls=len(sent), usage=_usage(sent[0], None, None) if sent else Usage())


async def aask(
    llm: LLM,
    messages: Sequence[ChatMessage],
    output_cls: type[Model],
    *,
    seconds: float | None = None,
    num_output: int = _MOST_OUTPUT,
) -> Asked[Model]:
    """Make one call and read its reply; see `ask`. A cancellation reaches the model."""
    deadline = Deadline(seconds)
    try:
        # It may ask the model's server for the window, which must not hold up the loop.
        call = await within(
            asyncio.to_thread(_prepared, llm, messages, output_cls, num_output, deadline), deadline.left
        )
    except TimeoutError:
        return _late([])
    if isinstance(call, Asked):
        return call
    stream = AsyncModelStream(llm, call, deadline)
    try:
        while isinstance(step := await stream.next(), str):
            pass
    finally:
        await stream.close()
    return _asked(step, call, output_cls)


def _prepared(
    llm: LLM, messages: Sequence[ChatMessage], output_cls: type[BaseModel], num_output: int, deadline: Deadline
) -> Call | Asked[Any]:
    """Write the call, or say why the judge can not be asked."""
    try:
        window = window_of(llm, deadline.left)
        call = replace(_call(llm, messages, output_cls, num_output), window=window)
        room = max(window - num_output, 0)
    except Exception as error:
        _logger.error("no judgement: the judge can not be asked", exc_info=error)  # noqa: TRY400 - the error is passed
        why = f"the judge can not be asked ({type(error).__name__})"
    else:
        used = TokenCounter.default().count("\n".join(message.content or "" for message in call.messages))
        if used <= room:
            return call
        why = f"the question takes {used} tokens, the judge's window has {room}"
    return Asked(value=None, why=why, calls=0, usage=Usage())


def _call(llm: LLM, messages: Sequence[ChatMessage], output_cls: type[BaseModel], num_output: int) -> Call:
    kind, schema = structured_by(llm, "auto"), schema_of(output_cls)
    if kind == "prompt":
        form = f"Answer with one JSON object of this form and nothing else:\n{json.dumps(schema, ensure_ascii=False)}"
        messages = [*messages, ChatMessage(role=MessageRole.USER, content=form)]
    system = [ChatMessage(role=MessageRole.SYSTEM, content=llm.system_prompt)] if llm.system_prompt else []
    return Call(messages=[*system, *messages], num_output=num_output, kind=kind, schema=schema, output_cls=output_cls)


def _asked(reply: Reply | Fault, call: Call, output_cls: type[Model]) -> Asked[Model]:
    if isinstance(reply, Fault):
        _logger.error("no judgement: %s", reply.detail, exc_info=reply.error)
        usage = _usage(call, None, None) if reply.called else Usage()
        return Asked(value=None, why=reply.detail, calls=int(reply.called), usage=usage)
    usage = _usage(call, reply.prompt_tokens, reply.completion_tokens)
    try:
        return Asked(value=read_reply(reply.text, output_cls), usage=usage)
    except InvalidReplyError as error:
        limit = ": the model reached its output limit" if reply.cut_off else ""
        return Asked(value=None, why=f"{error}{limit}", usage=usage)


def _usage(call: Call, prompt_tokens: int | None, completion_tokens: int | None) -> Usage:
    """Put what the provider reported beside our own count of what was sent."""
    texts = [message.content or "" for message in call.messages]
    if call.kind in SCHEMA_BESIDE:
        texts.append(json.dumps(call.schema, ensure_ascii=False))
    sent = sum(map(TokenCounter.default().tokens, texts))
    return Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, estimated_prompt_tokens=sent)
