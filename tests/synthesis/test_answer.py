"""A reply is read by one strict rule: a whole, valid object is an answer, and everything else is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from llama_index_grounded import CitingSynthesizer, GroundedAnswer, GroundedResponse, Verdict
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.testing import ScriptedLLM, make_nodes

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
TEXT = json.dumps(OK)
SOURCES = make_nodes(["Return a book within 21 days.", "Keep the receipt."])


def ask(reply: str | dict[str, Any], output_cls: type[GroundedAnswer] = GroundedAnswer) -> GroundedResponse:
    """Answer one question from two sources, with one reply and no second try."""
    synthesizer = CitingSynthesizer(ScriptedLLM([reply]), output_cls=output_cls, max_retries=0)
    response = synthesizer.synthesize("How long can I return a book?", SOURCES)
    assert isinstance(response, GroundedResponse)
    return response


def detail(reply: str | dict[str, Any]) -> str:
    """Return why a reply could not be read."""
    refusal = ask(reply).refusal
    assert refusal is not None
    assert refusal.reason == "invalid_output"
    return refusal.detail


prose = st.text(st.characters(codec="utf-8", exclude_characters="{<"), max_size=30)


@settings(max_examples=25)
@given(before=prose, after=prose, think=st.none() | prose)
def test_text_around_the_object_changes_nothing(before: str, after: str, think: str | None) -> None:
    """Prose, fences and a leading think block without braces leave the answer as it is."""
    leading = before if think is None else f"<think>{think} {{not this}}</think>{before}"
    assert str(ask(leading + TEXT + after)) == "Within 21 days [S1]."


@settings(max_examples=25)
@given(end=st.integers(0, len(TEXT) - 1))
def test_an_object_that_breaks_off_is_never_completed(end: int) -> None:
    """Every proper beginning of a valid reply is refused, and says that it is empty or broken off."""
    assert detail(TEXT[:end]) in ("the reply is empty", "the JSON object breaks off")


@settings(max_examples=25)
@given(name=st.from_regex(r"[a-z]{6,30}", fullmatch=True), value=st.text(min_size=6, max_size=30))
def test_the_refusal_repeats_nothing_that_the_model_wrote(name: str, value: str) -> None:
    """Names of unknown fields and wrong values stay out of the detail, which may be shown."""
    told = detail({**OK, f"zz{name}": value, "verdict": f"zz{name}"})
    assert f"zz{name}" not in told
    assert "verdict" in told


def test_the_fields_come_in_the_order_in_which_they_are_needed() -> None:
    """Verdict and sources stand before the answer, and no field has a default."""
    fields = GroundedAnswer.model_fields
    assert list(fields) == ["verdict", "sources", "answer"]
    assert all(field.is_required() for field in fields.values())


@pytest.mark.parametrize("verdict", list(Verdict))
def test_answerable_follows_from_the_verdict(verdict: Verdict) -> None:
    """Only the verdict not_in_sources says that there is no answer."""
    answer = GroundedAnswer(verdict=verdict, sources=["S1"], answer="x")
    assert answer.answerable is (verdict is not Verdict.not_in_sources)


@pytest.mark.parametrize("missing", ["verdict", "sources", "answer"])
def test_a_missing_field_is_no_default(missing: str) -> None:
    """An object without one of the fields is refused, and the field is named."""
    assert missing in detail({name: value for name, value in OK.items() if name != missing})


@pytest.mark.parametrize(
    "reply, told",
    [
        ("", "the reply is empty"),
        ("  \n", "the reply is empty"),
        ("{}", "verdict: missing"),
        ("Sure, here is the answer: within 21 days.", "no JSON object"),
        ('["S1"]', "no JSON object"),
        ('{\n\n{\n"verdict": "answered"}', "malformed"),
        ("<think>The sources say {21} days", "while the model was thinking"),
        (TEXT + TEXT, "more than one"),
        ('{"source": "S1", "text": "Return a book within 21 days."}', "does not fit"),
        ({**OK, "verdict": "maybe"}, "verdict"),
        ({**OK, "answer": ["Within 21 days."]}, "answer"),
        ({**OK, "answer": None}, "answer"),
        ({**OK, "confidence": 0.9}, "does not fit"),
        ({**OK, "sources": None}, "sources"),
        ({**OK, "sources": {"S1": True}}, "sources"),
        ({**OK, "sources": [["S1"]]}, "sources"),
        ('{"verdict": "answered", "sources": ["S1"], "answer": NaN}', "JSON does not know"),
        ('{"verdict": "no", "sources": ["S1"], "answer": "a", "answer": "b"}', "twice"),
        ('{"sources": [{"a": 1, "a": 2}], "verdict": "no", "answer": "b"}', "twice"),
    ],
)
def test_what_is_no_answer_is_refused(reply: str | dict[str, Any], told: str) -> None:
    """Empty, malformed, doubled, incomplete and surplus objects are refused, each with its reason."""
    assert told in detail(reply)


@pytest.mark.parametrize(
    "reply",
    ['{"sources": ' + "1" * 5000 + "}", '{"sources": ' + "[" * 100_000, "{" * 100_000, '{"a":' * 5000],
    ids=["long number", "deep list", "braces", "deep object"],
)
def test_a_reply_made_to_break_the_reader_is_a_refusal(reply: str) -> None:
    """Numbers and nesting that Python's own reader gives up on end in a refusal, not in an exception."""
    detail(reply)


@pytest.mark.parametrize(
    "reply",
    [
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"<think>a {{b}} </think>{TEXT}",
        f"Here you are:\n{TEXT}\nI hope that this helps.",
        TEXT.replace("answered", " Answered "),
        TEXT.replace("Within 21 days [S1].", "Within 21\ndays [S1]."),
    ],
    ids=["mark", "fence", "thinking", "prose", "verdict in capitals", "line break"],
)
def test_what_a_model_adds_around_an_answer_is_no_fault(reply: str) -> None:
    """A byte order mark, a fence, thinking, prose and a bare line break in a string are accepted."""
    assert ask(reply).answerable
    assert str(ask(reply)).split() == ["Within", "21", "days", "[S1]."]


@pytest.mark.parametrize(
    "written",
    ["S1", "[S1]", "s1", " S1 ", "【S1】", '["S1"]', '"S1"', ["S1"], ["[S1]"], ["s1", "S1"], ["1†S1"]],
)
def test_an_id_may_come_in_many_shapes(written: object) -> None:
    """A string, a bracket, a small letter and a list inside a string all name the first source."""
    response = ask({**OK, "sources": written})
    assert [citation.key for citation in response.citations] == ["S1"]
    assert response.grounded is not None
    assert response.grounded.invalid_source_ids == ()


@pytest.mark.parametrize("written", ["S1, S2", "S1;S2", ["S1 S2"], '["S1","S2"]', "[S1][S2]", "S1 and S2"])
def test_one_string_may_hold_several_ids(written: object) -> None:
    """Ids that stand together are told apart and keep their order."""
    citations = ask({**OK, "sources": written}).citations
    assert [citation.key for citation in citations] == ["S1", "S2"]


@pytest.mark.parametrize("written", ["S01", "１", "S１", "S²", "S٣", "1", "[999]", 1, "S 1", "S0", "S-1", "n0"])
def test_an_id_is_known_only_exactly(written: object) -> None:
    """What looks like a key but is none is unknown: zeros, other digits and bare numbers are not folded."""
    response = ask({**OK, "sources": [written], "answer": "Within 21 days."})
    assert response.refusal is not None
    assert response.refusal.reason == "no_valid_citation"
    assert response.grounded is not None
    assert response.grounded.invalid_source_ids == (str(written).strip("[]"),)


class Term(BaseModel):
    """One term of a longer answer."""

    days: int = Field(description="days from delivery")


class LongAnswer(GroundedAnswer):
    """An answer with fields of its own."""

    terms: list[Term]
    title: str


class Strict(GroundedAnswer):
    """An answer whose own check can not take every value."""

    days: int

    @field_validator("days", mode="before")
    @classmethod
    def _as_number(cls, value: Any) -> int:
        return int(value)


class Tree(GroundedAnswer):
    """An answer that holds itself."""

    children: list[Tree]


def test_a_subclass_may_ask_for_more() -> None:
    """Fields that a subclass adds are asked for and come back in the parsed answer."""
    response = ask({**OK, "terms": [{"days": 21}], "title": "Returns"}, LongAnswer)
    assert isinstance(response.parsed, LongAnswer)
    assert response.parsed.terms == [Term(days=21)]
    assert response.parsed.title == "Returns"
    assert ask(OK, LongAnswer).parsed is None


@pytest.mark.parametrize("days", [None, "some", [21]])
def test_a_validator_of_a_subclass_that_fails_refuses_the_reply(days: object) -> None:
    """Whatever a user's own validator raises over a model's words, the reply is unreadable and the query goes on."""
    refusal = ask({**OK, "days": days}, Strict).refusal
    assert refusal is not None
    assert refusal.reason == "invalid_output"


def test_an_answer_that_holds_itself_is_refused_at_once() -> None:
    """A recursive answer class has no schema that a server can enforce, so it fails at construction."""
    with pytest.raises(ConfigurationError, match="holds itself"):
        CitingSynthesizer(ScriptedLLM([OK]), output_cls=Tree)


@pytest.mark.parametrize(
    "words",
    ["It is impossible to answer from the files.", "I don't know.", "The sources do not say so explicitly."],
)
def test_words_never_decide_about_a_refusal(words: str) -> None:
    """An answer that sounds like a refusal is judged by its verdict and its sources alone."""
    response = ask({**OK, "answer": words})
    assert response.answerable
    assert str(response) == words
