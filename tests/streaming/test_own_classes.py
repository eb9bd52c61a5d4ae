"""A stream never shows what an answer class of the user's own makes something else of, or refuses."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    computed_field,
    field_validator,
    model_validator,
)

from llama_index_grounded import GroundedAnswer, Verdict
from llama_index_grounded.schema import ResultEvent, TextEvent
from llama_index_grounded.synthesis import Claim, ClaimedAnswer
from llama_index_grounded.synthesis.answer import AnswerModel
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import events, text_of

REPLY: dict[str, Any] = {"verdict": "answered", "sources": ["S1"], "answer": "Her card is 4111111111111111 [S1]."}
CLAIM: dict[str, Any] = {"sources": ["S1"], "quote": "", "text": "Her card is 4111111111111111."}
CLAIMS = {"verdict": "answered", "sources": ["S1"], "claims": [CLAIM, {**CLAIM, "text": "It is hers."}]}


def redact(text: str) -> str:
    """Take long numbers out."""
    return re.sub(r"\d{6,}", "***", text)


Redacted = Annotated[str, AfterValidator(redact)]


class Typed(GroundedAnswer):
    """By its type."""

    answer: Redacted


class Decorated(GroundedAnswer):
    """By a validator."""

    @field_validator("answer")
    @classmethod
    def _redact(cls, text: str) -> str:
        return redact(text)


class Late(GroundedAnswer):
    """After all validators."""

    def model_post_init(self, _: Any) -> None:
        """Redact."""
        self.answer = redact(self.answer)


class Whole(GroundedAnswer):
    """By a validator of the whole."""

    @model_validator(mode="after")
    def _redact(self) -> Whole:
        self.answer = redact(self.answer)
        return self


class Made(GroundedAnswer):
    """When it is made."""

    def __init__(self, **fields: Any) -> None:
        redacted: dict[str, Any] = {**fields, "answer": redact(fields["answer"])}
        super().__init__(**redacted)


class Read(GroundedAnswer):
    """When it is read."""

    def __getattribute__(self, name: str) -> Any:
        """Redact the answer."""
        value = super().__getattribute__(name)
        return redact(value) if name == "answer" else value


class Mixin(BaseModel):
    """A base beside ours."""

    def model_post_init(self, _: Any) -> None:
        """Redact."""
        object.__setattr__(self, "answer", redact(self.__dict__["answer"]))


class Mixed(GroundedAnswer, Mixin):
    """By another base."""


class Neighbour(GroundedAnswer):
    """By the validator of another field, which is told of the fields before it."""

    note: str = Field(default="n", validate_default=True)

    @field_validator("note")
    @classmethod
    def _redact(cls, note: str, info: ValidationInfo) -> str:
        info.data["answer"] = redact(info.data["answer"])
        return note


def _through(note: str, info: ValidationInfo) -> str:
    info.data["answer"] = redact(info.data["answer"])
    return note


def _default(data: dict[str, Any]) -> str:
    data["answer"] = redact(data["answer"])
    return "n"


class DefaultNeighbour(GroundedAnswer):
    """The same by a default that is told of the fields before it."""

    note: str = Field(default_factory=_default)


class TypedNeighbour(GroundedAnswer):
    """The same by a type."""

    note: Annotated[str, AfterValidator(_through), Field(validate_default=True)] = "n"


class Upper(GroundedAnswer):
    """By a setting."""

    model_config = ConfigDict(str_to_upper=True)


class Short(GroundedAnswer):
    """A text that is too long is refused."""

    answer: str = Field(max_length=8)


class NoSource(GroundedAnswer):
    """No source is let through."""

    @field_validator("sources")
    @classmethod
    def _none(cls, _: list[str]) -> list[str]:
        return []


class NoVerdict(GroundedAnswer):
    """No answer is let through."""

    @field_validator("verdict")
    @classmethod
    def _none(cls, _: Verdict) -> Verdict:
        return Verdict.not_in_sources


class NeverAnswerable(GroundedAnswer):
    """No answer is let through, by another meaning of the verdict."""

    @property
    def answerable(self) -> bool:
        """Refuse."""
        return False


class RedactedClaim(Claim):
    """A claim that redacts by its type."""

    text: Redacted


class OfRedacted(ClaimedAnswer):
    """With such claims."""

    claims: list[RedactedClaim]  # type: ignore[assignment]


class OfBoth(ClaimedAnswer):
    """With claims of either class."""

    claims: list[RedactedClaim | Claim]


class OfOne(ClaimedAnswer):
    """With one claim at most."""

    claims: Annotated[list[Claim], Field(max_length=1)]


class LateClaim(Claim):
    """A claim that redacts at its end."""

    def model_post_init(self, _: Any) -> None:
        """Redact."""
        self.text = redact(self.text)


class OfLate(ClaimedAnswer):
    """With such claims."""

    claims: list[LateClaim]  # type: ignore[assignment]


NEIGHBOURS: list[type[AnswerModel]] = [Neighbour, DefaultNeighbour, TypedNeighbour]
CHANGING = [Typed, Decorated, Late, Whole, Made, Read, Mixed, *NEIGHBOURS, Upper, OfRedacted, OfBoth]
REFUSING = [Short, NoSource, NoVerdict, NeverAnswerable, OfOne]


def told(output_cls: type[AnswerModel]) -> tuple[list[str], Any]:
    """Return what a stream shows, piece by piece, and its result."""
    reply = CLAIMS if issubclass(output_cls, ClaimedAnswer) else REPLY
    seen = events(ScriptedLLM([reply], chunk_size=6), output_cls=output_cls, max_retries=0)
    assert isinstance(seen[-1], ResultEvent)
    assert text_of(seen) == seen[-1].grounded.answer
    return [event.text for event in seen if isinstance(event, TextEvent)], seen[-1].grounded


@pytest.mark.parametrize("output_cls", [*CHANGING, OfLate, *REFUSING])
def test_nothing_is_shown_that_the_class_takes_back(output_cls: type[AnswerModel]) -> None:
    """In whatever way a class changes or refuses the text, it is shown in one piece, once that is decided."""
    texts, result = told(output_cls)
    assert len(texts) == 1
    assert not any(written in texts[0] for written in (REPLY["answer"], CLAIM["text"]))
    assert result.answerable is (output_cls not in REFUSING)


class Topic(GroundedAnswer):
    """Fields and methods of its own, other words for the answer, other settings that touch no text."""

    model_config = ConfigDict(extra="ignore", title="Topic", frozen=True)

    answer: str = Field(description="the answer in one sentence")
    topic: str = Field(default="other", max_length=20)

    def shout(self) -> str:
        """Return the answer in capitals."""
        return self.answer.upper()

    @computed_field
    def length(self) -> int:
        """Return how long the answer is."""
        return len(self.answer)


class Narrower(Topic):
    """A subclass of a subclass."""

    tags: list[str] = Field(default_factory=list)


class Years(Claim):
    """A claim with a field more."""

    year: int = 2026


class OfYears(ClaimedAnswer):
    """With such claims."""

    claims: list[Years]  # type: ignore[assignment]
    topic: str = "other"


@pytest.mark.parametrize("output_cls", [GroundedAnswer, ClaimedAnswer, Topic, Narrower, OfYears])
def test_what_only_adds_is_shown_as_it_is_written(output_cls: type[AnswerModel]) -> None:
    """Further fields, methods and descriptions change no text, so nothing waits for the end."""
    texts, result = told(output_cls)
    assert len(texts) > 1
    assert result.answerable


class Private(GroundedAnswer):
    """With an attribute that is no field; Pydantic sets it after all validators, as one's own code would."""

    _seen: int = PrivateAttr(default=0)


def test_a_private_attribute_makes_a_stream_wait() -> None:
    """What can not be told from a change is taken for one."""
    assert len(told(Private)[0]) == 1
