"""The options of a synthesizer, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from llama_index_grounded._allowed import need_flag, need_one_of, need_part, need_seconds, need_whole
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.llm.providers import Structured
from llama_index_grounded.llm.structured import asked_names
from llama_index_grounded.rendering.renderer import as_renderer
from llama_index_grounded.synthesis.answer import AnswerModel, ClaimedAnswer, GroundedAnswer
from llama_index_grounded.synthesis.checking import AnswerCheck, OnFail
from llama_index_grounded.synthesis.links import UrlFor, check_url_for
from llama_index_grounded.synthesis.prompts import Language, QuestionPosition
from llama_index_grounded.synthesis.respond import RefusalText, check_refusal_text
from llama_index_grounded.synthesis.shapes import check_answer_class
from llama_index_grounded.synthesis.validate import InvalidIdPolicy
from llama_index_grounded.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index_grounded.rendering import Renderer

__all__ = ["OnError", "Options"]

OnError = Literal["refuse", "raise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that shapes an answer, apart from the LLM and the templates; `CitingSynthesizer` explains each."""

    output_cls: type[AnswerModel]
    renderer: Renderer
    system_prompt: str
    question_position: QuestionPosition
    on_invalid_ids: InvalidIdPolicy
    max_retries: int
    checks: tuple[AnswerCheck, ...]
    refusal_text: RefusalText | None
    language: Language
    on_error: OnError
    timeout: float | None
    num_output: int
    detect_truncation: bool
    max_answer_chars: int
    url_for: UrlFor | None
    structured_output: Structured
    inline_citations: bool
    keys: MetadataKeys
    counter: TokenCounter | None
    policies: tuple[OnFail, ...] = field(init=False, default=())
    """What becomes of an answer that fails, by check; read once, since a check is somebody else's object."""

    def __post_init__(self) -> None:
        """Refuse what can not work."""
        known = (GroundedAnswer, ClaimedAnswer)
        if not (isinstance(self.output_cls, type) and issubclass(self.output_cls, known)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError("output_cls must be GroundedAnswer, ClaimedAnswer or a subclass of one")
        check_answer_class(self.output_cls)
        asked_names(self.output_cls)
        as_renderer(self.renderer)
        need_part("keys", self.keys, MetadataKeys, "a MetadataKeys")
        need_part("counter", self.counter, (TokenCounter, type(None)), "a TokenCounter")
        object.__setattr__(self, "policies", tuple(map(_policy, self.checks)))
        need_one_of("question_position", self.question_position, QuestionPosition)
        need_one_of("on_invalid_ids", self.on_invalid_ids, InvalidIdPolicy)
        need_one_of("on_error", self.on_error, OnError)
        need_one_of("structured_output", self.structured_output, Structured)
        need_whole("max_retries", self.max_retries, least=0)
        need_whole("num_output", self.num_output, least=1)
        need_whole("max_answer_chars", self.max_answer_chars, least=1)
        need_seconds("timeout", self.timeout)
        need_flag("inline_citations", self.inline_citations)
        need_flag("detect_truncation", self.detect_truncation)
        need_part("system_prompt", self.system_prompt, str, "a text")
        check_refusal_text(self.refusal_text, self.language)
        check_url_for(self.url_for)


def _policy(check: object) -> OnFail:
    """Return the policy of a check, and refuse what is none."""
    if isinstance(check, type) or not callable(getattr(check, "check", None)):
        raise ConfigurationError(f"a check must have a method check, as {check!r} has not")
    policy: Any = getattr(check, "on_fail", None)
    need_one_of(f"on_fail of {type(check).__name__}", policy, OnFail)
    return cast("OnFail", policy)
