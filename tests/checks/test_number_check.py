"""What NumberCheck says of answers: rule by rule, in English and Turkish."""

from __future__ import annotations

import pytest

from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import QuoteMatch
from llama_index_grounded.synthesis.checking import AnswerCheck
from tests.checks.number_cases import context, failing, supported


@pytest.mark.parametrize(
    "source, answer",
    [
        ("Revenue was 1.200,50 TL.", "It was 1,200.50 TL [S1]."),
        ("Nüfus 1.200 kişi.", "There were 1200 people."),
        ("Ratio 1.200", "The ratio is 1.2."),
        ("İndirim %22'dir.", "The discount is 22 percent [S1]."),
        ("yüzde yirmi iki indirim", "22 % off"),
        ("İade süresi yirmi iki gündür.", "You have 22 days [S1]."),
        ("Return it within 21 days.", "A 21-day window."),
        ("24 ay taksit", "24'lük taksit"),
        ("2,5 milyon kişi", "2.5M people"),
        ("5 thousand copies", "5.000 kopya"),
        ("one day, two books", "1 day and 2 books"),
        ("It costs $5.", "It costs 5 USD."),
        ("Fiyat ₺5", "5 lira"),
        ("Price in euro: 5", "It costs 5 €."),
        ("It costs $5.", "The price is 5."),
        ("1 Mart 2026'da başladı", "It began on March 1, 2026."),
        ("From 01.03.2026 on", "since March 2026"),
        ("From 01.03.2026 on", "since 2026"),
        ("On 1/3/2026", "on 3 January 2026"),
        ("Schedule 2026: opens 1 March", "It opens on 1 March 2026."),
        ("at 2:30 pm", "at 14:30"),
        ("at 2:30 pm", "at 2:30"),
        ("50–199 copies", "from 50 to 199 copies"),
        ("50–199 copies", "at least 50 copies"),
        ("50 ile 199 arasında", "between 50 and 199"),
        ("%10 ila 30", "10–30 %"),
        ("1922–26", "1922–1926"),
        ("Requires 3.6.1.", "Version 3.6.1 is needed; any 3.6.x works."),
        ("v3.10", "Python 3.10"),
        ("Article 3", "the 3rd article"),
        ("the fifth floor", "5th floor"),
        ("4 out of 5 stars", "4/5 stars"),
        ("Yarısı: 0,5", "½"),
        ("-5 °C", "−5 °C"),
        ("call 0212-555-01-01", "call 02125550101"),
        ("ISBN 9780306406157", "ISBN 978-0-306-40615-7"),
        ("See `retries = 22`", "Set `retries` to 22."),
        ("٢٢ كتاب", "22 books"),
        ("100 200 300", "200 is the second"),
    ],
)
def test_supported(source: str, answer: str) -> None:
    """The answer says the same number in its own notation, or less than the source says."""
    assert supported(answer, source)


@pytest.mark.parametrize(
    "source, answer, wrong",
    [
        ("87% of users, in 2021", "85% of users, in 2022", ["85%", "2022"]),
        ("22 days", "22 %", ["22 %"]),
        ("22 %", "22 days", ["22"]),
        ("22 gün", "yüzde 22", ["yüzde 22"]),
        ("$5", "5 €", ["5 €"]),
        ("5 TL", "5 dolar", ["5 dolar"]),
        ("50–199 copies", "120 copies", ["120"]),
        ("50–199 copies", "50–250 copies", ["50–250"]),
        ("Needs 3.6.1.", "Needs v3.6.", ["v3.6"]),
        ("Needs 3.6.", "Needs 3.6.1.", ["3.6.1"]),
        ("Needs v3.7.1.", "Any 3.6.x works.", ["3.6.x"]),
        ("since March 2026", "since 1 March 2026", ["1 March 2026"]),
        ("1 March 2025, 2 March 2026", "2 April 2026", ["2 April 2026"]),
        ("at 2:30 pm", "at 2:30 am", ["2:30 am"]),
        ("at 2:30", "at 2:30 pm", ["2:30 pm"]),
        ("-5 °C", "5 °C", ["5"]),
        ("yirmi iki gün", "yirmi üç gün", ["yirmi üç"]),
        ("thirty days", "forty days", ["forty"]),
        ("2 milyon", "2 milyar", ["2 milyar"]),
        ("the 4th", "the 5th", ["5th"]),
        ("x² and H₂O", "2 and 2", ["2", "2"]),
        ("https://a.b/22", "22 days", ["22"]),
        ("on the bin", "10 or 1000", ["10", "1000"]),
        ("call 0212 555 01 01", "call 0212 555 01 02", ["0212 555 01 02"]),
        ("10 out of 50", "4/5", ["4/5"]),
    ],
)
def test_not_supported(source: str, answer: str, wrong: list[str]) -> None:
    """The answer says a number that the source does not, and the spans hold exactly these."""
    result = NumberCheck().check(context(answer, [source]))
    assert (result.status, failing(result, answer)) == ("failed", wrong)


@pytest.mark.parametrize(
    "answer",
    [
        "Yes [S1].",
        "Yes [S1, S2] and 【S2】 and [S1-S2], 【1†S2】.",
        "According to S1 and S2, yes.",
        "1. First\n2. Second\n  3) Third\n- (4) Pay\n**5.** Fifth, wait\n> 6. Go",
        "## 3.1 Returns\nYes.\n### 4. Costs\nNone.",
        "One moment: there are two ways, bir yol daha, first this.",
        "See https://example.org/2026/22.",
        "x² + y²",
        "",
    ],
)
def test_nothing_to_check(answer: str) -> None:
    """Markers, keys, numbers of lists and headings, URLs and words that are often no number are not checked."""
    result = NumberCheck().check(context(answer, ["no number", "none"]))
    assert (result.status, result.detail) == ("passed", "the answer has no numbers")


@pytest.mark.parametrize(
    "answer, wrong",
    [
        ("30. The window", ["30"]),
        ("1. The window", []),
        ("The window\n1990", ["1990"]),
        ("30 days", ["30"]),
        ("## 30 days", ["30"]),
        ("[30]", ["30"]),
        ("[S30]", []),
        ("S7 says so", ["7"]),
        ("1. 30 days", ["30"]),
        ("1. Mart 2026", ["1. Mart 2026"]),
        ("30", ["30"]),
    ],
)
def test_what_looks_like_a_list(answer: str, wrong: list[str]) -> None:
    """Only a number of a list is a list's, or a 1 with a mark in front of text; any other is checked there too."""
    result = NumberCheck().check(context(answer, ["no number"]))
    assert failing(result, answer) == wrong


def test_a_number_of_the_question() -> None:
    """A number that the question asks about may stand in the answer, and be one end of a range."""
    asked = context("For 120 copies, of 50 to 120: 15 %.", ["from 50 copies: 15 %"], question="And for 120 copies?")
    assert NumberCheck().check(asked).status == "passed"


def test_where_else_it_stands() -> None:
    """A number of a source that is not cited fails, and the detail names the source; ``scope="all"`` lets it pass."""
    given = context("22 % and 7 days", ["14 days", "5 %", "22 % off"], cited=["S1"])
    assert NumberCheck().check(given).detail == (
        '"22 %" stands in no cited source, but in S3; "7" stands in no cited source'
    )
    everywhere = NumberCheck(scope="all").check(given)
    assert (everywhere.status, everywhere.detail) == ("failed", '"7" stands in no source')


def test_ends_of_a_range_stand_together() -> None:
    """Both ends of a range stand in one cited source; one end in each of two sources is not enough."""
    assert NumberCheck().check(context("50–199", ["50 and 199", "x"])).status == "passed"
    assert NumberCheck().check(context("50–199", ["50", "199"])).status == "failed"


def test_claims_have_their_own_sources() -> None:
    """A claim's numbers are looked up in the claim's own sources, what stands outside of claims in all cited ones."""
    answer = "It takes 14 days. It costs 5 TL. In short 14."
    claims = [("It takes 14 days.", ("S1",)), ("It costs 5 TL.", ("S1",))]
    result = NumberCheck().check(context(answer, ["14 days", "5 TL"], claims=claims))
    assert failing(result, answer) == ["5 TL"]
    assert result.detail == '"5 TL" stands in no source of its claim, but in S2'


def test_a_moved_quote_brings_its_source() -> None:
    """Where the quote of a claim was found in another source than it names, that source counts for this claim alone."""
    answer = "It takes 14 days. It costs 14 TL."
    claims = [("It takes 14 days.", ("S2",)), ("It costs 14 TL.", ("S2",))]
    match = QuoteMatch(quote="within 14", keys=("S2",), key="S1", start=0, end=9, text="within 14", moved=True)
    given = context(answer, ["within 14 days, 14 TL", "x"], claims=claims, quotes=["within 14", "x"], found=[match])
    assert failing(NumberCheck().check(given), answer) == ["14 TL"]
    lost = QuoteMatch(quote="within 14", keys=("S2",))
    given = context(answer, ["within 14 days, 14 TL", "x"], claims=claims, quotes=["within 14", "x"], found=[lost])
    assert failing(NumberCheck().check(given), answer) == ["14", "14 TL"]


def test_another_unit_is_named() -> None:
    """The detail of a number that stands with another unit says so."""
    result = NumberCheck().check(context("5 weeks", ["5 days"]))
    assert result.detail == '"5" stands in no cited source as a number of weeks, only without that unit'


def test_a_claim_without_sources() -> None:
    """A claim that names no source has no number that stands in one."""
    result = NumberCheck().check(context("14 days", ["14 days"], claims=[("14 days", ())]))
    assert result.status == "failed"


def test_what_the_model_saw_of_a_source_counts() -> None:
    """The title and the date of a source count like its text."""
    answer = "21 days, as of 1 March 2026 [S1]."
    assert NumberCheck().check(context(answer, ["21 days"], shown={"updated": "2026-03-01"})).status == "passed"
    assert NumberCheck().check(context(answer, ["21 days"], shown={"updated": "2026-03-02"})).status == "failed"
    assert NumberCheck().check(context("In 2026", ["text"], shown={"title": "Prices 2026"})).status == "passed"


def test_no_source_is_skipped() -> None:
    """Without a source in the prompt nothing can be looked up; without a cited one only the question counts."""
    assert NumberCheck().check(context("5 days", [])).status == "skipped"
    assert NumberCheck().check(context("5 days", ["5 days"], cited=[])).status == "failed"


def test_a_number_that_stands_for_something_else_passes() -> None:
    """A limit: a number of the right source that stands there for another case can not be seen."""
    tiers = "50–199 copies: 15 %. 200 copies and more: 22 %."
    asked = context("For 120 copies the discount is 22 % [S1].", [tiers], question="What discount for 120 copies?")
    assert NumberCheck().check(asked).status == "passed"


def test_long_answers() -> None:
    """An answer of 16,000 characters is checked to its end, and a long detail says how many are left out."""
    answer = " ".join(str(number) for number in range(10_000, 12_667))[:16_000]
    source = answer.replace("12000", "0")
    assert failing(NumberCheck().check(context(answer, [source])), answer) == ["12000"]
    detail = NumberCheck().check(context(answer, ["none"])).detail
    assert detail.endswith("; and 2647 more")


def test_long_numbers_are_cut_in_the_detail() -> None:
    """The detail shows the first characters of a long number, the span holds all of it."""
    result = NumberCheck().check(context("9" * 16_000, ["1"]))
    assert result.detail == f'"{"9" * 39}…" stands in no cited source'
    assert result.spans[0].end == 16_000


@pytest.mark.parametrize(
    "options",
    [{"on_fail": "stop"}, {"on_fail": None}, {"scope": "some"}, {"allow_derived": 1}, {"allow_derived": "no"}],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    """An option with a value that it does not have is refused."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        NumberCheck(**options)  # type: ignore[arg-type]


def test_it_is_an_answer_check() -> None:
    """It has what the synthesizer asks of a check, and equal options make equal checks."""
    check = NumberCheck(on_fail="retry")
    assert isinstance(check, AnswerCheck)
    assert (check.name, check.on_fail) == ("numbers", "retry")
    assert check == NumberCheck(on_fail="retry")
    assert hash(check) == hash(NumberCheck(on_fail="retry"))
