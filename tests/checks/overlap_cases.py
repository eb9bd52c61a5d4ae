"""Texts and answers that the tests of overlap share."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["ANSWERS", "RULES", "SENTENCES", "WORDS"]

RULES = (
    "Members may return a book within 30 days. There is no fee for that. Damaged books may not be returned.\n\n"
    "The library in Ankara opens at 9:00. A late return costs $5 per week."
)
WORDS = st.sampled_from(
    ("member", "book", "return", "fee", "library", "Ankara", "Kaya", "desk", "open", "week", "14", "30", "days")
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=7).map(lambda words: f"The {' '.join(words)}.")
ANSWERS = st.lists(SENTENCES, min_size=1, max_size=4).map(" ".join)
