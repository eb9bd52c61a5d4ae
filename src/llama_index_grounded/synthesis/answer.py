"""What the model is asked for."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from llama_index_grounded.schema import Verdict
from llama_index_grounded.synthesis.keys import normalise_ids

__all__ = ["GroundedAnswer", "keeps_the_text"]

_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_OPEN_THINKING = re.compile(r"\s*<think>")
_MOST_NAMED_FAULTS = 3


class GroundedAnswer(BaseModel):
    """A verdict, the keys of the sources that support it, and the answer, in this order.

    Subclass it to ask for more fields. Ids arrive in many shapes; `keys.normalise_ids` is the rule that brings them
    into one. Whether a key names a source is decided later, by exact membership.
    """

    model_config = ConfigDict(extra="forbid")

    verdict: Verdict = Field(
        description="yes or no for a yes/no question; answered for any other; conflicting if sources disagree; "
        "not_in_sources if the sources do not answer it"
    )
    sources: list[str] = Field(
        description='keys of the sources that state the answer, for example ["S1"]; empty for not_in_sources'
    )
    answer: str = Field(description="the answer in the language of the question, with [S1] after each statement")

    @property
    def answerable(self) -> bool:
        """False where the model says that the sources do not answer the question."""
        return self.verdict is not Verdict.not_in_sources

    @field_validator("verdict", mode="before")
    @classmethod
    def _normalise_verdict(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("sources", mode="before")
    @classmethod
    def _normalise_sources(cls, value: object) -> list[str]:
        return normalise_ids(value)


def keeps_the_text(output_cls: type[GroundedAnswer]) -> bool:
    """Tell whether the answer is the text that the model writes; a validator of a subclass may make another of it."""
    own = output_cls.__pydantic_decorators__
    on_answer = [each for each in own.field_validators.values() if {"answer", "*"} & set(each.info.fields)]
    return not (on_answer or own.model_validators)
