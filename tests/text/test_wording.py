"""A small difference in words that may be another number, date or negation keeps two texts apart; others do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.text.statement import apart, statement
from llama_index_grounded.text.wording import reworded, wording
from tests.hostile import texts
from tests.text.test_statement import check_pair
from tests.timing import assert_linear

FRAME = (
    "Please note the following before you use this product at home or at work: {} The leaflet in the package has the "
    "same rules in all languages, together with the address of the maker and the list of ingredients."
)
PARTS = [
    *(
        "21 days",
        "1,500 TL",
        "1500 lira",
        "1.5",
        "v3.5",
        "3.5",
        "version 3.05",
        "3 March 2026",
        "03/04/2026",
        "04/03/2026",
    ),
    *(
        "2020/21",
        "half",
        "twenty-one",
        "-5 °C",
        "%22",
        "10³",
        "once",
        "not",
        "Monday",
        "(+90) 212 555",
        "1/3",
        "9:30 pm",
    ),
    *("≥ 5", "5k", "5 km", "five kilometres", "book", "the", "14.00", "2 - 5", "https://x.org/2"),
]
sentences = st.lists(st.sampled_from(PARTS), max_size=4).map(" ".join)


# Laws


@given(texts())
def test_a_text_is_not_apart_from_itself(text: str) -> None:
    """Nothing in a text raises, and it says what it says."""
    assert apart(statement(text), statement(text)) == ""


@given(sentences, sentences)
def test_texts_that_say_the_same_have_one_key(one: str, other: str) -> None:
    """Different keys mean a difference, so that no pair is missed by looking at keys alone; differing is mutual."""
    check_pair(one, other)


# Differences that count


@pytest.mark.parametrize(
    "one, other",
    [
        ("The campaign ends in January.", "The campaign ends in February."),
        ("It starts in May.", "It starts in March."),
        ("The shop is closed on Mondays.", "The shop is closed on Tuesdays."),
        ("Mağaza pazartesileri kapalıdır.", "Mağaza salıları kapalıdır."),
        ("Take 5 mg of it.", "Take 5 g of it."),
        ("Take 5 mg of it.", "Take 5 µg of it."),
        ("Keep within 5 km.", "Keep within 5 miles."),
        ("Keep it at 100 °C.", "Keep it at 100 °F."),
        ("Take ≥ 5 of them.", "Take ≤ 5 of them."),
        ("If x < 5 it is sent.", "If x > 5 it is sent."),
        ("Use 10³ units.", "Use 10⁴ units."),
        ("See chapter Ⅳ first.", "See chapter Ⅵ first."),
        ("See Section IV first.", "See Section VI first."),
        ("See step ①.", "See step ②."),
        ("Take it once.", "Take it twice."),
        ("It is sent weekly.", "It is sent daily."),
        ("三天内服用。", "五天内服用。"),
        ("Open until 5 pm EST.", "Open until 5 pm PST."),
        ("You cant drive afterwards.", "You can drive afterwards."),
        ("You may hardly drive.", "You may drive."),
        ("İlacı kullanmayın.", "İlacı kullanın."),
        ("Bu ilacı alma.", "Bu ilacı al."),
        ("Bu kapıyı okumayla açma.", "Bu kapıyı okumayla aç."),
        ("Его нельзя принимать.", "Его можно принимать."),
        ("Никогда не принимайте.", "Принимайте."),
        ("Você não pode dirigir.", "Você pode dirigir."),
        ("Je mag niet rijden.", "Je mag rijden."),
        ("服用できません。", "服用できます。"),
        ("आप गाड़ी नहीं चला सकते।", "आप गाड़ी चला सकते।"),
        ("Ilman reseptiä saa ostaa.", "Reseptillä saa ostaa."),
        ("يمكنك القيادة", "لا يمكنك القيادة"),
        ("Pay before delivery.", "Pay after delivery."),
    ],
)
def test_small_differences_that_may_count_keep_texts_apart(one: str, other: str) -> None:
    """Units, signs, months, weekdays, numerals, denials and words of unknown languages are other statements."""
    assert apart(statement(FRAME.format(one)), statement(FRAME.format(other)))
    assert apart(statement(one), statement(other))


@pytest.mark.parametrize(
    "one, other",
    [
        ("It is sent quickly.", "It is sent promptly."),
        ("The key is sent.", "The keys are sent."),
        ("IT IS SENT!", "it is sent"),
        ("It is **sent** by us.", "It is sent, by us"),
        ("It takes 24 h.", "It takes 24 hours."),
        ("It is closed on Mon.", "It is closed on Mondays."),
        ("Within 5 km of us", "within 5 kilometres of us"),
        ("It isn't sent.", "It is not sent."),
        ("Run ./build now.", "Run ./scripts/build.sh now."),
        ("Read [the rules](/a/b#c).", "Read [the rules](/site/a/b#c)."),
        ("\n● It is sent.", "\nIt is sent."),
        ("```sh\nrun it\n```", "```\nrun it\n```"),
        ("Ürün bize gönderilir.", "Ürün bize yollanır."),
        (
            "Send it.",
            "Send it together with the invoice that you got from us and the packaging in which it came to you.",
        ),
    ],
)
def test_other_small_differences_do_not(one: str, other: str) -> None:
    """Synonyms, plurals, case, marks, notation, paths and longer additions make no other statement."""
    assert apart(statement(FRAME.format(one)), statement(FRAME.format(other))) == ""


def test_what_differs_is_named() -> None:
    """The words of both texts stand in the finding."""
    assert (
        reworded(wording("It is sent on Monday."), wording("It is sent on Friday.")) == "words: monday against friday"
    )


@pytest.mark.parametrize(
    "piece", ["not ", "a-", "`", "{{", "./", "İ", "中", "● ", "<5", "m", "may ", ".\n", "!", "½", "9" * 50 + " "]
)
def test_time_grows_with_length_only(piece: str) -> None:
    """Hostile repetition takes no more than linear time."""
    assert_linear(lambda size: statement(piece * (size // len(piece)) + "x"), 3_000)
