"""Alike sentences of two documents with another number, date, negation, opposite or name are found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_grounded.selection.disagreement import Disagreement, disagreements
from tests.hostile import texts
from tests.timing import assert_within

QUESTION = "Within how many days can printed books be returned?"
NEW = "Printed books can be returned within 21 days of delivery. Gift cards are sent by post."
OLD = "Printed books can be returned within 14 days of delivery. Gift cards are sent by post."
ELSE = "The shop in Izmir was opened in 1998 by two sisters."
PIECES = [*NEW.split(". "), *OLD.split(". "), ELSE, "- Music is not returned", "| days | 30 |", "## Returns", ""]


def details(*given_texts: str, question: str = QUESTION) -> list[str]:
    """Find what texts of different documents disagree about."""
    return [found.detail for found in disagreements(given_texts, range(len(given_texts)), question)]


# Laws


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("\n".join) | texts(max_pieces=4), max_size=5), st.data()
)
def test_what_is_found_is_well_formed(drawn: list[str], data: st.DataObject) -> None:
    """Each pair is found once, in order, between documents that differ, best first, with a score from 0 to 1."""
    documents = data.draw(st.lists(st.sampled_from("ab"), min_size=len(drawn), max_size=len(drawn)))
    found = disagreements(drawn, documents, QUESTION)
    pairs = [(one.first, one.second) for one in found]
    assert len(set(pairs)) == len(pairs)
    for one in found:
        assert 0 <= one.first < one.second < len(drawn)
        assert documents[one.first] != documents[one.second]
        assert 0 <= one.score <= 1
        assert 0 < len(one.detail) <= 120
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@given(st.lists(st.sampled_from(PIECES), max_size=4).map("\n".join))
def test_equal_texts_agree(text: str) -> None:
    """A text does not disagree with itself, whoever else has it."""
    assert disagreements([text, text, text], "abc", QUESTION) == []


@given(st.permutations([NEW, OLD, ELSE]))
def test_the_order_of_the_texts_does_not_matter(drawn: list[str]) -> None:
    """The same two texts are found wherever they stand."""
    found = disagreements(drawn, range(3), QUESTION)
    assert [{drawn[one.first], drawn[one.second]} for one in found] == [{NEW, OLD}]


# Cases


def test_another_number_is_found() -> None:
    """Two versions with another number in the same sentence are one finding, with what each says."""
    found = disagreements([NEW, ELSE, OLD], ["new", "else", "old"], QUESTION)
    assert found == [Disagreement(0, 2, found[0].score, "21 days against 14 days")]


def test_texts_of_one_version_are_not_compared() -> None:
    """Documents and versions are told apart by any hashable value; None is one."""
    assert disagreements([NEW, OLD], [("a", "1"), ("a", "1")], QUESTION) == []
    assert disagreements([NEW, OLD], [None, None], QUESTION) == []
    assert len(disagreements([NEW, OLD], [("a", "1"), ("a", "2")], QUESTION)) == 1


@pytest.mark.parametrize(
    "one,other,expected",
    [
        (
            "Sealed music can be returned by post.",
            "Sealed music can not be returned by post.",
            "no negation against not retur",
        ),
        ("The lease flag is enabled by default.", "The lease flag is disabled by default.", "enabled against disabled"),
        (
            "Effective date: October 11, 2017",
            "Effective date: August 1, 2024",
            "October 11, 2017 against August 1, 2024",
        ),
        ("| plan | price | 20 TL |", "| plan | price | 30 TL |", "20 TL against 30 TL"),
        ("- late fee is %5 a month", "* late fee is %7 a month", "%5 against %7"),
        ("1. Ship parcels within 2 days", "7. Ship parcels within 3 days", "2 days against 3 days"),
        ("## Limit\ndefault: 10", "## Limit\ndefault: 20", "10 against 20"),
        ("```\nrun --count 10 --now\n```", "```\nrun --count 20 --now\n```", "10 against 20"),
        ("Açılmış müzik iade edilir.", "Açılmış müzik iade edilmez.", "no negation against not edil"),
        ("Kitaplar 14 gün içinde iade edilir.", "Kitaplar 21 gün içinde iade edilir.", "14 gün against 21 gün"),
        ("退货期限为14天。", "退货期限为30天。", "14 against 30"),
        (
            "The former club house in the old town of Manila, built of white stone, was designed by William Parsons.",
            "The former club house in the old town of Manila, built of white stone, was designed by Frank Wright.",
            "William Parsons against Frank Wright",
        ),
        (
            "Restore the cluster from the snapshot file with etcd-ctl.",
            "Restore the cluster from the snapshot file with etcd-utl.",
            "etcd-ctl against etcd-utl",
        ),
    ],
)
def test_kinds_of_disagreement(one: str, other: str, expected: str) -> None:
    """Sentences, items, rows and lines of code with another number, date, negation, opposite or name are found."""
    assert details(one, other) == [expected]


@pytest.mark.parametrize(
    "one,other",
    [
        ("Books can be returned within 21 days.", "Books can be returned."),
        ("Books can be returned within 21 days.", "Books can be returned within twenty-one days."),
        ("Books can be returned within 21 days.", "The shop in Izmir is open for 9 hours."),
        ("## Version 21\nBooks can be returned.", "## Version 14\nBooks can be returned."),
        ("| host | port 80 |\n| mail | port 25 |", "| mail | port 25 |\n| host | port 80 |"),
        ("1. Ship the parcels soon", "2. Ship the parcels soon"),
        ("Return books to the shop", "Return books to the store"),
        ("", "   \n\n"),
    ],
)
def test_what_is_no_disagreement(one: str, other: str) -> None:
    """What one leaves out, another notation, subject, heading, order, list number or synonym contradicts nothing."""
    assert details(one, other) == []


def test_what_the_question_asks_comes_first() -> None:
    """Of two disagreements the one that shares words with the question has the better score and is the one told."""
    one = "Gift vouchers stay valid for 12 months. Books can be returned within 21 days."
    other = "Gift vouchers stay valid for 24 months. Books can be returned within 14 days."
    assert details(one, other) == ["21 days against 14 days"]
    assert details(one, other, question="How long do gift vouchers stay valid?") == ["12 months against 24 months"]
    assert len(details(one, other, question="")) == 1


def test_twenty_texts_are_cheap() -> None:
    """20 texts of 200 words that disagree in many places take little time."""
    lines = [f"The {name} of the parcel is sent within {{}} days by the {name} office." for name in "abcdefghijklmno"]
    drawn = ["\n\n".join(line.format(at + 3) for line in lines) for at in range(20)]
    disagreements(drawn, range(20), QUESTION)
    assert assert_within(1, lambda: disagreements(drawn, range(20), QUESTION))


@pytest.mark.parametrize(
    "piece", ["book ", "book return day 1. ", "- a b c 1\n", "| ", "a.b-", "not ", "。", '." ', "```\n"]
)
def test_hostile_texts_are_bounded(piece: str) -> None:
    """Long repetitive texts take bounded time."""
    drawn = [piece * (40_000 // len(piece)) + str(at) for at in range(6)]
    assert_within(5, lambda: disagreements(drawn, range(6), QUESTION))


@pytest.mark.parametrize("one, other", [("1.200,50", "1,200.50"), ("1200,50", "1200.50"), ("1 200,50", "1.200,50")])
def test_one_amount_in_two_notations_is_no_disagreement(one: str, other: str) -> None:
    """The same number written in two ways says the same."""
    texts = [f"The course costs {amount} TL per person." for amount in (one, other)]
    assert disagreements(texts, ["a", "b"], "What does the course cost per person?") == []
    texts[1] = "The course costs 1,300.50 TL per person."
    assert len(disagreements(texts, ["a", "b"], "What does the course cost per person?")) == 1
