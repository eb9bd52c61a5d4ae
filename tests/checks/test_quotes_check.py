"""`QuoteCheck` judges the quotes of an answer in claims, and says where each stands."""

from __future__ import annotations

import json
import pickle
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.quotes import MAX_QUOTE, QuoteCheck
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import AnswerClaim, CheckResult, SourceRef, Span
from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext, ShownSource
from tests.checks.number_cases import context
from tests.hostile import texts

SOURCES = {
    "S1": "Books may be returned within 21\u00a0days of delivery.",
    "S2": "E-books are not refundable; “gift cards” never expire.",
    "S3": "İade süresi 21 gündür. Write if aa < bb && cc:",
    "S4": "",
}


def claims(*quotes: tuple[str, str]) -> list[AnswerClaim]:
    """Make claims of ten characters each from pairs of keys and a quote."""
    return [
        AnswerClaim(text="A claim.", start=10 * at, end=10 * at + 8, keys=tuple(keys.split()), quote=quote)
        for at, (keys, quote) in enumerate(quotes)
    ]


def check(*quotes: tuple[str, str], cited: tuple[str, ...] = ("S1",), **options: Any) -> CheckResult:
    """Run the check over `SOURCES`."""
    sources = {
        key: ShownSource(ref=SourceRef(key=key, node_id=key, document_id=key, chunk_id=key), text=text)
        for key, text in SOURCES.items()
    }
    context = CheckContext(question="", answer="", sources=sources, cited=cited, claims=tuple(claims(*quotes)))
    return QuoteCheck(**options).check(context)


@given(st.lists(st.tuples(st.sampled_from(["", "S1", "S2 S1", "S4", "S9"]), texts())), st.booleans())
def test_each_quote_is_reported_once_and_nothing_raises(quotes: list[tuple[str, str]], require: bool) -> None:
    """Whatever a model writes, the result names each quote in order, and fails for exactly those that it lacks."""
    result = check(*quotes, require=require)
    written = [claim for claim in claims(*quotes) if claim.quote.strip()]
    assert [match.quote for match in result.quotes] == [claim.quote for claim in written]
    lacking = sum(match.key is None for match in result.quotes) + require * (len(quotes) - len(written))
    assert len(result.spans) == lacking
    expected = "failed" if lacking else "passed" if written else "skipped"
    assert result.status == expected
    assert CheckResult.model_validate_json(result.model_dump_json()) == result


@given(st.sampled_from(["S1", "S2", "S3"]), st.data())
def test_what_is_cut_from_a_source_stands_in_it(key: str, data: st.DataObject) -> None:
    """The match of three words or more holds the passage itself, with its place in the included text."""
    words = [word for word in SOURCES[key].split(" ") if word]
    first = data.draw(st.integers(0, len(words) - 3))
    quote = " ".join(words[first : first + data.draw(st.integers(3, len(words)))])
    match = check((key, quote)).quotes[0]
    if match.key is None:
        assert "refundable" in quote  # cut beside "not"
    else:
        assert (match.key, match.moved, match.text) == (key, False, quote)
        start = SOURCES[key].index(quote)
        assert (match.start, match.end) == (start, start + len(quote))


def test_the_sources_that_the_claim_names_come_first() -> None:
    """A passage that two sources hold is found in the one that the claim names, in the order of its keys."""
    assert check(("S3", "21")).quotes[0].key == "S3"
    assert check(("S2 S3 S1", "21")).quotes[0].key == "S3"
    assert check(("S1 S3", "21")).quotes[0].key == "S1"


def test_then_come_the_cited_sources_and_then_all() -> None:
    """A passage elsewhere passes, marked as moved and named; a cited source comes before one that is not."""
    result = check(("S2", "21"), cited=("S2", "S3"))
    assert (result.status, result.quotes[0].key, result.quotes[0].moved) == ("passed", "S3", True)
    assert result.detail == "'21' stands in S3, named was S2"
    assert check(("S2", "21"), cited=("S2",)).quotes[0].key == "S1"
    assert check(("", "21")).quotes[0].moved


def test_a_quote_that_stands_nowhere_fails_with_its_claim() -> None:
    """The claim's place in the answer is returned, and the quote with the keys that were named."""
    result = check(("S1", "within 21 days"), ("S2", "within 30 days"), ("S4", "anything at all"))
    assert result.status == "failed"
    assert result.spans == (Span(start=10, end=18), Span(start=20, end=28))
    assert [match.key for match in result.quotes] == ["S1", None, None]
    assert result.detail == (
        "'within 30 days' stands in no source, named was S2; 'anything at all' stands in no source, named was S4"
    )


@pytest.mark.parametrize(
    "quote",
    [
        *(
            "if aa < bb && cc:",
            "if aa &lt; bb && cc:",
            '"if aa < bb"',
            "“Write if aa &lt; bb”",
            "«İade süresi 21 gündür.»",
            "'İade süresi'",
        ),
        "\n  İade   süresi\n",
    ],
)
def test_escaping_and_marks_around_a_quote_are_taken_off(quote: str) -> None:
    """A model may repeat the escaping of the prompt, and put its quote in quote marks."""
    match = check(("S3", quote)).quotes[0]
    assert (match.key, match.quote) == ("S3", quote)
    assert match.text is not None
    assert match.text[0] not in "\"“«' \n"


def test_marks_that_belong_to_the_passage_are_part_of_it() -> None:
    """Quote marks that stand in the source are in the passage that is returned."""
    assert check(("S2", '"gift cards" never expire')).quotes[0].text == "“gift cards” never expire"


@pytest.mark.parametrize("quote", [".", "5", "…", "“”", "[...]", "é"])
def test_a_quote_that_proves_nothing_fails(quote: str) -> None:
    """Punctuation or a single letter fails, with the reason."""
    result = check(("S1", quote))
    assert result.status == "failed"
    assert "too short to prove anything" in result.detail


def test_a_quote_has_a_longest_length() -> None:
    """A quote of more than `MAX_QUOTE` characters fails with the reason, and the detail stays short."""
    result = check(("S1", "within 21 days " * MAX_QUOTE))
    assert result.status == "failed"
    assert f"longer than {MAX_QUOTE} characters" in result.detail
    assert len(result.detail) < 200
    assert check(("S1", f"{' ' * (MAX_QUOTE - 7)}21 days")).status == "passed"


def test_without_claims_or_quotes_the_check_is_skipped() -> None:
    """What could not be checked is never passed."""
    assert check().status == "skipped"
    assert check().detail == "the answer does not come in claims"
    assert check(("S1", ""), ("S1", " \n")).status == "skipped"
    assert check(("S1", "")).detail == "no claim has a quote"


def test_a_quote_can_be_required() -> None:
    """With ``require`` a claim without a quote fails, next to others that pass; without, only quotes are judged."""
    result = check(("S1", "21 days"), ("S1", ""), require=True)
    assert (result.status, result.spans) == ("failed", (Span(start=10, end=18),))
    assert result.detail == "a claim has no quote"
    assert check(("S1", "21 days"), ("S1", "")).status == "passed"
    assert check(require=True).status == "skipped"


@pytest.mark.parametrize("options", [{"on_fail": "raise"}, {"on_fail": None}, {"on_fail": ["flag"]}, {"require": 1}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A wrong value is refused when the check is made, not when it runs."""
    with pytest.raises(ConfigurationError):
        QuoteCheck(**options)


def test_the_check_is_a_plain_value() -> None:
    """It fits the protocol, compares by its options, can not be changed and survives pickling."""
    made = QuoteCheck(on_fail="retry", require=True)
    assert isinstance(made, AnswerCheck)
    assert (made.name, made.on_fail) == ("quotes", "retry")
    assert pickle.loads(pickle.dumps(made)) == made != QuoteCheck()  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        made.require = False  # type: ignore[misc]


def test_the_detail_is_ready_for_a_log_line() -> None:
    """Line ends and halves of surrogate pairs in a quote do not reach the detail as they are."""
    detail = check(("S1", "no\nsuch \ud800 passage")).detail
    assert "\n" not in detail
    assert json.loads(json.dumps(detail)) == detail
    assert detail.encode()


@pytest.mark.parametrize(
    "quote, text, part",
    [
        ("be returned", "Such books cannot be returned.", "cannot be returned"),
        ("Kargo ücreti 49", "Kargo ücreti 49,90 TL", "Kargo ücreti 49,90"),
        ("Ankara", "Depo Ankara'da durur", "Ankara'da"),
        ("The store", "The store’s policy", "The store’s"),
        ("able", "is unable to", "unable"),
        ("Books may", "Books may **not** be returned", "Books may **not**"),
        ("21", "within 21 bin gün", "21 bin"),
        ("İADE SÜRESİ", "İADE SÜRESİ'NDEN önce", "İADE SÜRESİ'NDEN"),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_quote_that_is_cut_is_said_to_be_cut(quote: str, text: str, part: str, form: Any) -> None:
    """The detail names the source and the words that the quote is a part of, as they stand there."""
    text, part = (unicodedata.normalize(form, words) for words in (text, part))
    given = context("A claim.", {"S1": "-", "S2": text}, claims=[("A claim.", ("S1",))], quotes=[quote])
    result = QuoteCheck().check(given)
    assert result.status == "failed"
    assert result.detail == f"{quote!r} stands in S2 only as a part of {part!r}: the cut changes what it says"


def test_a_long_part_is_shown_by_its_ends() -> None:
    """The detail stays short, and both ends of the part, where the cut is, are in it."""
    given = context("C.", {"S1": f"un{'able ' * 400}ending"}, claims=[("C.", ("S1",))], quotes=[f"{'able ' * 400}end"])
    detail = QuoteCheck().check(given).detail
    assert "'unable able" in detail
    assert "able ending'" in detail
    assert len(detail) < 300
