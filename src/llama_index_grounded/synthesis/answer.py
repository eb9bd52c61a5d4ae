"""What the model is asked for: an answer in one piece, or in claims with sources of their own."""

from __future__ import annotations

from typing import get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, field_validator

from llama_index_grounded.schema import Verdict
from llama_index_grounded.synthesis.keys import normalise_ids

__all__ = ["AnswerModel", "Claim", "ClaimedAnswer", "GroundedAnswer", "claim_class"]


class AnswerModel(BaseModel):
    """What every answer begins with: a verdict and the keys of the sources that support it, in this order.

    Ids arrive in many shapes; `keys.normalise_ids` is the rule that brings them into one. Whether a key names a source
    is decided later, by exact membership.
    """

    model_config = ConfigDict(extra="forbid")

    verdict: Verdict = Field(
        description="yes or no for a yes/no question; answered for any other; conflicting if sources disagree; "
        "not_in_sources if the sources do not answer it"
    )
    sources: list[str] = Field(
        description='keys of the sources that state the answer, for example ["S1"]; empty for not_in_sources'
    )

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


class GroundedAnswer(AnswerModel):
    """A verdict, the keys of the sources that support it, and the answer, in this order.

    Subclass it to ask for more fields.
    """

    answer: str = Field(description="the answer in the language of the question, with [S1] after each statement")


class Claim(BaseModel):
    """One statement, the sources that say so, and the passage that does. Small models may leave the quote empty."""

    model_config = ConfigDict(extra="forbid")

    sources: list[str] = Field(description='keys of the sources that state this claim, for example ["S1"]')
    quote: str = Field(description="the passage of that source that says so, copied word for word; empty if unsure")
    text: str = Field(description="the claim: one or two sentences in the language of the question")

    @field_validator("sources", mode="before")
    @classmethod
    def _normalise_sources(cls, value: object) -> list[str]:
        return normalise_ids(value)


class ClaimedAnswer(AnswerModel):
    """A verdict, the keys of all sources, and claims, each with its own sources and quote, in this order.

    The answer is the texts of the claims, joined by a space, or by an empty line where a space would make one marker of
    two claims. Subclass it, and `Claim`, to ask for more fields.
    """

    claims: list[Claim] = Field(
        description="the answer in claims; each has sources, quote and text; empty for not_in_sources"
    )


def claim_class(output_cls: type[AnswerModel]) -> type[Claim] | None:
    """Return the class of the claims, `Claim` where they may have several; None for an answer in one piece."""
    if not issubclass(output_cls, ClaimedAnswer):
        return None
    items = [item for item in get_args(output_cls.model_fields["claims"].annotation) if item is not ...]
    found = items[0] if len(items) == 1 else None
    return found if isinstance(found, type) and get_origin(found) is None and issubclass(found, Claim) else Claim
