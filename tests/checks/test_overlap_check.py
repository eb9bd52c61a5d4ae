"""What OverlapCheck says of answers, and of what it can not judge."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_grounded.checks.overlap import OverlapCheck, support
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import AnswerClaim, QuoteMatch, SourceRef
from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext, ShownSource
from tests import hostile
from tests.checks.overlap_cases import ANSWERS, RULES


def given_context(
    answer: str,
    sources: Mapping[str, str] | None = None,
    *,
    cited: tuple[str, ...] | None = None,
    claims: tuple[AnswerClaim, ...] = (),
    title: str = "",
    section: str = "",
) -> CheckContext:
    """Return what the check is given; without more, one source, and it is cited."""
    shown = {
        key: ShownSource(
            ref=SourceRef(key=key, node_id=key, document_id=key, chunk_id=key),
            text=text,
            shown={"title": title, "section": section},
        )
        for key, text in ({"S1": RULES} if sources is None else sources).items()
    }
    cited = tuple(shown) if cited is None else cited
    return CheckContext(question="", answer=answer, sources=shown, cited=cited, claims=claims)


@given(hostile.texts(), st.lists(hostile.texts(), max_size=3), hostile.texts())
@settings(max_examples=60)
def test_no_text_is_too_odd(answer: str, sources: list[str], question: str) -> None:
    """Any answer, sources and question give a value from 0 to 1, and the check a result that holds together."""
    assert 0 <= support(answer, sources, question) <= 1
    context = given_context(answer, {f"S{at}": text for at, text in enumerate(sources, 1)})
    result = OverlapCheck().check(context)
    assert (result.score is None) is (result.status == "skipped")
    assert bool(result.spans) is (result.status == "failed")
    assert all(answer[span.start : span.end].strip() for span in result.spans)


@given(ANSWERS, ANSWERS, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_only_fails_more(answer: str, source: str, one: float, other: float) -> None:
    """What fails at a threshold fails at every higher one, and with the same score."""
    context = given_context(answer, {"S1": source})
    low, high = (OverlapCheck(threshold=bound).check(context) for bound in sorted((one, other)))
    assert {span.start for span in low.spans} <= {span.start for span in high.spans}
    assert low.score == high.score == support(answer, [source])


def test_a_failure_says_what_and_where() -> None:
    """The span is the weak sentence with its marker, and the detail names numbers, then names, then words."""
    answer = "A book may be returned within 30 days [S1]. The branch in Konya charges $9 [S1]."
    result = OverlapCheck().check(given_context(answer))
    (span,) = result.spans
    assert answer[span.start : span.end] == "The branch in Konya charges $9 [S1]."
    assert result.status == "failed"
    assert result.score == 0.0
    assert result.detail == ('"The branch in Konya charges $9 [S1]." has 0.00, missing: $9, Konya, branch, charges')


def test_a_negation_is_named() -> None:
    """The detail names the word that is negated on one side only."""
    result = OverlapCheck(threshold=1).check(given_context("Damaged books may be returned."))
    assert "negated on one side only: returned" in result.detail


def test_many_weak_sentences_are_counted() -> None:
    """All weak sentences are spans; the detail shows five and counts the rest."""
    result = OverlapCheck().check(given_context("Cats sleep. " * 8))
    assert len(result.spans) == 8
    assert result.detail.endswith("; and 3 more")


def test_only_cited_sources_count() -> None:
    """An answer is held against what it cites, not against all that was shown."""
    sources = {"S1": "Cats sleep a lot.", "S2": RULES}
    answer = "Damaged books may not be returned."
    assert OverlapCheck().check(given_context(answer, sources, cited=("S1",))).status == "failed"
    assert OverlapCheck().check(given_context(answer, sources, cited=("S2",))).status == "passed"


@pytest.mark.parametrize("field", ["title", "section"])
def test_a_heading_is_part_of_its_source(field: str) -> None:
    """The words of a source's title and section may stand in an answer, and so may their numbers."""
    answer = "The 2026 Opening Hours Policy says the library in Ankara opens at 9:00."
    heading = "2026 opening hours policy"
    headed = given_context(answer, title=heading) if field == "title" else given_context(answer, section=heading)
    titled = OverlapCheck().check(headed).score
    plain = OverlapCheck().check(given_context(answer)).score
    assert titled is not None
    assert plain is not None
    assert titled > plain


def test_each_claim_has_its_own_sources() -> None:
    """A claim is compared with the sources that it names; one that names none, with all cited ones."""
    answer = "Cats sleep a lot. Damaged books may not be returned."
    sources = {"S1": "Cats sleep a lot.", "S2": RULES}

    def claims(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[AnswerClaim, ...]:
        return (
            AnswerClaim(text=answer[:17], start=0, end=17, keys=first),
            AnswerClaim(text=answer[18:], start=18, end=len(answer), keys=second),
        )

    right = OverlapCheck().check(given_context(answer, sources, claims=claims(("S1",), ("S2",))))
    wrong = OverlapCheck().check(given_context(answer, sources, claims=claims(("S1",), ("S1",))))
    free = OverlapCheck().check(given_context(answer, sources, claims=claims((), ())))
    assert (right.status, right.score) == ("passed", 1.0)
    assert [(span.start, span.end) for span in wrong.spans] == [(18, len(answer))]
    assert free.status == "passed"


def test_a_moved_quote_brings_its_source() -> None:
    """Where the quote of a claim was found in another source than it names, the claim is compared with that too."""
    answer, quote = "Damaged books may not be returned.", "may not be returned"
    claim = AnswerClaim(text=answer, start=0, end=len(answer), keys=("S1",), quote=quote)
    given = given_context(answer, {"S1": "Cats sleep.", "S2": RULES}, cited=("S1",), claims=(claim,))
    match = QuoteMatch(quote=quote, keys=("S1",), key="S2", moved=True)
    assert OverlapCheck().check(given).status == "failed"
    assert OverlapCheck().check(replace(given, found=(match,))).status == "passed"


def test_claims_are_cut_where_they_meet() -> None:
    """Two claims without full stops are two sentences, each with its own sources."""
    answer = "Cats sleep a lot and damaged books may not be returned"
    claims = (
        AnswerClaim(text=answer[:16], start=0, end=16, keys=("S1",)),
        AnswerClaim(text=answer[21:], start=21, end=len(answer), keys=("S2",)),
    )
    result = OverlapCheck().check(given_context(answer, {"S1": "Cats sleep a lot.", "S2": RULES}, claims=claims))
    assert (result.status, result.detail) == ("passed", "sentences compared: 2")


@pytest.mark.parametrize("answer", ["", " \n", "[S1]", "I hope this helps!", "Would you like more?", "Yes.", "# Fees"])
def test_an_answer_that_claims_nothing_is_skipped(answer: str) -> None:
    """Where there is nothing to compare the check says so, and does not pass."""
    result = OverlapCheck().check(given_context(answer))
    assert result.status == "skipped"
    assert result.detail in {
        "no sentence of the answer claims something",
        "no sentence of the answer has a word or number to compare",
    }
    assert result.score is None
    assert support(answer, [RULES]) == 1.0


def test_no_cited_source_is_skipped() -> None:
    """Without a cited source there is nothing to compare with."""
    result = OverlapCheck().check(given_context("Books are free.", cited=()))
    assert (result.status, result.detail) == ("skipped", "the answer cites no source")
    assert support("Books are free.", []) == 0.0


def test_another_script_is_skipped_and_another_language_fails() -> None:
    """A translation can not be judged by words: by its script it is told, else it fails."""
    chinese, turkish = "破损的书不能退还。", "Hasarlı kitaplar iade edilmez."
    assert OverlapCheck().check(given_context(chinese)).status == "skipped"
    assert OverlapCheck().check(given_context(turkish)).status == "failed"
    mixed = given_context(chinese, {"S1": RULES, "S2": f"{chinese} 谢谢。"})
    assert OverlapCheck().check(mixed).status == "passed"


@pytest.mark.parametrize("answer, score", [("30", 1.0), ("90", 0.0), ("Ankara", 1.0), ("Konya", 0.0), ("$5, 30", 1.0)])
def test_one_word_or_only_numbers(answer: str, score: float) -> None:
    """A single word or number stands in the source or it does not."""
    assert OverlapCheck().check(given_context(answer)).score == score


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf, "0.5", None, True])
def test_bad_thresholds_are_refused(threshold: object) -> None:
    """A threshold is a number from 0 to 1; NaN and booleans are none."""
    with pytest.raises(ConfigurationError, match="threshold"):
        OverlapCheck(threshold=threshold)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_bad_on_fail_is_refused() -> None:
    """What becomes of a failed answer is one of three words."""
    with pytest.raises(ConfigurationError, match="on_fail"):
        OverlapCheck(on_fail="ignore")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_it_is_an_answer_check() -> None:
    """It has the form of a check, is frozen, and comes back from a pickle as it was."""
    check = OverlapCheck(on_fail="retry", threshold=0.7)
    assert isinstance(check, AnswerCheck)
    assert (check.name, check.on_fail) == ("overlap", "retry")
    assert pickle.loads(pickle.dumps(check)) == check  # noqa: S301
    with pytest.raises(AttributeError):
        check.threshold = 0.1  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
