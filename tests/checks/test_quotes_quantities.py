"""A quote never begins or ends inside a quantity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.quotes import find_quote

WHOLE = [
    *(
        "1 250 TL",
        "5 000",
        "iki yüz",
        "two hundred",
        "yirmi iki",
        "$5 million",
        "5 mg/kg",
        "10 km/h",
        "US$50",
        "− 50 °C",
    ),
    *("minus 50 degrees", "4 - 5 days", "4 to 5 days", "4 ile 5 gün", "20 %–30 %", "5 p.m.", "two to three days"),
    *("yüzde 22", "21 July 2024", "two and a half", "two dozen", "$5 per month", "12 milyon lira", "between 4 and 5"),
]


@given(
    st.sampled_from(WHOLE), st.sampled_from(["", "for ", "süre: ", "(", "Fine. "]), st.sampled_from(["", ".", " or so"])
)
def test_a_whole_quantity_is_found(quantity: str, before: str, behind: str) -> None:
    """A quantity from its first to its last character is a quote, whatever stands around it."""
    start = len(before)
    assert find_quote(quantity, f"{before}{quantity}{behind}") == (start, start + len(quantity))


@pytest.mark.parametrize(
    "quote, text",
    [
        *(
            ("250 TL", "1 250 TL"),
            ("000 copies", "1 000 copies"),
            ("over 5", "over 5 000"),
            ("over 5 000", "over 5 000 000"),
        ),
        *(("yüz gün içinde", "iki yüz gün içinde"), ("hundred copies", "two hundred copies")),
        *(("iki gün", "yirmi iki gün"), ("costs two", "costs two hundred dollars"), ("百元", "两百元")),
        *(
            ("half days", "two and a half days"),
            ("holds two", "holds two and a half"),
            ("dozen books", "two dozen books"),
        ),
        *(
            ("in 1990 and two", "in 1990 and two\nhundred more"),
            ("21 July", "21 July 2024"),
            ("July 2024", "21 July 2024"),
            ("في يوليو", "في يوليو 2015"),
        ),
    ],
)
def test_no_number_is_cut(quote: str, text: str) -> None:
    """Groups of digits, number words and dates stay whole."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(("The fund holds $5", "The fund holds $5 million"), ("5 mg", "5 mg/kg"), ("10 km", "10 km/h")),
        *(("100 MB", "100 MB/s"), ("kg of it", "5 mg/kg of it"), ("We charge $5", "We charge $5 per month")),
        *(("$50", "US$50"), ("$50", "A$50"), ("$50", "HK$50"), ("$50", "costs S$50"), ("A$50", "CA$50")),
        *(
            ("20", "yüzde 20"),
            ("a fee of 20", "a fee of 20 percent"),
            ("pay 20", "pay 20 TL"),
            ("pay 20", "pay 20 dollars"),
        ),
        *(
            ("50 °C", "− 50 °C"),
            ("50 °C", "at − 50 °C"),
            ("50 degrees", "minus 50 degrees"),
            ("50 derece", "eksi 50 derece"),
        ),
        *(
            ("at 5", "at 5 p.m."),
            ("at 5 p", "at 5 p.m."),
            ("at 5", "at 5 pm"),
            ("-1226)", "(1185 -1226)"),
            ("5度", "零下5度"),
        ),
    ],
)
def test_what_makes_another_value_is_not_left_out(quote: str, text: str) -> None:
    """Scale, unit, currency, percent, sign and half of the day belong to the number."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(("5 days", "4 - 5 days"), ("5 days", "4 to 5 days"), ("5 gün", "4 ile 5 gün"), ("20 %", "20 %–30 %")),
        *(("30 %", "20 %–30 %"), ("three days", "two to three days"), ("within one", "within one or two days")),
        *(("5天", "3至5天"), ("5 gün", "4 veya 5 gün"), ("5 kg", "4 kg - 5 kg"), ("4 kg", "4 kg to 5 kg")),
        *(("5 days", "between 4 and 5 days"), ("takes 4", "takes 4–5 days")),
    ],
)
def test_no_range_is_cut(quote: str, text: str) -> None:
    """One end of a range is no quote."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(
            ("within 21", "within 21 days"),
            ("impact of it", "negative impact of it"),
            ("27 % of all", "people -- 27 % of all"),
            ("days of delivery", "21 days of delivery"),
            ("为30", "期限为30天"),
        ),
        *(
            ("The limit of 21", "The limit of 21 may be exceeded"),
            ("at 5 p.m", "Come at 5 p.m."),
            ("3.6 of", "version 3.6 of"),
        ),
        *(("50 items", "- 50 items"), ("50 items", "Box:\n- 50 items\n- 60 cards"), ("50 items", "Box:\n3. 50 items")),
        *(
            ("ends at 5", "ends at 5. 300 people came"),
            ("It has 5", "It has 5\n\n- 300 people"),
            ("50 a day", "prices – 50 a day"),
        ),
        *(
            ("books and", "books and/or films"),
            ("5 houses", "moved boxes to 5 houses"),
            ("Section 4", "Section 4 and 5"),
        ),
    ],
)
def test_numbers_that_only_stand_near_may_be_left_out(quote: str, text: str) -> None:
    """A unit as a whole, a list's marker, another sentence and another item are no part of the number."""
    assert find_quote(quote, text) is not None
