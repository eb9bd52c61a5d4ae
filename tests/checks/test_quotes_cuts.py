"""Where a quote may begin and end: a cut never changes what the source says."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.quotes import find_quote


@pytest.mark.parametrize(
    "quote, text",
    [
        ('non-breaking "x"', "non\u2011\nbreaking “x”"),
        ("at least >= 5 items...", "at least ≥ 5 items…"),
        ("a line-wrapped word", "a line-\nwrap-\nped word"),
        ("across the page", "across\x0cthe\u00a0page"),
        ("You may return it", "If so, you may return it."),
        ("İade süresi", "bu iade süresi 21 gündür"),
        ("Islak kitap", "her ıslak kitap"),
        ("The books", "The books—also e-books—may go."),
        ("also e-books", "The books—also e-books—may go."),
        ("returned within 21 days.", "It can be returned within 21 days. No refunds later."),
        ("may be returned", "E-books may be returned"),
        ("nothing else", "It is nothing else"),
        ("knot tied", "a knot tied"),
        ("1 day", "21 days, 1 days, then 1 day"),
        ("退货期限", "我们的退货期限为30天"),
        ("为30天", "退货期限为 30 天"),
        ("الكتب خلال", "يمكن إرجاع الكتب خلال ٢١ يومًا"),
        ("किताबें लौटाई", "पुरानी किताबें लौटाई जा सकती हैं"),
        ("hi 👩\u200d👩\u200d👧 all", "hi 👩\u200d👩\u200d👧 all"),
        ("a.*b (c|d) [e] $1", "say a.*b (c|d) [e] $1 now"),
        ("$20 a day", "It costs $20 a day."),
        ("-5 °C", "at -5 °C"),
        ("−5 °C", "at -5 °C"),
        ("50-199 items", "for 50–199 items"),
        ("wait... here", "wait… here"),
        ("21 days (not 30)", "within 21 days (not 30) of"),
        ("within 21 days", "within 21 days (not 30) of"),
        ("değil dergiler", "kitaplar değil dergiler"),
        ("dergiler iade edilir", "kitaplar değil dergiler iade edilir"),
    ],
)
def test_a_quote_is_found(quote: str, text: str) -> None:
    """Setting, a capital at the front and a cut between words are no reason against a quote."""
    assert find_quote(quote, text) is not None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(
            ("1 day", "21 days"),
            ("1 day", "1 days"),
            ("1 day", "11 day"),
            ("able", "unable"),
            ("20", "120"),
            ("20", "200"),
        ),
        *(
            ("12", "12:30"),
            ("30", "12:30"),
            ("15", "1.15"),
            ("15", "15,5"),
            ("15.", "15.5"),
            ("10", "10²"),
            ("16", "16½"),
        ),
        *(("50", "50–199"), ("199", "50–199"), ("000", "1\u00a0000"), ("12", "12\u202f000"), ("19", "COVID-19")),
        *(("1/2", "½"), ("102", "10²"), ("15", "1,5"), ("1.5", "1,5"), ("No 1", "№ 1"), ("11", "1①")),
        *(("٢١ يومًا", "٣٢١ يومًا"), ("十一天", "二十一天")),
    ],
)
def test_no_number_or_word_is_cut_or_changed(quote: str, text: str) -> None:
    """A part of a word or number, or a number that only looks alike, is no quote."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(("50 °C", "-50 °C"), ("50 °C", "−50 °C"), ("-50 °C", "50 °C"), ("50 items", "± 50 items")),
        *(("18 years", "≥ 18 years"), ("18 years", "<18 years"), ("18", "18+"), ("a fee of 20", "a fee of 20 %")),
        *(("a fee of 20", "a fee of 20%"), ("20 off", "%20 off"), ("20 a day", "$20 a day"), ("pay 20", "pay 20 €")),
        *(('a 10" pipe', "a 10' pipe"), ("a pipe of 10", 'a pipe of 10" in all')),
        *(("5 kg", "5 mg"), ("21 days", "21 weeks"), ("20 %", "20 ‰"), ("20 km", "20 km²"), ("3 July", "3 June")),
    ],
)
def test_signs_units_and_currencies_belong_to_their_number(quote: str, text: str) -> None:
    """A number without its sign, limit, currency or percent sign, or with another unit, is no quote."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(("Books may", "Books may not be returned"), ("Books may", "Books may **not** be returned")),
        *(("refundable", "not refundable"), ("refundable", "**not** refundable"), ("refundable", "non-refundable")),
        *(("you can", "you cannot"), ("you do", "you don't"), ("you do", "you don’t"), ("you do", "you do n't")),
        *(("accept returns", "We don’t accept returns"), ("be returned", "can never be returned")),
        *(("refund is paid", "No refund is paid"), ("There is", "There is no refund"), ("receipt", "without receipt")),
        *(("iade edilebilir", "iade edilebilir değildir"), ("iade hakkı", "iade hakkı yoktur")),
        *(("إرجاع الكتب", "لا إرجاع الكتب"), ("可退货", "不可退货"), ("书籍", "书籍不可退货")),
        *(("refundable", "NOT refundable"), ("may be returned", "may not be returned")),
        *(("mümkün", "asla mümkün"), ("mümkün", "hiç mümkün"), ("İade mümkün", "İade mümkün olmayan")),
        *(
            ("iade", "iade edilemez"),
            ("kitap", "kitap yapılmıyor"),
            ("退货", "禁止退货"),
            ("返品でき", "返品できません"),
        ),
        *(("반품할 수", "반품할 수 없습니다"), ("books can be…", "Under no circumstances books can be returned")),
        *(("books can be", "On no account, books can be"), ("the books may go", "None of the books may go")),
        *(
            ("iade mümkündür", "Hiçbir koşulda iade mümkündür"),
            ("Books may", "Books may\nnot go"),
            ("The answer is", "The answer is no."),
        ),
        *(("Rückgabe ist", "Rückgabe ist nicht möglich"), ("accepted", "no longer accepted")),
    ],
)
def test_no_cut_stands_beside_a_negation(quote: str, text: str) -> None:
    """A quote that leaves out the negation next to it says the opposite, so it is none."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(
            ("Return window: 21 days", f"Return window: 21 days{behind}")
            for behind in (
                "\n\nNo returns on",
                "\nNo returns on",
                "\n- no returns on",
                "\n## no returns",
                "\n> * **No**",
            )
        ),
        *(("Return window", "Refundable: no\n\nReturn window"), ("Return window", "Refundable: no\n- Return window")),
        *(("Fill in form", "Fill in form No. 5"), ("Sipariş formu", "Sipariş formu no 12")),
        *(
            ("Sipariş formu", "Sipariş formu no: A-12"),
            ("iade etmek", "iade etmek olmak"),
            ("edilmesi", "iade edilmesi"),
        ),
    ],
)
def test_a_negation_of_its_own_block_and_a_number_are_none(quote: str, text: str) -> None:
    """A negation that begins another block, and "No." in front of a number, do not touch the quote."""
    assert find_quote(quote, text) is not None


@pytest.mark.parametrize(
    "quote, text",
    [
        *(("smith & sons", "Smith & Sons"), ("Smith & sons", "Smith & Sons"), ("US LAW", "us law")),
        *(("Iade süresi", "İade süresi"), ("ılık su", "ilik su"), ("İlik", "ılik"), ("sıra no", "sira no")),
        *(("returned 21 days", "returned within 21 days"), ("Books ... returned", "Books may be returned")),
        *(("Books may be… returned", "Books may be returned"), ("[...] be returned", "may be returned")),
        *(("be returned.", "be returned, unless damaged"), ("a e\u0301t", "a e\u0301te"), ("cafe", "cafe\u0301")),
        *(
            ("\u0301te", "e\u0301te"),
            ("ok ❤", "ok ❤\ufe0f"),
            ("by 👩", "by 👩\u200d👧"),
            ("no 👍", "no 👍🏽"),
            ("re-turn", "return"),
        ),
        *(("resign now", "re-sign now"), ("state", "state's"), ("İstanbul", "İstanbul'da"), ("known", "well-known")),
        *(("of fice", "oﬃce"), ("wait it..", "wait it…"), (".. it ends", "… it ends")),
    ],
)
def test_what_is_not_word_for_word_is_not_found(quote: str, text: str) -> None:
    """Case, dots on i, left out words, other punctuation and half graphemes count."""
    assert find_quote(quote, text) is None


@pytest.mark.parametrize("mark", ["۔", ".", ",", "،", ":", "。"])
def test_the_first_place_that_may_be_cut_counts(mark: str) -> None:
    """Places where the cut is not allowed are passed over for one where it is."""
    text = f"not refundable, non-refundable, nonrefundable, refundables, refundable{mark}"
    assert find_quote("refundable", text) == (len(text) - 11, len(text) - 1)


@given(
    st.sampled_from(["49 TL", "%22", "2026", "Ankara", "100 km", "İADE SÜRESİ 21 GÜN"]),
    st.sampled_from(["dir", "dır", "dur", "dür", "tir", "tır", "tur", "tür", "DİR", "DIR"]),
    st.sampled_from("'’ʼ"),
    st.sampled_from(["", ".", ", iade 14 gün", " ve", "\n"]),
)
def test_a_turkish_copula_may_be_left_out(front: str, copula: str, mark: str, behind: str) -> None:
    """It says no more than "is", so the words in front of it are a quote, and nothing else of it is."""
    text = f"Bilgi: {front}{mark}{copula}{behind}"
    assert find_quote(front, text) == (7, 7 + len(front))
    assert find_quote(front, unicodedata.normalize("NFD", text)) is not None
    assert find_quote(f"{front}{mark}", text) is None
    assert find_quote(f"{front}{mark}{copula[:2]}", text) is None
    assert find_quote(front, f"{text} değil" if not behind else f"Bilgi: {front}{mark}{copula} değil{behind}") is None


@pytest.mark.parametrize(
    "ending", ["den fazla", "ye kadar", "siz", "dirhem", "dirler", "dan", "s", "da", "in", "dır-dir", "t"]
)
def test_other_endings_may_not_be_left_out(ending: str) -> None:
    """Every other ending behind an apostrophe may say more: from, up to, without, whose."""
    assert find_quote("49 TL", f"Bilgi: 49 TL'{ending}.") is None
