"""The course of one query with a model, without any I/O.

`Conversation.steps` yields what it wants (a call, the next piece, a stop) or what may be shown, and is sent what came.
The drivers in `drive`, one sync and one async, carry it out for streamed and unstreamed answers alike, so all paths
behave the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from llama_index.core.base.llms.types import ChatMessage

from llama_index_grounded.schema import Refusal, RefusalReason, TextEvent, Usage
from llama_index_grounded.synthesis.answer import GroundedAnswer, InvalidReplyError, read_reply
from llama_index_grounded.synthesis.generate import Call, Fault
from llama_index_grounded.synthesis.prompts import re_ask
from llama_index_grounded.synthesis.reader import ReplyReader
from llama_index_grounded.synthesis.reply import Reply
from llama_index_grounded.synthesis.validate import InvalidIdPolicy, Judgement, judge, too_long

if TYPE_CHECKING:
    from llama_index_grounded.synthesis.plan import Plan

__all__ = ["Conversation", "Outcome", "Policy", "Want"]

_TRUNCATED_SHARE = 0.6
_NOTABLE_SHARE = 0.8
_NOTABLE_TOKENS = 64


class Want(Enum):
    """What a conversation wants of its driver, other than a call."""

    more = auto()
    """The next piece of the reply, or the whole `Reply` (or `Fault`) at its end."""
    stop = auto()
    """Stop the model and send the `Reply` as far as it came."""


Step = Call | Want | TextEvent
Sent = str | Reply | Fault | None


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
    shown: str = ""
    """What was shown while the model wrote."""


class Conversation:
    """Ask, judge, and ask again at most ``max_retries`` times where another reply could mend the fault.

    Args:
        plan: What to send.
        policy: What to make of the replies.
        live: Show text while the model writes. Once something is shown, there is no further call.
    """

    def __init__(self, plan: Plan, policy: Policy, *, live: bool) -> None:
        self._plan = plan
        self._policy = policy
        self._live = live
        # A policy that may still refuse or ask again decides before anything is shown.
        self._early = policy.on_invalid_ids == "drop"
        self._keys = [source.key for source in plan.sources]
        self._calls = 0
        self._estimated = 0
        self._prompt: int | None = 0
        self._completion: int | None = 0
        self._warnings: dict[str, None] = {}
        self._raw_output: str | None = None
        self._shown: list[str] = []
        self._too_long = False
        self._in_call = False

    def steps(self) -> Generator[Step, Sent, Outcome]:
        """Go through the conversation."""
        plan, policy = self._plan, self._policy
        messages, tokens, retries = plan.messages, plan.tokens, policy.max_retries
        schema = plan.schema if policy.enforce_schema else None
        while True:
            self._calls += 1
            self._estimated += tokens
            call = Call(messages=messages, num_output=policy.num_output, schema=schema)
            reply = yield from self._listen(call)
            self._tally(reply)
            if isinstance(reply, Fault):
                return self._end(None, Refusal(reason=reply.reason, detail=reply.detail), error=reply.error)
            stopped = self._truncated(tokens, reply) or self._stopped_at_length()
            if stopped:
                return self._end(None, stopped)
            may_retry = retries > 0 and not reply.cut_off and not self._shown
            answer, judgement, fault = self._judge(reply, may_retry=may_retry)
            if fault is not None and may_retry and (judgement is None or judgement.ask_again):
                complaint = re_ask(fault.detail, self._keys)
                more = policy.count(complaint)
                if plan.allowance is None or plan.tokens + more <= plan.allowance:
                    messages, tokens = _with_complaint(plan.messages, complaint), plan.tokens + more
                    retries -= 1
                    continue
                answer, judgement, fault = self._judge(reply, may_retry=False)
            if fault is None and judgement is not None:
                yield from self._show_rest(judgement.text)
            return self._end(judgement, fault, answer=answer if fault is None else None)

    def break_off(self, reason: RefusalReason, detail: str) -> Outcome:
        """End a conversation from outside, in the middle of a call."""
        if self._in_call:
            self._prompt = self._completion = None
        return self._end(None, Refusal(reason=reason, detail=detail))

    def _listen(self, call: Call) -> Generator[Step, Sent, Reply | Fault]:
        """Make one call and read its pieces as they come."""
        policy = self._policy
        reader = ReplyReader(self._keys, inline_citations=policy.inline_citations, most_chars=policy.max_answer_chars)
        self._in_call = True
        sent = yield call
        while isinstance(sent, str):
            text = reader.feed(sent)
            if text and self._live and self._early:
                self._shown.append(text)
                yield TextEvent(text=text)
            self._too_long = self._early and reader.too_long
            sent = yield Want.stop if reader.stuck or self._too_long else Want.more
        if sent is None:
            raise RuntimeError("the driver sent nothing")
        return sent

    def _show_rest(self, text: str) -> Generator[Step, Sent, None]:
        """Show what was held back until the whole reply was judged."""
        rest = text[sum(map(len, self._shown)) :]
        if self._live and rest:
            self._shown.append(rest)
            yield TextEvent(text=rest)

    def _tally(self, reply: Reply | Fault) -> None:
        self._in_call = False
        prompt, completion = None, None
        if isinstance(reply, Reply):
            prompt, completion, self._raw_output = reply.prompt_tokens, reply.completion_tokens, reply.text
        self._prompt = None if prompt is None or self._prompt is None else self._prompt + prompt
        self._completion = None if completion is None or self._completion is None else self._completion + completion

    def _end(
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
                prompt_tokens=self._prompt,
                completion_tokens=self._completion,
                estimated_prompt_tokens=self._estimated,
            ),
            calls=self._calls,
            raw_output=self._raw_output,
            warnings=tuple(self._warnings),
            error=error,
            answer=answer,
            shown="".join(self._shown),
        )

    def _judge(
        self, reply: Reply, *, may_retry: bool
    ) -> tuple[GroundedAnswer | None, Judgement | None, Refusal | None]:
        policy = self._policy
        try:
            answer = read_reply(reply.text, policy.output_cls)
        except InvalidReplyError as error:
            return None, None, Refusal(reason=RefusalReason.invalid_output, detail=_unreadable(reply, error))
        # Once there is no retry left, what is valid stays and what is not is dropped.
        on_invalid = "drop" if policy.on_invalid_ids == "retry" and not may_retry else policy.on_invalid_ids
        judgement = judge(
            answer,
            self._keys,
            on_invalid_ids=on_invalid,
            inline_citations=policy.inline_citations,
            max_answer_chars=policy.max_answer_chars,
        )
        fault = None if judgement.refusal is None else Refusal(reason=judgement.refusal, detail=judgement.detail)
        return answer, judgement, fault

    def _stopped_at_length(self) -> Refusal | None:
        if not self._too_long:
            return None
        return Refusal(reason=RefusalReason.answer_too_long, detail=too_long(self._policy.max_answer_chars))

    def _truncated(self, sent: int, reply: Reply) -> Refusal | None:
        """Compare what the provider counted with what was sent: Ollama cuts a long prompt without a word."""
        counted = reply.prompt_tokens
        if not self._policy.detect_truncation or counted is None or sent - counted <= _NOTABLE_TOKENS:
            return None
        detail = f"the provider counted {counted} of about {sent} prompt tokens"
        if counted < sent * _TRUNCATED_SHARE:
            return Refusal(reason=RefusalReason.prompt_truncated, detail=detail)
        if counted < sent * _NOTABLE_SHARE:
            self._warnings[detail] = None
        return None


def _unreadable(reply: Reply, error: InvalidReplyError) -> str:
    if reply.only_thinking:
        return "the reply is empty and the model wrote into its thinking instead; turn its thinking off"
    if reply.cut_off:
        return f"{error}: the model reached its output limit"
    return str(error)


def _with_complaint(messages: tuple[ChatMessage, ...], complaint: str) -> tuple[ChatMessage, ...]:
    *before, last = messages
    return (*before, ChatMessage(role=last.role, content=f"{last.content}\n\n{complaint}"))
