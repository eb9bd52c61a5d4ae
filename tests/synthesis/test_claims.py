"""Answers in claims: which claims stand, what they add up to, and when each is shown."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import field_validator

from llama_index_grounded import CitingSynthesizer, GroundedResult
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.schema import TextEvent
from llama_index_grounded.synthesis import Claim, ClaimedAnswer, GroundedResponse
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.testing import ScriptedLLM, make_nodes

NODES = make_nodes(["Return a book within 21 days.", "Gift cards are never paid out."], ids=["a", "b"])
QUESTION = "What can I return?"


def claim(text: str, *sources: str, quote: str = "") -> dict[str, Any]:
    """Write one claim as a model does."""
    return {"sources": list(sources), "quote": quote, "text": text}


def reply(*claims: dict[str, Any], sources: Any = ("S1",), verdict: str = "answered") -> dict[str, Any]:
    """Write an answer in claims as a model does."""
    return {"verdict": verdict, "sources": list(sources), "claims": list(claims)}


BOTH = reply(claim("Books within 21 days.", "S1"), claim("Gift cards never.", "S2"), sources=["S1", "S2"])


def ask(answer: Any, **options: Any) -> GroundedResult:
    """Return the result of one question, not streamed."""
    response = CitingSynthesizer(ScriptedLLM([answer]), output_cls=ClaimedAnswer, **options).synthesize(QUESTION, NODES)
    assert isinstance(response, GroundedResponse)
    return response.grounded


def stream(answer: Any, chunk_size: int | None = 1, **options: Any) -> tuple[list[str], GroundedResult]:
    """Return the texts and the result of one question, streamed."""
    llm = ScriptedLLM([answer], chunk_size=chunk_size)
    response = CitingSynthesizer(llm, output_cls=ClaimedAnswer, streaming=True, **options).synthesize(QUESTION, NODES)
    assert isinstance(response, GroundedStreamingResponse)
    return [event.text for event in response.events() if isinstance(event, TextEvent)], response.grounded


_ids = st.lists(st.sampled_from(["S1", "S2", "[s1]", "S9", "S1, S2"]), max_size=2)
_texts = st.lists(
    st.sampled_from(["Books.", " ", "21 days", "[S1]", "[S9]", "<source", "</source>", "😀", "`x`", "\u200b", "a\nb"]),
    max_size=4,
).map("".join)
_claims = st.builds(lambda sources, text: claim(text, *sources), _ids, _texts)


@settings(max_examples=60)
@given(
    claims=st.lists(_claims, max_size=4),
    sources=_ids,
    verdict=st.sampled_from(["answered", "no", "not_in_sources"]),
    chunk_size=st.none() | st.integers(1, 9),
    extra=st.sampled_from(["", "}", '{"a": 1}', " Done."]),
)
def test_a_stream_tells_what_the_whole_tells(
    claims: list[dict[str, Any]], sources: list[str], verdict: str, chunk_size: int | None, extra: str
) -> None:
    """Streamed in pieces of any size, the text and the result are those of the whole reply."""
    written = json.dumps(reply(*claims, sources=sources, verdict=verdict)) + extra
    texts, streamed = stream(written, chunk_size, max_retries=0)
    whole = ask(written, max_retries=0)
    assert "".join(texts) == streamed.answer
    unshown = {"elapsed_ms", "fingerprint", "answer"}
    assert streamed.model_dump(exclude=unshown) == whole.model_dump(exclude=unshown)
    assert streamed.answer == whole.answer or streamed.refusal is not None


@settings(max_examples=60)
@given(claims=st.lists(_claims, min_size=1, max_size=4))
def test_every_claim_stands_where_the_result_says(claims: list[dict[str, Any]]) -> None:
    """`answer[start:end]` is the claim, all its keys were shown, and the claims with a space between are the answer."""
    result = ask(reply(*claims), max_retries=0)
    keys = {source.key for source in result.sources}
    for found in result.claims:
        assert result.answer[found.start : found.end] == found.text
        assert found.keys
        assert set(found.keys) <= keys
    if result.answerable:
        assert " ".join(found.text for found in result.claims) == result.answer


def test_an_answer_is_the_join_of_its_claims() -> None:
    """Two claims become one text, with their own keys, and both sources are cited."""
    result = ask(BOTH)
    assert result.answer == "Books within 21 days. Gift cards never."
    assert [(found.text, found.keys) for found in result.claims] == [
        ("Books within 21 days.", ("S1",)),
        ("Gift cards never.", ("S2",)),
    ]
    assert [citation.node_id for citation in result.citations] == ["a", "b"]
    assert GroundedResult.model_validate_json(result.model_dump_json()) == result


UNKNOWN = reply(claim("Books within 21 days.", "S1"), claim("Pens within 7 days.", "S7"))


def test_a_claim_without_a_source_is_left_out() -> None:
    """A claim whose sources were never shown is not part of the answer; its ids and a warning say so."""
    result = ask(UNKNOWN)
    assert result.answer == "Books within 21 days."
    assert result.invalid_source_ids == ("S7",)
    assert result.warnings == ("claims left out since they name no source that was shown: 1",)


@pytest.mark.parametrize(
    "policy, calls, reason", [("drop", 1, None), ("refuse", 1, "invalid_citation"), ("retry", 2, None)]
)
def test_the_policy_for_unknown_ids_holds_for_claims(
    policy: Literal["drop", "refuse", "retry"], calls: int, reason: str | None
) -> None:
    """Dropped, refused, or asked for once more and then dropped, as for an answer in one piece."""
    result = ask(UNKNOWN, on_invalid_ids=policy)
    assert result.llm_calls == calls
    assert (result.refusal.reason if result.refusal else None) == reason


@pytest.mark.parametrize(
    "answer, reason",
    [
        (reply(claim("Pens.", "S7")), "no_valid_citation"),
        (reply(claim("Pens.")), "no_valid_citation"),
        (reply(), "invalid_output"),
        (reply(claim("[S1]", "S1"), claim(" ", "S1")), "invalid_output"),
        (reply(verdict="not_in_sources", sources=[]), "not_in_sources"),
        ({**BOTH, "claims": "none"}, "invalid_output"),
        ({**BOTH, "claims": {"a": claim("x", "S1")}}, "invalid_output"),
        ({**BOTH, "claims": [claim("x", "S1"), {"text": "y"}]}, "invalid_output"),
        ({**BOTH, "answer": "x"}, "invalid_output"),
    ],
)
def test_what_is_no_answer_in_claims_is_refused(answer: dict[str, Any], reason: str) -> None:
    """No claims, blank ones, none with a source, or another shape: a refusal with its reason, without citations."""
    result = ask(answer, max_retries=0)
    assert result.refusal is not None
    assert (result.refusal.reason, result.claims, result.citations) == (reason, (), ())


def test_own_sources_of_claims_are_enough() -> None:
    """A model that leaves the list at the top empty still cites, claim by claim."""
    assert [citation.key for citation in ask(reply(claim("Never.", "S2"), sources=[])).citations] == ["S2"]


def test_a_claim_is_shown_when_it_is_whole() -> None:
    """Each claim is one text event, none before its sources are known, and one without a source is none."""
    texts, result = stream({**UNKNOWN, "claims": [*UNKNOWN["claims"], claim("Gift cards never.", "S2")]})
    assert texts == ["Books within 21 days.", " Gift cards never."]
    assert result.answer == "".join(texts)


def test_a_claim_waits_for_the_verdict() -> None:
    """Where the claims come first, nothing is shown before a verdict that answers is known."""
    late = {"claims": BOTH["claims"], "sources": ["S1"], "verdict": "answered"}
    assert stream(late)[0] == ["Books within 21 days. Gift cards never."]
    assert stream({**late, "verdict": "not_in_sources"})[0] == ["The documents that I found do not answer this."]


async def test_claims_stream_in_async_too() -> None:
    """The async stream tells the same."""
    llm = ScriptedLLM([BOTH], chunk_size=5)
    synthesizer = CitingSynthesizer(llm, output_cls=ClaimedAnswer, streaming=True)
    response = await synthesizer.asynthesize(QUESTION, NODES)
    assert isinstance(response, AsyncGroundedStreamingResponse)
    texts = [event.text async for event in response.aevents() if isinstance(event, TextEvent)]
    assert texts == ["Books within 21 days.", " Gift cards never."]


class Dated(Claim):
    """A claim with a field more, and a validator that changes the text."""

    year: int

    @field_validator("text")
    @classmethod
    def _shout(cls, text: str) -> str:
        return text.upper()


class DatedAnswer(ClaimedAnswer):
    """An answer with such claims."""

    claims: list[Dated]  # type: ignore[assignment]


def test_claims_can_have_fields_of_your_own() -> None:
    """A subclass of `Claim` reaches the response; where it changes the text, that text is shown once it is known."""
    answer = reply({**claim("Books within 21 days.", "S1"), "year": 2026})
    llm = ScriptedLLM([answer], chunk_size=3)
    response = CitingSynthesizer(llm, output_cls=DatedAnswer, streaming=True).synthesize(QUESTION, NODES)
    assert isinstance(response, GroundedStreamingResponse)
    assert list(response.response_gen) == ["BOOKS WITHIN 21 DAYS."]
    parsed = response.get_response().parsed
    assert isinstance(parsed, DatedAnswer)
    assert parsed.claims[0].year == 2026


def test_the_schema_asks_for_the_sources_first() -> None:
    """Verdict, sources, claims; in a claim sources, quote, text: what the text needs arrives before it."""
    schema = schema_of(ClaimedAnswer)
    assert list(schema["properties"]) == ["verdict", "sources", "claims"]
    assert list(schema["properties"]["claims"]["items"]["properties"]) == ["sources", "quote", "text"]


def test_many_claims_cost_no_more_each() -> None:
    """A thousand claims are read in one go; nothing is looked at again for each."""
    answer = reply(*(claim(f"Book {place} within 21 days.", "S1") for place in range(1000)))
    texts, result = stream(answer, 7, max_answer_chars=100_000)
    assert len(texts) == len(result.claims) == 1000


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    "texts, answer",
    [
        (["see [S", "9] says"], "see [S\n\n9] says"),
        (["see [S1,", "S9] says"], "see [S1,\n\nS9] says"),
        (["odd ` mark", "in `[S9]` code"], "odd ` mark\n\nin `[S9]` code"),
        (["a </", "source> b", "c"], "a b c"),
        (["a <", 'source id="S9"> b', "c"], "a < b c"),
        (["see [S", "[S9] says", "c"], "see [S says c"),
        (["```\ncode", "x\n```\n[S9]\n```", "c"], "```\ncode c"),
    ],
)
def test_two_claims_make_no_marker_and_no_tag(texts: list[str], answer: str, inline: bool) -> None:
    """What is plain text in each of two claims stays so: they are kept apart, or the second does not stand."""
    whole = reply(*(claim(text, "S1") for text in texts))
    result = ask(whole, inline_citations=inline)
    assert result.answer == answer
    assert [result.answer[found.start : found.end] for found in result.claims] == [
        found.text for found in result.claims
    ]
    shown, streamed = stream(whole, inline_citations=inline)
    assert "".join(shown) == streamed.answer == answer


_halves = st.lists(
    st.sampled_from(
        [
            "[S",
            "[",
            "9]",
            "S9]",
            "1]",
            "S1]",
            ",",
            " ",
            "<",
            "</",
            "source",
            ">",
            "`",
            "```\n",
            "$",
            "x",
            "](",
            ")",
            "\n",
        ]
    ),
    max_size=5,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(_halves, max_size=4), inline=st.booleans(), chunk_size=st.integers(1, 9))
def test_the_joined_text_is_clean(texts: list[str], inline: bool, chunk_size: int) -> None:
    """Of the whole text nothing would be taken out, and the sources of its markers are cited, streamed or not."""
    written = reply(*(claim(text, "S2") for text in texts), sources=["S2"])
    result = ask(written, inline_citations=inline, max_retries=0)
    shown, streamed = stream(written, chunk_size, inline_citations=inline, max_retries=0)
    assert ("".join(shown), streamed.claims) == (result.answer, result.claims)
    if result.answerable:
        cleaned = clean_answer(result.answer, ["S1", "S2"], inline_citations=inline, escapes="none")
        assert (cleaned.text, cleaned.unknown) == (result.answer, ())
        assert set(cleaned.keys) <= {citation.key for citation in result.citations}
