"""Letters at numbers, units by their case, signs and operators make other texts; notation and markup do not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llama_index_grounded.text.statement import apart, statement
from tests.hostile import texts
from tests.timing import assert_linear

FRAME = (
    "Please note the following before you use this product at home or at work: {}, which you find in the leaflet in "
    "the package, together with the address of the maker and the list of ingredients."
)
LETTERS = st.sampled_from("abcdefgijklmnoprstuvyzABCDEFGHIJKLMNOPRSTUVYZçşüÇŞÜ")
PLACED = st.sampled_from(["room {}{}", "§ {}{}", "form {} {}", "flat {}/{}", "section {}({})", "item {} {})", "{}-{}"])


def differ(one: str, other: str) -> bool:
    """Tell whether two texts that have all else in common are kept apart."""
    return bool(apart(statement(FRAME.format(one)), statement(FRAME.format(other))))


# Laws


@given(st.integers(2, 2000), LETTERS, LETTERS, PLACED)
def test_another_letter_at_a_number_is_another_number(number: int, one: str, other: str, place: str) -> None:
    """Whatever the letter, and whether it is a word, a unit or a multiplier elsewhere; so it is with none."""
    mine, theirs = place.format(number, one), place.format(number, other)
    assert differ(mine, theirs) == (one != other)
    assert differ(mine, place.replace("({})", "{}").replace("{} {})", "{}{}").format(number, "").rstrip(" /-"))


@given(st.integers(0, 2000), LETTERS, LETTERS, st.sampled_from(["gate {}{}", "gate {}-{}", "B{}{}", "type {}{}x"]))
def test_another_letter_in_front_is_another_number(number: int, one: str, other: str, place: str) -> None:
    """A4 is neither B4 nor 4; v4 is a version, and 4."""
    assume("v" not in (one + other).lower())
    assert differ(place.format(one, number), place.format(other, number)) == (one != other)
    assert differ(place.format(one, number), place.format("", number))


def check_pair(one: str, other: str) -> None:
    """See that differing is mutual, and that texts that say the same have one key."""
    first, second = statement(one), statement(other)
    assert bool(apart(first, second)) == bool(apart(second, first))
    if not apart(first, second):
        assert first.key == second.key or None in (first.key, second.key)


@given(texts(), texts())
def test_any_two_texts_compare(one: str, other: str) -> None:
    """Nothing raises, and the laws of a pair hold for any texts."""
    check_pair(one, other)


# What differs


@pytest.mark.parametrize(
    "one, other",
    [
        *(("section 5", "section 5a"), ("form 1040A", "form 1040B"), ("1040B", "1040"), ("§5a", "§5b"), ("5a", "5A")),
        *(("B2B", "B2C"), ("IPv6", "IPx6"), ("A4 paper", "A5 paper"), ("v1.2b", "v1.2"), ("v1.2-beta", "v1.2")),
        *(("0x1F", "0x1E"), ("5. madde", "6. madde"), ("5'inci", "6'ncı"), ("the 1990s", "in 1990")),
        *(("12A to 14B", "12A to 14C"), ("12B-14", "12-14"), ("5m", "5M"), ("5m", "5"), ("5B", "5"), ("5 K", "5 k")),
        *(("A1B", "A1C"), ("５ａ", "５"), ("5 g", "5 G"), ("12-A", "12"), ("2 a)", "2"), ("3 (a)", "3")),
    ],
)
def test_letters_at_numbers(one: str, other: str) -> None:
    """A number with a letter is another one than with another letter, or without."""
    assert differ(one, other)


@pytest.mark.parametrize(
    "one, other",
    [
        *(("5 mW", "5 MW"), ("500 Mb", "500 MB"), ("5 mg", "5 Mg"), ("5Mb", "5MB"), ("5 Pa", "5 pA"), ("5 s", "5 S")),
        *(("in Mb", "in MB"), ("5 mV", "5 MV"), ("5 Mbps", "5 MBps"), ("5 nm", "5 Nm"), ("5 mHz", "5 MHz")),
        *(("5 Mbit", "5 Mbyte"), ("5", "5 mg"), ("5 days", "5"), ("1,500", "1.500"), ("€1,500", "€1.500")),
        *(("1,500-2,000", "1.500-2.000"), ("5 kWh", "5 kW"), ("5 ‰", "5"), ("5′", "5″"), ("₫500", "₦500")),
        *(("03/04/2026", "04/03/2026"), ("03/04/26", "4/3/26"), ("03/04/2026-05/04/2026", "04/03/2026-05/04/2026")),
    ],
)
def test_units(one: str, other: str) -> None:
    """A unit whose case makes it another one, a missing or rare unit, and what may be read in two ways."""
    assert differ(one, other)


@pytest.mark.parametrize(
    "one, other",
    [
        *(("UTC-3", "UTC+3"), ("GMT-5", "GMT+5"), ("UTC+03:00", "UTC-03:00"), ("10:00+03:00", "10:00-03:00")),
        *(("–5 °C", "5 °C"), ("- 5 °C", "5 °C"), ("at - 5", "at 5"), ("x=–5", "x=5"), ("+5", "5"), ("18+", "18")),
        *(("~5 km", "5 km"), ("x+1", "x-1"), ("A + B", "A - B"), ("A-1", "A+1"), ("A minus B", "A plus B")),
        *(("if (!ready)", "if (ready)"), ("x = 5", "x != 5"), ("x = y", "x == y"), ("a==b", "a!=b")),
        *(("a && b", "a || b"), ("a && b", "a b"), ("a | b", "a & b"), ("x>y", "x<y"), ("T > T0", "T < T0")),
        *(("x >= y", "x <= y"), ("x > y", "x >= y"), ("x << 2", "x >> 2"), ("a>b and c<d", "a<b and c>d")),
        *(("2^3", "2*3"), ("a * b", "a / b"), ("a += b", "a *= b"), ("C++", "C"), ("C#", "C"), ("¬p", "p")),
        *(("~ready", "ready"), ("x & ~y", "x & y"), ("x >>= 1", "x <<= 1"), ("x = -y", "x = y"), ("f(-x)", "f(x)")),
        *(("from [0, 5]", "from [0, 5)"), ("(0; 5]", "(0; 5)"), ("i++", "i--"), ("p<.05", "p>.05")),
        *(("chmod +x", "chmod -x"), ("x < 5", "x > 5"), ("≥ 5", "≤ 5"), ("10³", "10⁶")),
    ],
)
def test_signs_and_operators(one: str, other: str) -> None:
    """A sign, an operator or a denial in code."""
    assert differ(one, other)


@pytest.mark.parametrize(
    "one, other",
    [
        *(
            ("the nineties", "the eighties"),
            ("beşte bir", "dörtte bir"),
            ("beşer", "altışar"),
            ("bu yıl", "gelecek yıl"),
        ),
        *(("room 5, first door", "room 5, door"), ("öncesinde verilir", "sonrasında verilir")),
        ("inclusive of tax", "exclusive of tax"),
    ],
)
def test_words_of_number_and_time(one: str, other: str) -> None:
    """Decades, Turkish fractions and shares, years by their place, and "first" beside another number."""
    assert differ(one, other)


# What does not


@pytest.mark.parametrize(
    "one, other",
    [
        *(("2 TL", "2.000 TL"), ("$2", "$2,000"), ("2 dollars", "2,000 dollars"), ("12,50 TL", "12.500 TL")),
        *(("1,5", "1.500"), ("3,75 m²", "3.750 m²"), ("20 TL", "20.000 TL"), ("2.5", "2.500"), ("%12,5", "%12.500")),
        *(("2 to 5 days", "2.000 to 5 days"), ("2–5 TL", "2.000–5.000 TL"), ("yedi", "7.000"), ("seven", "7,000")),
        *(("2.00 TL", "2.000 TL"), ("1,500", "1,5"), ("1.500", "1,50")),
    ],
)
def test_a_group_of_three_digits_is_a_thousand(one: str, other: str) -> None:
    """It could be a fraction with three digits, and two texts that would differ by a factor of 1,000 both stay."""
    for text in (f"{one} are due", f"It costs {one}."):
        assert differ(text, text.replace(one, other))
        assert differ(text.replace(one, other), text)


@pytest.mark.parametrize(
    "one, other",
    [
        *(("3rd", "third"), ("5k", "5000"), ("5K", "5k"), ("€5m", "€5 million"), ("5 km", "5km"), ("5 kWh", "5kWh")),
        *(("5 mg", "5 milligrams"), ("5 MW", "5 megawatts"), ("10 GB", "10GB"), ("10 kB", "10 KB"), ("5 mL", "5 ml")),
        *(("9:30 pm", "9:30pm"), ("9 PM", "9 pm"), ("24 h", "24 hours"), ("v3.5", "3.5"), ("5'inci", "5inci")),
        *(("24'lük", "24'lük,"), ("COVID-19", "Covid-19"), ("WORD5", "word5"), ("-5", "minus 5")),
        *(("03/04/2026", "3/4/2026"), ("€500", "500 EUR"), ("£5", "5 GBP")),
        *(("~~old~~ news", "old news"), ("~~~py\ncode\n~~~", "```py\ncode\n```"), ("see ~/notes", "see ~/notes!")),
        *(("5 days", "5\ndays"), ("section 5 a", "section 5\na"), ("5 iş günü", "5\niş günü"), ("3 (a)", "3\n(a)")),
        *(("1,500", "1500"), ("1,500", "1,500.00"), ("within 21 days", "WITHIN 21 DAYS")),
        *(("5 a.m.", "5 am"), ("the 5 o'clock tea", "the 5 o’clock tea"), ("3 items", "*3* items")),
        *(
            ("about **5** items", "about 5 items"),
            ("<br>5 items", "<br />5 items"),
            ("see [it](/a?b=c+d)", "see [it](/a)"),
        ),
        *(("\n- 5 items", "\n* 5 items"), ("\n+ an item", "\n* an item"), ("\n> a quote", "\na quote")),
        *(("\n| a | b |\n", "\n|a|b|\n"), ("\n=====\n", "\n"), ("go to File -> Save", "go to File -> Save!")),
        *(
            ("Open now!", "Open now."),
            ("Wow! (really)", "Wow (really)"),
            ("![it](a.png)", "it"),
            ("Title #\n", "Title\n"),
        ),
        *(("see https://x.org/a+b", "see https://x.org/a"), ("2 - 5 items", "2–5 items")),
    ],
)
def test_notation_and_markup_do_not_matter(one: str, other: str) -> None:
    """Other ways to write the same number, markup, bullets, marks at the end of a sentence, and addresses."""
    assert not differ(one, other)


@pytest.mark.parametrize(
    "piece", ["5a", "A5-", "5 (a", "<a", "<", "!", "+", "| ", "- 5", "mW", "*^", " > x", "(–5", "~", "1,500"]
)
def test_time_grows_with_length_only(piece: str) -> None:
    """Hostile repetition takes no more than linear time."""
    assert_linear(lambda size: statement(piece * (size // len(piece))), 3_000)
