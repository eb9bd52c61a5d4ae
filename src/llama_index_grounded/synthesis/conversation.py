"""The course of one query with a model, without any I/O.

`Conversation.steps` yields what it wants (a call, the next piece, a stop) or what may be shown, and is sent what came.
The drivers in `generate`, one sync and one async, carry it out for streamed and unstreamed answers alike, so all paths
behave the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from llama_index.core.base.llms.types import ChatMessage

from llama_index_grounded.llm.call import Call, Fault
from llama_index_grounded.llm.reply import Reply
from llama_index_grounded.llm.structured import field_names
from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import CheckResult, Refusal, RefusalReason, TextEvent, Usage
from llama_index_grounded.synthesis.answer import claim_class
from llama_index_grounded.synthesis.assess import Assessment, assess
from llama_index_grounded.synthesis.checked import context_of, rule
from llama_index_grounded.synthesis.early import keeps_the_text
from llama_index_grounded.synthesis.prompts import re_ask
from llama_index_grounded.synthesis.reader import ReplyReader
from llama_index_grounded.synthesis.unescaping import escapes_of

if TYPE_CHECKING:
    from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext
    from llama_index_grounded.synthesis.options import Options
    from llama_index_grounded.synthesis.plan import Plan

__all__ = ["Check", "Conversation", "Outcome", "Want"]


_MOST_FAULT = 600
"""Characters of a fault that the model is told."""


class Want(Enum):
    """What a conversation wants of its driver, other than a call."""

    more = auto()
    """The next piece of the reply, or the whole `Reply` (or `Fault`) at its end."""
    stop = auto()
    """Stop the model and send the `Reply` as far as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check to be carried out; its `CheckResult` is sent back."""

    check: AnswerCheck
    context: CheckContext


Step = Call | Want | Check | TextEvent
Sent = str | Reply | Fault | CheckResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the conversation ended."""

    assessment: Assessment
    """Of the reply that decided."""
    usage: Usage
    calls: int
    raw_output: str | None
    warnings: tuple[str, ...]
    shown: str
    """What was shown while the model wrote."""
    checks: tuple[CheckResult, ...] = ()


class Conversation:
    """Ask, judge, and ask again at most ``max_retries`` times where another reply could mend the fault.

    For unknown ids the model is asked again once; what it insists on is dropped. An answer that stands goes through the
    checks; one that a check wants mended is asked for again, and refused in the end.

    Args:
        question: The user's, for the checks.
        plan: What to send.
        options: The synthesizer's, which decide what becomes of a reply.
        count: Estimates the tokens of a text.
        live: Show text while the model writes. Once something is shown, there is no further call.
    """

    def __init__(self, question: str, plan: Plan, options: Options, count: Callable[[str], int], *, live: bool) -> None:
        self._question = question
        self._plan = plan
        self._options = options
        self._count = count
        self._live = live
        # A policy that may still refuse, ask again or change the text decides before anything is shown.
        self._policies = options.policies
        only_flags = all(policy == "flag" for policy in self._policies)
        self._early = options.on_invalid_ids == "drop" and only_flags and keeps_the_text(options.output_cls)
        self._keys = [source.key for source in plan.sources]
        self._calls = plan.calls
        self._usage = plan.usage
        self._in_call = False
        self._at_length = False
        self._raw_output: str | None = None
        self._shown: list[str] = []
        self._warnings: dict[str, None] = {}
        self._second_best: Assessment | None = None
        self._asked_for_ids = False
        self._checks: tuple[CheckResult, ...] = ()
        self._failed = ""
        """Why an earlier answer was refused, once another one has been asked for."""

    def steps(self) -> Generator[Step, Sent, Outcome]:
        """Go through the conversation."""
        messages, tokens, retries = self._plan.messages, self._plan.tokens, self._options.max_retries
        while True:
            reply = yield from self._listen(messages, tokens)
            found = self._assess(reply, tokens, last=retries == 0 or self._asked_for_ids)
            found, fault = yield from self._check(found)
            if found.refusal is None or not found.ask_again:
                return (yield from self._conclude(found))
            complaint = re_ask(self._told(fault or found.refusal.detail), self._keys)
            more = self._count(complaint)
            by_ids = found.refusal.reason is RefusalReason.invalid_citation
            without = self._assess(reply, tokens, last=True) if by_ids else found
            if retries == 0 or self._shown or not self._fits(more):
                if by_ids:
                    without, _ = yield from self._check(without)
                return (yield from self._conclude(without))
            if without.refusal is None:
                self._second_best = self._second_best or without
            self._asked_for_ids = by_ids
            retries -= 1
            messages, tokens = _with_complaint(self._plan.messages, complaint), self._plan.tokens + more

    def _told(self, fault: str) -> str:
        """Make a fault safe to stand in the prompt: it may hold words of the answer."""
        line = " ".join(clean(fault).split())
        return self._options.renderer.escape(line[:_MOST_FAULT])

    def _fits(self, more: int) -> bool:
        fits = self._plan.allowance is None or self._plan.tokens + more <= self._plan.allowance
        if not fits:
            self._warnings["there was no room in the window to ask again"] = None
        return fits

    def _check(self, found: Assessment) -> Generator[Step, Sent, tuple[Assessment, str]]:
        """Put an answer that stands through the checks; return what becomes of it, and what the model is told then."""
        self._checks = ()
        checks, answer, judgement = self._options.checks, found.answer, found.judgement
        if not checks or found.refusal is not None or answer is None or judgement is None:
            return found, ""
        context = context_of(self._question, self._plan, judgement, answer)
        for check in checks:
            result = yield Check(check=check, context=context)
            if not isinstance(result, CheckResult):
                raise RuntimeError("the driver sent no result of a check")  # noqa: TRY004 - a fault of the driver
            self._checks = (*self._checks, result)
            self._calls += result.llm_calls
            self._usage += result.usage
            context = replace(context, found=(*context.found, *result.quotes))
        ruling = rule(self._policies, self._checks)
        if ruling.refusal is None:
            return found, ""
        if ruling.ask_again:
            self._failed = f"an earlier answer was refused: {ruling.refusal.detail}"
        return replace(found, refusal=ruling.refusal, answer=None, ask_again=ruling.ask_again), ruling.complaint

    def break_off(self) -> Outcome:
        """End the conversation from outside, perhaps in the middle of a call."""
        if self._in_call:
            self._usage = self._usage.model_copy(update={"prompt_tokens": None, "completion_tokens": None})
        refusal = Refusal(reason=RefusalReason.stream_closed, detail="the stream was closed before its end")
        return self._outcome(Assessment(refusal=refusal))

    def _listen(self, messages: tuple[ChatMessage, ...], tokens: int) -> Generator[Step, Sent, Reply | Fault]:
        """Make one call, read its pieces as they come, and count what it took."""
        options = self._options
        reader = ReplyReader(
            self._keys,
            fields=field_names(options.output_cls),
            inline_citations=options.inline_citations,
            most_chars=options.max_answer_chars,
            claim_cls=claim_class(options.output_cls),
            escapes=escapes_of(options.renderer),
        )
        self._in_call, before = True, self._usage
        self._calls += 1
        self._usage += Usage(estimated_prompt_tokens=tokens)
        sent = yield Call(
            messages=messages,
            num_output=options.num_output,
            kind=self._plan.kind,
            schema=self._plan.schema,
            output_cls=options.output_cls,
            window=self._plan.window,
        )
        while isinstance(sent, str):
            text = reader.feed(sent)
            if text and self._live and self._early:
                self._shown.append(text)
                yield TextEvent(text=text)
            self._at_length = self._early and reader.too_long
            sent = yield Want.stop if reader.stuck or self._at_length else Want.more
        if not isinstance(sent, (Reply, Fault)):
            raise RuntimeError("the driver sent no reply")  # noqa: TRY004 - a fault of the driver
        self._in_call = False
        if isinstance(sent, Reply) and reader.stuck:
            sent = replace(sent, text=sent.text[: reader.taken])
        if isinstance(sent, Fault) and not sent.called:
            self._calls, self._usage = self._calls - 1, before
        else:
            self._add(sent)
        return sent

    def _add(self, reply: Reply | Fault) -> None:
        reported: tuple[int | None, int | None] = (None, None)
        if isinstance(reply, Reply):
            self._raw_output = reply.text
            reported = reply.prompt_tokens, reply.completion_tokens
        self._usage += Usage(prompt_tokens=reported[0], completion_tokens=reported[1])

    def _assess(self, reply: Reply | Fault, tokens: int, *, last: bool) -> Assessment:
        found = assess(
            reply,
            self._options,
            self._keys,
            sent=tokens - self._plan.schema_tokens,
            at_length=self._at_length,
            last=last,
        )
        if found.warning:
            self._warnings[found.warning] = None
        if found.refusal is None and found.judgement is not None and found.judgement.left_out:
            count = found.judgement.left_out
            self._warnings[f"claims left out since they name no source that was shown: {count}"] = None
        return found

    def _conclude(self, found: Assessment) -> Generator[Step, Sent, Outcome]:
        """Take the last reply, or an earlier one that stands without its unknown ids where the last brought nothing."""
        if found.refusal is not None and found.judgement is None and self._second_best is not None:
            earlier, _ = yield from self._check(self._second_best)
            if earlier.refusal is None:
                why = f"a further call brought nothing ({found.refusal.reason}); an earlier reply stands"
                self._warnings[why] = None
                found = replace(earlier, error=None)
        if self._failed and not self._checks:
            self._warnings[self._failed] = None
        if found.refusal is None and found.judgement is not None:
            rest = found.judgement.text[sum(map(len, self._shown)) :]
            if self._live and rest:
                self._shown.append(rest)
                yield TextEvent(text=rest)
        return self._outcome(found)

    def _outcome(self, found: Assessment) -> Outcome:
        return Outcome(
            assessment=found,
            usage=self._usage,
            calls=self._calls,
            raw_output=self._raw_output,
            warnings=tuple(self._warnings),
            shown="".join(self._shown),
            checks=self._checks,
        )


def _with_complaint(messages: tuple[ChatMessage, ...], complaint: str) -> tuple[ChatMessage, ...]:
    *before, last = messages
    return (*before, ChatMessage(role=last.role, content=f"{last.content}\n\n{complaint}"))
