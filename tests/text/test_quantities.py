"""What single notations are read as."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.text.measures import MEASURES
from llama_index_grounded.text.number_words import SCALES, dates_of, readings_of, terms_of
from llama_index_grounded.text.quantities import Quantity, quantities
from llama_index_grounded.text.signature import differs, signature

UNITS = sorted(
    {*(word for words in MEASURES.values() for word in words.split()), *SCALES, "iş günü", "working days"} - {"second"}
)
CASES = {"i": "iİIı", "ı": "ıI", "s": "sSſ", "k": "kK\u212a"}


def values(quantity: Quantity) -> list[str]:
    """Return the readings as text, each in plain digits."""
    return ["/".join("-" if part is None else f"{part.normalize():f}" for part in r) for r in quantity.readings]


@pytest.mark.parametrize(
    "text, kind, readings, unit",
    [
        ("1.200,50", "number", ["1200.5"], ""),
        ("1,200.50", "number", ["1200.5"], ""),
        ("1 200,50", "number", ["1200.5"], ""),
        ("1\u00a0200,50", "number", ["1200.5"], ""),
        ("1\u2009200.50", "number", ["1200.5"], ""),
        ("1’200.50", "number", ["1200.5"], ""),
        ("1.200", "number", ["1200", "1.2"], ""),
        ("1,200", "number", ["1200", "1.2"], ""),
        ("0.125", "number", ["0.125"], ""),
        ("12,5", "number", ["12.5"], ""),
        ("1.200.500", "number", ["1200500"], ""),
        ("٣", "number", ["3"], ""),
        ("１２", "number", ["12"], ""),
        ("٣٫٥", "number", ["3.5"], ""),
        ("½", "number", ["0.5"], ""),
        ("2½", "number", ["2.5"], ""),
        ("1/2", "number", ["0.5"], ""),
        ("1 1/2", "number", ["1.5"], ""),
        ("-5", "number", ["-5"], ""),
        ("−5", "number", ["-5"], ""),
        ("-$5", "currency", ["-5"], "USD"),
        ("%22", "percent", ["22"], ""),
        ("22 %", "percent", ["22"], ""),
        ("22％", "percent", ["22"], ""),
        ("22 percent", "percent", ["22"], ""),
        ("22 per cent", "percent", ["22"], ""),
        ("yüzde 22", "percent", ["22"], ""),
        ("Yüzde yirmi iki", "percent", ["22"], ""),
        ("$5", "currency", ["5"], "USD"),
        ("US$5", "currency", ["5"], "USD"),
        ("A$5", "currency", ["5"], "AUD"),
        ("5 USD", "currency", ["5"], "USD"),
        ("USD 5", "currency", ["5"], "USD"),
        ("5 dollar", "currency", ["5"], "USD"),
        ("₺5", "currency", ["5"], "TRY"),
        ("5 TL", "currency", ["5"], "TRY"),
        ("5 lira", "currency", ["5"], "TRY"),
        ("€5", "currency", ["5"], "EUR"),
        ("$5 million", "currency", ["5000000"], "USD"),
        ("2,5 milyon TL", "currency", ["2500000"], "TRY"),
        ("2.5M", "number", ["2500000"], ""),
        ("5k", "number", ["5000"], ""),
        ("5m", "number", ["5000000", "5"], ""),
        ("5 bn", "number", ["5000000000"], ""),
        ("5 thousand", "number", ["5000"], ""),
        ("5 bin", "number", ["5000"], ""),
        ("1st", "ordinal", ["1"], ""),
        ("3üncü", "ordinal", ["3"], ""),
        ("3'üncü", "ordinal", ["3"], ""),
        ("fifth", "ordinal", ["5"], ""),
        ("2026-03-01", "date", ["2026/3/1"], ""),
        ("1 March 2026", "date", ["2026/3/1"], ""),
        ("1st of March, 2026", "date", ["2026/3/1"], ""),
        ("March 1, 2026", "date", ["2026/3/1"], ""),
        ("01.03.2026", "date", ["2026/3/1"], ""),
        ("1 Mart 2026", "date", ["2026/3/1"], ""),
        ("1/3/2026", "date", ["2026/3/1", "2026/1/3"], ""),
        ("3/15/2026", "date", ["2026/3/15"], ""),
        ("01.03.26", "date", ["2026/3/1", "1926/3/1"], ""),
        ("2026-03", "date", ["2026/3/-"], ""),
        ("March 2026", "date", ["2026/3/-"], ""),
        ("KASIM 2020", "date", ["2020/11/-"], ""),
        ("5 NİSAN", "date", ["-/4/5"], ""),
        ("14:30", "time", ["52200"], ""),
        ("2:30 pm", "time", ["52200"], "pm"),
        ("12 a.m.", "time", ["0"], "am"),
        ("50–199", "range", ["50/199"], ""),
        ("50-199", "range", ["50/199"], ""),
        ("50 to 199", "range", ["50/199"], ""),
        ("50 ile 199", "range", ["50/199"], ""),
        ("1922–26", "range", ["1922/1926", "1922/26"], ""),
        ("3.6.1", "version", ["3/6/1"], ""),
        ("v3.6", "version", ["3/6"], ""),
        ("3.6.x", "version", ["3/6"], "x"),
        ("3.6.1-rc2", "version", ["3/6/1"], "rc2"),
        ("sürüm 3.6", "version", ["3/6"], ""),
        ("+90 212 555 01 01", "digits", ["902125550101"], "902125550101"),
        ("(212) 555-0101", "digits", ["2125550101"], "2125550101"),
        ("0212 555 01 01", "digits", ["2125550101"], "02125550101"),
        ("978-0-306-40615-7", "digits", ["9780306406157"], "9780306406157"),
    ],
)
def test_one_quantity(text: str, kind: str, readings: list[str], unit: str) -> None:
    """The whole text is one certain quantity of this kind, with these readings in this order."""
    (found,) = quantities(text)
    assert (found.kind, values(found), found.unit, found.certain) == (kind, readings, unit, True)
    assert (found.start, found.end) == (0, len(text))


@pytest.mark.parametrize(
    "text, readings",
    [
        ("21-day return, 24'lük, 24 ay, 15'i", ["21", "24", "24", "15"]),
        ("the 1990s", ["1990"]),
        ("%15'i", ["15"]),
        ("twenty-two", ["22"]),
        ("One hundred and twenty", ["120"]),
        ("two million three hundred thousand and five", ["2300005"]),
        ("twenty-two hundred", ["2200"]),
        ("four five six", ["4", "5", "6"]),
        ("five hundred, four hundred", ["500", "400"]),
        ("seven hundred five hundred", ["705", "100"]),
        ("yirmi iki", ["22"]),
        ("yirmiiki", ["22"]),
        ("YİRMİ İKİ", ["22"]),
        ("KIRK BEŞ", ["45"]),
        ("yüz yirmi", ["120"]),
        ("bin dokuz yüz seksen dört", ["1984"]),
        ("iki buçuk milyon", ["2500000"]),
        ("on beş", ["15"]),
        ("on gün", ["10"]),
        ("1984'ten beri", ["1984"]),
        ("COVID-19, GPT-4", ["19", "4"]),
        ("1,2,3", ["1", "2", "3"]),
        ("99:99 and 45/99/2026", ["99", "99", "45", "99", "2026"]),
        ("1/0", ["1", "0"]),
        ("between 50 and 199 copies", ["50/199"]),
        ("-5 to 5", ["-5/5"]),
        ("5 -5", ["5", "-5"]),
        ("x² and H₂O", []),
        ("put it on the bin, on time", []),
        ("dozen, about, an", []),
        ("5 yeni, 5 European", ["5", "5"]),
        ("https://a.b/22?c=3 and [x](/p/22)", []),
        ("`22` and ```\n33\n```", ["22", "33"]),
        ("you may 5", ["-/5/5"]),
    ],
)
def test_quantities_in_text(text: str, readings: list[str]) -> None:
    """The text holds these quantities and no other."""
    assert [values(found)[0] for found in quantities(text)] == readings


@pytest.mark.parametrize(
    "text, certain",
    [
        ("one answer", False),
        ("bir kitap", False),
        ("bir gün", False),
        ("two films", False),
        ("two days", True),
        ("two-day delivery", True),
        ("iki gün", True),
        ("first of all", False),
        ("fourth place", True),
        ("half of it", False),
        ("18 yaş altı çocuklar", False),
        ("altı ay", True),
        ("yüzde yedi", True),
        ("one percent", True),
        ("one million", True),
        ("four films", True),
    ],
)
def test_words_that_are_often_no_number(text: str, certain: bool) -> None:
    """A word that may be no number is certain only in front of a unit, with a percent sign, or beside other words."""
    assert quantities(text)[-1].certain is certain


def test_a_range_shares_its_unit() -> None:
    """Both ends of a range have the percent sign, the currency or the month that only one of them is written with."""
    kinds = {
        text: [(part.kind, part.unit, values(part)[0]) for part in quantities(text)[0].parts]
        for text in ("5-10%", "%5-10", "$5-10", "1-5 March 2026")
    }
    assert kinds == {
        "5-10%": [("percent", "", "5"), ("percent", "", "10")],
        "%5-10": [("percent", "", "5"), ("percent", "", "10")],
        "$5-10": [("currency", "USD", "5"), ("currency", "USD", "10")],
        "1-5 March 2026": [("date", "", "2026/3/1"), ("date", "", "2026/3/5")],
    }


@pytest.mark.parametrize("numeral", ["1,2,3", "1.1.1", "1,20,000", "1.200,300,4", "01.200.300"])
def test_no_number(numeral: str) -> None:
    """Digits that are not grouped like a number have no reading."""
    assert readings_of(numeral) == ()


def test_long_numbers_are_exact() -> None:
    """A number of 10,000 digits with a multiplier is exact."""
    (found,) = quantities("1" * 10_000 + " million")
    assert found.readings == ((Decimal("1" * 10_000 + "0" * 6),),)


@pytest.mark.parametrize("written", ["1/3", "32.01.2026", "2026-13-01", "40 march", "1.3", "hello"])
def test_no_date(written: str) -> None:
    """A day or month that does not exist, and what has no month and year, is no date."""
    assert dates_of(written) == ()


def test_words_are_bounded() -> None:
    """A word of more than 120 letters is no number, however it is made up."""
    assert terms_of("bir" * 40) != ()
    assert terms_of("bir" * 41) == ()


def test_a_place_behind_and_is_a_place() -> None:
    """The last word of "two hundred and second" is no unit of time, unlike that of "twenty second"."""
    assert [(found.kind, found.readings) for found in quantities("the two hundred and second one")][:1] == [
        ("ordinal", ((Decimal(202),),))
    ]
    assert quantities("a twenty second delay")[0].readings == ((Decimal(20),),)


@given(st.sampled_from(UNITS), st.data())
def test_units_are_read_in_any_case(unit: str, data: st.DataObject) -> None:
    """Turkish capitals with and without their dots, and whatever else ignoring case takes for one letter."""
    letters = [data.draw(st.sampled_from(CASES.get(letter, letter + letter.upper()))) for letter in unit]
    plain, written = f"Within 5 {unit}, they say.", f"Within 5 {''.join(letters)}, they say."
    assert [(found.measure, found.readings) for found in quantities(written)] == [
        (found.measure, found.readings) for found in quantities(plain)
    ]
    assert differs(signature(plain), signature(written)) == ""
