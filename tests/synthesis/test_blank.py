"""An answer that says nothing is none, whatever it is made of; a number, a sign or a word of any script is one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.synthesis.blank import WordFinder, has_words
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import MODES, OK, ask, reason

BLANK = [
    "```\n```",
    "| | |",
    "|---|---|\n| | |",
    "$$",
    "`` ` ``",
    "\u2800",
    "\u3164\u115f",
    "\ufe0f",
    "S1",
    "(S1)",
    "S1, S2.",
    "`[S1]`",
    "```\n[S1]\n```",
    "$S1$ [S1]",
    "**S1**",
    "\u200bS1",
    "# ",
    "===",
]
SAID = [
    "14",
    "3.5 %",
    "😀",
    "✅ [S1]",
    "👩‍💻",
    "不行",
    "한글",
    "نعم",
    "हाँ",
    "x = 5",
    "`x`",
    "$x$",
    "∞",
    "€",
    "½",
    "Ⅳ",
    "S",
    "S12",
    "S1 is slow",
    "S1是",
    "S1\u0131",
]


def replied(text: str, *, claimed: bool) -> dict[str, Any]:
    """Write a reply that says this."""
    if not claimed:
        return {**OK, "answer": text}
    return {"verdict": "answered", "sources": ["S1"], "claims": [{"sources": ["S1"], "quote": "", "text": text}]}


def found(text: str, mode: str, *, claimed: bool, size: int = 1) -> Any:
    """Return the result and the texts of a reply that says this."""
    options: dict[str, Any] = {"output_cls": ClaimedAnswer} if claimed else {}
    return ask(ScriptedLLM([replied(text, claimed=claimed)], chunk_size=size), mode, max_retries=0, **options)


@pytest.mark.parametrize("claimed", [False, True], ids=["text", "claims"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", BLANK)
def test_markup_keys_and_fillers_are_no_answer(text: str, mode: str, claimed: bool) -> None:
    """Empty code, empty tables, bare keys and characters that show nothing are a blank answer, and are never shown."""
    asked = found(text, mode, claimed=claimed)
    assert reason(asked.result) == "invalid_output"
    assert "".join(asked.texts) == "The model's reply could not be read. Please ask again."


@pytest.mark.parametrize("claimed", [False, True], ids=["text", "claims"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", SAID)
def test_whatever_says_something_is_an_answer(text: str, mode: str, claimed: bool) -> None:
    """Numbers, emoji, formulas, letters of every script, and words that only begin like a key."""
    asked = found(text, mode, claimed=claimed)
    assert asked.result.answerable
    assert "".join(asked.texts) == asked.result.answer == text


_texts = st.lists(
    st.sampled_from(["S", "1", "S1", "2", " ", "[S1]", "|", "`", "😀", "\u3164", "\ufe0f", "w", "[S9]", "$"]),
    max_size=8,
).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=_texts, size=st.integers(1, 5))
@example(text="S[S1]1", size=1)
def test_a_stream_finds_the_same_blank(text: str, size: int) -> None:
    """In pieces of any size a stream shows and decides what the whole does."""
    whole, streamed = found(text, "sync", claimed=False), found(text, "stream", claimed=False, size=size)
    assert reason(streamed.result) == reason(whole.result)
    assert "".join(streamed.texts) == whole.result.answer


@example(pieces=["S-S", "1 "])
@given(pieces=st.lists(_texts, max_size=6))
def test_a_word_is_found_only_where_the_whole_has_one(pieces: list[str]) -> None:
    """A finder never says yes of a text that has no word, and says so of every text with one once a blank follows."""
    finder, whole = WordFinder(["S1", "S12"]), "".join(pieces)
    said = [finder.feed(piece) for piece in pieces]
    assert not any(said) or has_words(whole, ["S1", "S12"])
    assert finder.feed(" ") is has_words(whole, ["S1", "S12"])
