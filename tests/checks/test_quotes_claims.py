"""A quote names its claim, so that both can be shown together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded import CitingSynthesizer, GroundedResult
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.schema import CheckResult, QuoteMatch
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.checks.test_quotes_check import check, claims
from tests.hostile import texts

NODES = make_nodes(["Books can be returned within 21 days.", "Keep the receipt until then."])


@given(st.lists(st.tuples(st.sampled_from(["", "S1", "S2 S1", "S9"]), texts()), max_size=6))
def test_every_quote_names_the_claim_that_it_stands_in(quotes: list[tuple[str, str]]) -> None:
    """Found or not, each match has the quote and the keys of the claim at its place, in the order of the claims."""
    made, result = claims(*quotes), check(*quotes)
    places = [match.claim for match in result.quotes]
    assert places == [place for place, claim in enumerate(made) if claim.quote.strip()]
    for match in result.quotes:
        assert match.claim is not None
        assert (match.quote, match.keys) == (made[match.claim].quote, made[match.claim].keys)
    assert CheckResult.model_validate_json(result.model_dump_json()) == result


def test_two_claims_with_one_quote_are_told_apart() -> None:
    """The same quote with the same keys, on both sides of a claim without one, belongs to the first and the third."""
    result = check(("S1", "21 days"), ("S1", ""), ("S1", "21 days"))
    assert [(match.claim, match.key) for match in result.quotes] == [(0, "S1"), (2, "S1")]


def test_the_place_counts_in_the_claims_of_the_result() -> None:
    """Claims that name no source that was shown are left out of the answer, and are not counted."""
    written = [
        {"sources": ["S9"], "quote": "Books can be returned", "text": "Never."},
        {"sources": ["S1"], "quote": "within 21 days", "text": "You have 21 days."},
        {"sources": ["S2"], "quote": "", "text": "Keep it."},
        {"sources": ["S2"], "quote": "at home", "text": "Keep it at home."},
    ]
    reply = {"verdict": "answered", "sources": ["S1", "S2"], "claims": written}
    synthesizer = CitingSynthesizer(ScriptedLLM([reply]), output_cls=ClaimedAnswer, checks=[QuoteCheck()])
    result = synthesizer.synthesize("How long?", NODES).grounded
    told = [(result.claims[match.claim or 0].text, match.key) for match in result.checks[0].quotes]
    assert told == [("You have 21 days.", "S1"), ("Keep it at home.", None)]
    assert GroundedResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("place", [None, 0, 7])
def test_a_match_is_frozen_and_survives_json(place: int | None) -> None:
    """With and without a claim; a match that was stored before the field existed belongs to the whole answer."""
    match = QuoteMatch(quote="q", keys=("S1",), claim=place)
    assert QuoteMatch.model_validate_json(match.model_dump_json()) == match
    assert QuoteMatch.model_validate_json('{"quote": "q", "keys": ["S1"]}').claim is None
    with pytest.raises(ValueError, match="frozen"):
        match.claim = 1
