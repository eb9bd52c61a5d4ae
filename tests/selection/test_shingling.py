"""Words and runs of words, and the look at all texts that spares most comparisons."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index_grounded.selection.shingling import may_be_near, shingle_hashes, shingles
from llama_index_grounded.text.scripts import UNSPACED

MARKS = "–—’‘“”…•«»‹›„¿¡§¶†‡№℃→★☆♥、。"
WORDS = st.sampled_from(["a", "b", "B", "c", "return", "iade", "İade", "günü", "gu\u0308nu\u0308", "x_y", "٣", "été"])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)
ANY_TEXT = st.text(alphabet=st.characters() | st.sampled_from(f"ab İıéß_ \n{MARKS}")).filter(
    lambda text: re.search(f"[{UNSPACED}]", text) is None
)


def jaccard(one: str, other: str) -> float:
    """Compute it as it is defined."""
    mine, theirs = shingles(one), shingles(other)
    return len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0


@given(texts=st.lists(TEXTS, max_size=8), threshold=st.floats(0.01, 1.0))
@example(texts=["a b c a b c a b c", "a b c"], threshold=0.3)
@example(texts=["a b", "A, B!"], threshold=1.0)
@example(texts=["", "a b c d", "", "a b c d"], threshold=1.0)
def test_no_near_text_is_left_out(texts: list[str], threshold: float) -> None:
    """Whatever is near enough to another text may be near: the look at all of them misses none."""
    maybe = may_be_near(texts, threshold)
    assert len(maybe) == len(texts)
    for place, text in enumerate(texts):
        if any(jaccard(text, other) >= threshold for other in texts[:place] + texts[place + 1 :]):
            assert maybe[place]


def test_most_texts_are_left_out() -> None:
    """Texts that only share a word here and there are not compared at all; two that are alike are."""
    texts = [" ".join(f"w{(place * step) % 97}" for step in range(1, 60)) for place in range(1, 60)]
    assert not any(may_be_near(texts, 0.8))
    maybe = may_be_near([*texts, texts[7] + " and more"], 0.8)
    assert [place for place, may_be in enumerate(maybe) if may_be] == [7, len(texts)]


@given(text=ANY_TEXT)
@example(text=f"one{'–'.join(MARKS)}two_three")
@example(text="don’t “quote” e\u0301te\u0301 50 € İSTANBUL'da")
def test_words_are_what_stands_between_marks(text: str) -> None:
    """However many kinds of marks a text has, its words are its letters, digits and underscores, composed and small."""
    folded = unicodedata.normalize("NFC", text).replace("İ", "i").casefold()
    words = re.findall(r"\w+", folded)
    runs = [" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))] if words else []
    assert shingles(text) == frozenset(runs)


@given(one=TEXTS, other=TEXTS)
def test_equal_runs_have_equal_hashes(one: str, other: str) -> None:
    """Two texts have as many hashes in common as runs, and each as many different ones."""
    mine, theirs = {*shingle_hashes(one).tolist()}, {*shingle_hashes(other).tolist()}
    assert len(mine) == len(shingles(one))
    assert len(mine & theirs) == len(shingles(one) & shingles(other))


@pytest.mark.parametrize("run", ["a b c", "b c a", "c b a", "a a b", "a b a"])
def test_the_order_of_three_words_counts(run: str) -> None:
    """The same three words in another order are another run."""
    others = {"a b c", "b c a", "c b a", "a a b", "a b a"} - {run}
    assert not {*shingle_hashes(run).tolist()} & {value for other in others for value in shingle_hashes(other).tolist()}
