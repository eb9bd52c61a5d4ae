"""The extractive answerer: which sentences it selects, and when it says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded import Verdict
from support.answering import extract
from support.sentences import Question, fit, split

GIFT = "## Gift cards\n\nA gift card cannot be turned into cash. It can be used for several orders."
TIERS = (
    "## Discounts\n\nThe discount depends on the number of copies:\n\n"
    "- Orders of 1–49 copies have no discount.\n"
    "- Orders of 50–199 copies get a discount of 15 %.\n"
    "- Orders of 200 copies or more get a discount of 22 %."
)
POINTS = "You can spend points on printed books, but not on gift cards."
TR = "## Hediye kartı\n\nHediye kartı nakde çevrilemez. Kartı siparişte kullanabilirsiniz."
SOURCES = [("S1", GIFT), ("S2", TIERS), ("S3", POINTS), ("S4", TR)]

texts = st.text(max_size=120)
sources = st.lists(st.tuples(st.sampled_from(["S1", "S2", "S3"]), texts), max_size=4)


@given(texts, sources)
def test_every_sentence_of_an_answer_stands_in_the_source_that_it_cites(
    question: str, given_sources: list[tuple[str, str]]
) -> None:
    """The answerer writes nothing of its own: its sentences are those of the cited sources."""
    chosen = extract(question, given_sources)
    if chosen.verdict is not Verdict.not_in_sources:
        known = {f"{sentence.text} [{sentence.key}]" for key, text in given_sources for sentence in split(key, text)}
        assert any(text in chosen.text for text in known)
        assert set(chosen.keys) <= {key for key, _ in given_sources}


@given(texts, sources)
def test_the_fit_is_a_share(question: str, given_sources: list[tuple[str, str]]) -> None:
    """Each sentence covers between nothing and all of a question."""
    sentences = [sentence for key, text in given_sources for sentence in split(key, text)]
    assert all(0.0 <= share <= 1.0 + 1e-9 for share in fit(Question.parse(question), sentences))


@given(texts, sources)
def test_the_same_prompt_gives_the_same_answer(question: str, given_sources: list[tuple[str, str]]) -> None:
    """Nothing is left to chance."""
    assert extract(question, given_sources) == extract(question, given_sources)


@given(st.integers(min_value=1, max_value=5000))
def test_a_number_of_copies_selects_the_tier_that_holds_it(copies: int) -> None:
    """Each number finds its own tier and never quotes another one's discount."""
    answer = extract(f"What discount do I get for {copies} copies?", SOURCES).text
    expected = "1–49" if copies < 50 else "50–199" if copies < 200 else "200 copies or more"
    tiers = [tier for tier in ("1–49", "50–199", "200 copies or more") if tier in answer]
    assert tiers == [expected]


@pytest.mark.parametrize(
    "question,verdict",
    [
        ("Can I turn a gift card into cash?", Verdict.no),
        ("Hediye kartı nakde çevrilebilir mi?", Verdict.no),
        ("Can I spend points on printed books?", Verdict.yes),
        ("Can I spend points on gift cards?", Verdict.no),
        ("What is a gift card turned into?", Verdict.answered),
        ("Can't a gift card be turned into cash?", Verdict.answered),
        ("Do you run a book club?", Verdict.not_in_sources),
        ("Kitap kulübünüz var mı?", Verdict.not_in_sources),
        ("", Verdict.not_in_sources),
    ],
)
def test_the_verdict_follows_the_sentence(question: str, verdict: Verdict) -> None:
    """Yes and no answer polar questions only, and only where the sentence affirms or denies what is asked."""
    assert extract(question, SOURCES).verdict is verdict


def test_a_condition_is_no_plain_yes() -> None:
    """A sentence that binds a yes to a condition answers without saying yes."""
    sources = [("S1", "A pre-order can be cancelled until the day before the publication date.")]
    assert extract("Can a pre-order be cancelled?", sources).verdict is Verdict.answered
