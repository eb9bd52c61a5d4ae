"""What a model may write otherwise in a quote, beyond how the text is set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.quotes import find_quote

WORDS = st.lists(st.from_regex(r"[a-z]{3,8}", fullmatch=True), min_size=3, max_size=8).filter(
    lambda words: "not" not in words
)


@given(WORDS, st.sampled_from(["*", "**", "***", "_", "`"]), st.data())
def test_emphasis_around_words_may_be_left_out(words: list[str], mark: str, data: st.DataObject) -> None:
    """A pair of marks anywhere in the source hides nothing, and the offsets count it."""
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    marked = list(words)
    marked[first] = mark + marked[first]
    marked[last] += mark
    text = "~ " + " ".join(marked) + " ~"
    found = find_quote(" ".join(words), text)
    assert found is not None
    assert text[slice(*found)].strip(mark) == " ".join(marked).strip(mark)


@given(WORDS, st.sampled_from(["…", "...", " … ", "... "]), st.booleans(), st.booleans())
def test_an_ellipsis_at_an_end_says_that_the_source_goes_on(
    words: list[str], dots: str, front: bool, back: bool
) -> None:
    """Ellipses around a quote are no part of it, and the offsets are those of the words."""
    quote = " ".join(words)
    text = f"zz {quote} zz"
    assert find_quote(dots * front + quote + dots * back, text) == (3, 3 + len(quote))


@given(WORDS, st.sampled_from(["", "Fine. ", "So?\n", "# ", "“", "**"]))
def test_a_sentence_may_begin_small(words: list[str], before: str) -> None:
    """A small letter stands for the capital that only begins a sentence, and for no other."""
    quote = " ".join(words)
    capital = quote[0].upper() + quote[1:]
    assert find_quote(quote, before + capital) == (len(before), len(before) + len(quote))
    assert find_quote(quote, f"the {capital}") is None


@pytest.mark.parametrize(
    "quote, text, passage",
    [
        ("the 'return window' is", 'the "return window" is 21', 'the "return window" is'),
        ('the "return window" is', "the ‘return window’ is 21", "the ‘return window’ is"),
        ("within 21 days of", "within **21 days** of delivery", "within **21 days** of"),
        ("within 21 days of", "within 21 **days** of delivery", "within 21 **days** of"),
        ("21 days", "within **21 days** of", "21 days"),
        ("run init now", "run `init` _now_", "run `init` _now"),
        ("bold and it is", "**bold and *it* is** so", "bold and *it* is"),
        ("Monday – Friday", "open Monday–Friday only", "Monday–Friday"),
        ("Monday-Friday", "open Monday – Friday only", "Monday – Friday"),
        ("iade süresi", "İade süresi 21 gün", "İade süresi"),
        ("ılık su", "Su. Ilık su", "Ilık su"),
    ],
)
def test_a_passage_in_another_wording_is_found(quote: str, text: str, passage: str) -> None:
    """Quote marks, emphasis, spaces around a dash and a first letter differ; the passage is as the text has it."""
    found = find_quote(quote, text)
    assert found is not None
    assert text[slice(*found)] == passage


@pytest.mark.parametrize(
    "quote, text",
    [
        *(('a pipe of 5"', "a pipe of 5'"), ("a 5' pipe", 'a 5" pipe'), ("init", "__init__"), ("23", "2*3")),
        *(("2 3 4", "2 * 3 * 4"), ("price of tax", "price* of *tax"), ("refundable", "**not** `refundable`")),
        *(("be returned", "may _not_ **be returned**"), ("1 5", "1 - 5"), ("smith & sons", "by Smith & Sons")),
        *(
            ("Books … returned", "Books may be returned"),
            ("ßa es", "Sa es"),
            ("50 °C", "**−50 °C**"),
            ("days off", "21 days *of*f"),
        ),
    ],
)
def test_what_says_something_else_is_not_found(quote: str, text: str) -> None:
    """Feet and inches, code, sums, loose marks, negations, names and left out words count."""
    assert find_quote(quote, text) is None
