"""An answer class of the user's own works, or is refused when the synthesizer is made; no query ever crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import AfterValidator, Field, create_model
from typing_extensions import TypeAliasType

from llama_index_grounded import CitingSynthesizer, GroundedAnswer, Verdict
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.synthesis import Claim, ClaimedAnswer
from llama_index_grounded.synthesis.answer import AnswerModel
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import MODES, OK, ask, reason

TEXT: dict[str, Any] = {**OK, "verdict": "yes"}
CLAIM: dict[str, Any] = {"sources": ["S1"], "quote": "", "text": "Within 21 days."}
CLAIMS: dict[str, Any] = {"verdict": "yes", "sources": ["S1"], "claims": [CLAIM, CLAIM]}


Text = TypeAliasType("Text", Annotated[str, Field(min_length=1)])


class Dated(Claim):
    """A claim with a field more."""

    year: int = 2026


def class_with(base: type[AnswerModel], **fields: Any) -> type[AnswerModel]:
    """Make a subclass with other types for some fields."""
    return create_model("Own", __base__=base, **fields)


def claims_with(**fields: Any) -> type[AnswerModel]:
    """Make an answer class whose claims have other types for some fields."""
    claim: Any = create_model("OwnClaim", __base__=Claim, **fields)
    return class_with(ClaimedAnswer, claims=list[claim])


WORKING = [
    class_with(GroundedAnswer, answer=str | None),
    class_with(GroundedAnswer, answer=(str | None, None)),
    class_with(GroundedAnswer, answer=Literal["Within 21 days [S1]."]),
    class_with(GroundedAnswer, answer=NewType("Words", str)),
    class_with(GroundedAnswer, answer=Text),
    class_with(GroundedAnswer, verdict=Literal[Verdict.yes, Verdict.not_in_sources]),
    class_with(GroundedAnswer, sources=(list[str] | None, None)),
    class_with(GroundedAnswer, sources=tuple[str, ...]),
    class_with(ClaimedAnswer, claims=tuple[Claim, ...]),
    class_with(ClaimedAnswer, claims=tuple[Claim, Claim]),
    class_with(ClaimedAnswer, claims=Sequence[Dated]),
    class_with(ClaimedAnswer, claims=(list[Claim] | None, None)),
    class_with(ClaimedAnswer, claims=list[Dated | Claim]),
    class_with(ClaimedAnswer, claims=list[Annotated[Dated, Field()]]),
    claims_with(quote=(str | None, None)),
    claims_with(text=(str | None, None)),
    claims_with(sources=(list[str] | None, None)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output_cls", WORKING)
def test_other_types_for_our_fields_work(output_cls: type[AnswerModel], mode: str) -> None:
    """A text or a list that may be absent, other lists, other claims: a reply that has all is an answer."""
    reply = CLAIMS if issubclass(output_cls, ClaimedAnswer) else TEXT
    result = ask(ScriptedLLM([reply], chunk_size=4), mode, output_cls=output_cls, max_retries=0).result
    assert result.answerable
    assert result.answer.startswith("Within 21 days")


ABSENT = [
    (class_with(GroundedAnswer, answer=(str | None, None)), "answer", "invalid_output"),
    (class_with(GroundedAnswer, sources=(list[str] | None, None)), "sources", "no_valid_citation"),
    (class_with(ClaimedAnswer, claims=(list[Claim] | None, None)), "claims", "invalid_output"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output_cls, name, why", ABSENT)
def test_what_may_be_absent_and_is_counts_as_empty(
    output_cls: type[AnswerModel], name: str, why: str, mode: str
) -> None:
    """Without its text the answer is blank, without its sources it has none; a reply that finds nothing needs none."""
    reply = CLAIMS if issubclass(output_cls, ClaimedAnswer) else TEXT
    left_out = {field: value for field, value in reply.items() if field != name}
    options: dict[str, Any] = {"output_cls": output_cls, "max_retries": 0}
    assert reason(ask(ScriptedLLM([left_out], chunk_size=4), mode, **options).result) == why
    unknown = {**left_out, "verdict": "not_in_sources"}
    assert reason(ask(ScriptedLLM([unknown], chunk_size=4), mode, **options).result) == "not_in_sources"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name, found", [("text", "invalid_output"), ("sources", "no_valid_citation"), ("quote", None)])
def test_what_may_be_absent_in_a_claim_counts_as_empty(name: str, found: str | None, mode: str) -> None:
    """A claim without its text says nothing, one without sources has none, and a quote is not needed."""
    kind: Any = list[str] | None if name == "sources" else str | None
    reply = {**CLAIMS, "claims": [{field: value for field, value in CLAIM.items() if field != name}]}
    llm = ScriptedLLM([reply], chunk_size=4)
    result = ask(llm, mode, output_cls=claims_with(**{name: (kind, None)}), max_retries=0).result
    assert reason(result) == found


REFUSED = [
    (class_with(GroundedAnswer, answer=int), "answer of Own must be a text"),
    (class_with(GroundedAnswer, answer=str | int), "answer of Own must be a text"),
    (class_with(GroundedAnswer, answer=Any), "answer of Own must be a text"),
    (class_with(GroundedAnswer, answer=list[str]), "answer of Own must be a text"),
    (class_with(GroundedAnswer, answer=Literal["yes", 1]), "answer of Own must be a text"),
    (class_with(GroundedAnswer, sources=list), "sources of Own must be a list of texts"),
    (class_with(GroundedAnswer, sources=list[int]), "sources of Own must be a list of texts"),
    (class_with(GroundedAnswer, sources=set[str]), "sources of Own must be a list of texts"),
    (class_with(GroundedAnswer, verdict=str), "verdict of Own must be a Verdict"),
    (class_with(GroundedAnswer, verdict=Verdict | None), "verdict of Own must be a Verdict"),
    (class_with(GroundedAnswer, verdict=Literal["yes", "not_in_sources"]), "verdict of Own must be a Verdict"),
    (class_with(ClaimedAnswer, claims=list), "claims of Own must be a list of claims"),
    (class_with(ClaimedAnswer, claims=list[dict[str, Any]]), "claims of Own must be a list of claims"),
    (class_with(ClaimedAnswer, claims=list[Claim | str]), "claims of Own must be a list of claims"),
    (class_with(ClaimedAnswer, claims=dict[str, Claim]), "claims of Own must be a list of claims"),
    (class_with(ClaimedAnswer, claims=None), "claims of Own must be a list of claims"),
    (class_with(ClaimedAnswer, claims=Claim), "claims of Own must be a list of claims"),
    (claims_with(text=int), "text of OwnClaim must be a text"),
    (claims_with(quote=list[str]), "quote of OwnClaim must be a text"),
]


@pytest.mark.parametrize("output_cls, told", REFUSED)
def test_a_class_that_can_not_work_is_refused_at_once(output_cls: type[AnswerModel], told: str) -> None:
    """A field of ours that may hold something else fails at construction, and the field is named."""
    with pytest.raises(ConfigurationError, match=told):
        CitingSynthesizer(ScriptedLLM([TEXT]), output_cls=output_cls)


ODD = [
    class_with(GroundedAnswer, answer=Annotated[str, AfterValidator(len)]),
    class_with(GroundedAnswer, sources=Annotated[list[str], AfterValidator(len)]),
    class_with(GroundedAnswer, sources=Annotated[list[str], AfterValidator(lambda ids: [*ids, 1])]),
    class_with(GroundedAnswer, verdict=Annotated[Verdict, AfterValidator(lambda _: None)]),
    class_with(ClaimedAnswer, claims=Annotated[list[Claim], AfterValidator(len)]),
    class_with(ClaimedAnswer, claims=Annotated[list[Claim], AfterValidator(lambda _: ["x"])]),
    claims_with(text=Annotated[str, AfterValidator(len)]),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output_cls", ODD)
def test_a_validator_that_returns_something_else_refuses_the_reply(output_cls: type[AnswerModel], mode: str) -> None:
    """What no annotation tells is a refusal that names class and field, and no exception."""
    reply = CLAIMS if issubclass(output_cls, ClaimedAnswer) else TEXT
    result = ask(ScriptedLLM([reply], chunk_size=4), mode, output_cls=output_cls, max_retries=0).result
    assert result.refusal is not None
    assert result.refusal.reason == "invalid_output"
    assert "made something else of" in result.refusal.detail


def fail(_: str) -> str:
    """Fail as no validator should."""
    raise KeyError


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("base", [GroundedAnswer, ClaimedAnswer])
def test_a_validator_that_fails_refuses_the_reply(base: type[AnswerModel], mode: str) -> None:
    """Whatever it raises, also while a claim is read before the end, the query goes on."""
    failing: Any = Annotated[str, AfterValidator(fail)]
    output_cls = class_with(base, answer=failing) if base is GroundedAnswer else claims_with(text=failing)
    reply = CLAIMS if base is ClaimedAnswer else TEXT
    result = ask(ScriptedLLM([reply], chunk_size=4), mode, output_cls=output_cls, max_retries=0).result
    assert reason(result) == "invalid_output"
