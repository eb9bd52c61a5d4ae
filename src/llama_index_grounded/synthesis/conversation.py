"""The course of one query with a model, without any I/O: it yields calls and is sent replies.

Two drivers of a few lines each, one sync and one async, carry it out, so both paths behave the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llama_index.core.base.llms.types import ChatMessage

from llama_index_grounded.schema import Refusal, RefusalReason, Usage
from llama_index_grounded.synthesis.answer import GroundedAnswer, InvalidReplyError, read_reply
from llama_index_grounded.synthesis.generate import Call, Fault, Reply
from llama_index_grounded.synthesis.prompts import re_ask
from llama_index_grounded.synthesis.validate import InvalidIdPolicy, Judgement, judge

if TYPE_CHECKING:
    from llama_index_grounded.synthesis.plan import Plan

__all__ = ["Outcome", "Policy", "converse"]

_TRUNCATED_SHARE = 0.6
_NOTABLE_SHARE = 0.8
_NOTABLE_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The options that decide what becomes of a reply."""

    output_cls: type[GroundedAnswer]
    on_invalid_ids: InvalidIdPolicy
    max_retries: int
    inline_citations: bool
    max_answer_chars: int
    num_output: int
    detect_truncation: bool
    enforce_schema: bool
    """Hand the schema to a server that enforces one."""
    count: Callable[[str], int]
    """Estimates the tokens of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the conversation ended."""

    judgement: Judgement | None
    """The last reply that could be read, or None."""
    refusal: Refusal | None
    usage: Usage
    calls: int
    raw_output: str | None
    warnings: tuple[str, ...] = ()
    error: Exception | None = None
    """The provider's own error, for the log and for ``on_error="raise"``."""
    answer: GroundedAnswer | None = None
    """The accepted reply, with the fields that a subclass of `GroundedAnswer` adds."""


@dataclass(slots=True)
class _Tally:
    """Adds up what the calls of one query took."""

    calls: int = 0
    estimated: int = 0
    prompt: int | None = 0
    completion: int | None = 0
    warnings: list[str] = field(default_factory=list[str])
    raw_output: str | None = None

    def add(self, estimated: int, reply: Reply | Fault) -> None:
        self.calls += 1
        self.estimated += estimated
        prompt, completion = None, None
        if isinstance(reply, Reply):
            prompt, completion, self.raw_output = reply.prompt_tokens, reply.completion_tokens, reply.text
        self.prompt = None if prompt is None or self.prompt is None else self.prompt + prompt
        self.completion = None if completion is None or self.completion is None else self.completion + completion

    def end(
        self,
        judgement: Judgement | None,
        refusal: Refusal | None,
        *,
        answer: GroundedAnswer | None = None,
        error: Exception | None = None,
    ) -> Outcome:
        return Outcome(
            judgement=judgement,
            refusal=refusal,
            usage=Usage(
                prompt_tokens=self.prompt, completion_tokens=self.completion, estimated_prompt_tokens=self.estimated
            ),
            calls=self.calls,
            raw_output=self.raw_output,
            warnings=tuple(dict.fromkeys(self.warnings)),
            error=error,
            answer=answer,
        )


def converse(plan: Plan, policy: Policy) -> Generator[Call, Reply | Fault, Outcome]:
    """Ask, judge, and ask again at most ``max_retries`` times where another reply could mend the fault."""
    tally = _Tally()
    keys = [source.key for source in plan.sources]
    messages, tokens, retries = plan.messages, plan.tokens, policy.max_retries
    while True:
        reply = yield Call(messages=messages, num_output=policy.num_output, schema=plan.schema if policy.enforce_schema else None)
        tally.add(tokens, reply)
        if isinstance(reply, Fault):
            return tally.end(None, Refusal(reason=reply.reason, detail=reply.detail), error=reply.error)
        truncated = _truncated(tokens, reply, tally) if policy.detect_truncation else None
        if truncated:
            return tally.end(None, truncated)
        may_retry = retries > 0 and not reply.cut_off
        answer, judgement, fault = _judge(reply, keys, policy, may_retry=may_retry)
        if fault is not None and may_retry and (judgement is None or judgement.ask_again):
            complaint = re_ask(fault.detail, keys)
            more = policy.count(complaint)
            if plan.allowance is None or plan.tokens + more <= plan.allowance:
                messages, tokens = _with_complaint(plan.messages, complaint), plan.tokens + more
                retries -= 1
                continue
            answer, judgement, fault = _judge(reply, keys, policy, may_retry=False)
        return tally.end(judgement, fault, answer=answer if fault is None else None)


def _judge(
    reply: Reply, keys: list[str], policy: Policy, *, may_retry: bool
) -> tuple[GroundedAnswer | None, Judgement | None, Refusal | None]:
    try:
        answer = read_reply(reply.text, policy.output_cls)
    except InvalidReplyError as error:
        return None, None, Refusal(reason=RefusalReason.invalid_output, detail=_unreadable(reply, error))
    # Once there is no retry left, what is valid stays and what is not is dropped.
    on_invalid = "drop" if policy.on_invalid_ids == "retry" and not may_retry else policy.on_invalid_ids
    judgement = judge(
        answer,
        keys,
        on_invalid_ids=on_invalid,
        inline_citations=policy.inline_citations,
        max_answer_chars=policy.max_answer_chars,
    )
    fault = judgement.refusal and Refusal(reason=judgement.refusal, detail=judgement.detail)
    return answer, judgement, fault


def _unreadable(reply: Reply, error: InvalidReplyError) -> str:
    if reply.only_thinking:
        return "the reply is empty and the model wrote into its thinking instead; turn its thinking off"
    if reply.cut_off:
        return f"{error}: the model reached its output limit"
    return str(error)


def _truncated(sent: int, reply: Reply, tally: _Tally) -> Refusal | None:
    """Compare what the provider counted with what was sent: Ollama cuts a long prompt without a word."""
    counted = reply.prompt_tokens
    if counted is None or sent - counted <= _NOTABLE_TOKENS:
        return None
    detail = f"the provider counted {counted} of about {sent} prompt tokens"
    if counted < sent * _TRUNCATED_SHARE:
        return Refusal(reason=RefusalReason.prompt_truncated, detail=detail)
    if counted < sent * _NOTABLE_SHARE:
        tally.warnings.append(detail)
    return None


def _with_complaint(messages: tuple[ChatMessage, ...], complaint: str) -> tuple[ChatMessage, ...]:
    *before, last = messages
    return (*before, ChatMessage(role=last.role, content=f"{last.content}\n\n{complaint}"))
