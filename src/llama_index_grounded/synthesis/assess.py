"""Judge what a call brought: a reply that stands, one that is refused, or one that another call could mend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index_grounded.llm.call import Fault
from llama_index_grounded.llm.reply import Reply
from llama_index_grounded.llm.structured import InvalidReplyError, read_reply
from llama_index_grounded.schema import Refusal, RefusalReason
from llama_index_grounded.synthesis.answer import AnswerModel
from llama_index_grounded.synthesis.options import Options
from llama_index_grounded.synthesis.shapes import check_answer
from llama_index_grounded.synthesis.unescaping import escapes_of
from llama_index_grounded.synthesis.validate import Judgement, judge, too_long

__all__ = ["Assessment", "assess"]

_TRUNCATED_SHARE = 0.6
_NOTABLE_SHARE = 0.8
_NOTABLE_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What is to be made of one call."""

    refusal: Refusal | None = None
    """None where the reply stands."""
    judgement: Judgement | None = None
    """What the reply says, where it could be read."""
    answer: AnswerModel | None = None
    """The reply itself, where it stands."""
    error: Exception | None = None
    """The provider's own error."""
    ask_again: bool = False
    """True where another reply could mend the fault."""
    warning: str | None = None


def assess(
    reply: Reply | Fault, options: Options, keys: Sequence[str], *, sent: int, at_length: bool, last: bool
) -> Assessment:
    """Judge one call.

    Args:
        reply: What came back.
        options: The synthesizer's.
        keys: The keys that were in the prompt.
        sent: Estimated tokens of the messages; a schema beside them may go uncounted by the provider.
        at_length: The model was stopped because the answer was too long.
        last: No call follows: with ``on_invalid_ids="retry"`` unknown ids are dropped now.
    """
    if isinstance(reply, Fault):
        return Assessment(refusal=Refusal(reason=reply.reason, detail=reply.detail), error=reply.error)
    gap = _gap(sent, reply) if options.detect_truncation else ""
    if gap and (reply.prompt_tokens or 0) < sent * _TRUNCATED_SHARE:
        return Assessment(refusal=Refusal(reason=RefusalReason.prompt_truncated, detail=gap))
    warning = gap or None
    if at_length:
        refusal = Refusal(reason=RefusalReason.answer_too_long, detail=too_long(options.max_answer_chars))
        return Assessment(refusal=refusal, warning=warning)
    try:
        answer = read_reply(reply.text, options.output_cls)
        check_answer(answer)
    except InvalidReplyError as error:
        refusal = Refusal(reason=RefusalReason.invalid_output, detail=_unreadable(reply, error))
        return Assessment(refusal=refusal, ask_again=not reply.cut_off, warning=warning)
    judgement = judge(
        answer,
        keys,
        on_invalid_ids="drop" if options.on_invalid_ids == "retry" and last else options.on_invalid_ids,
        inline_citations=options.inline_citations,
        max_answer_chars=options.max_answer_chars,
        escapes=escapes_of(options.renderer),
    )
    if judgement.refusal is None:
        return Assessment(judgement=judgement, answer=answer, warning=warning)
    refusal = Refusal(reason=judgement.refusal, detail=judgement.detail)
    again = judgement.ask_again and not reply.cut_off
    return Assessment(refusal=refusal, judgement=judgement, ask_again=again, warning=warning)


def _gap(sent: int, reply: Reply) -> str:
    """Compare what the provider counted with what was sent: Ollama cuts a long prompt without a word."""
    counted = reply.prompt_tokens
    if counted is None or sent - counted <= _NOTABLE_TOKENS or counted >= sent * _NOTABLE_SHARE:
        return ""
    return f"the provider counted {counted} of about {sent} prompt tokens"


def _unreadable(reply: Reply, error: InvalidReplyError) -> str:
    if reply.only_thinking:
        return "the reply is empty and the model wrote into its thinking instead; turn its thinking off"
    return f"{error}: the model reached its output limit" if reply.cut_off else str(error)
