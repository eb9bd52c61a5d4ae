"""Escapes and inline markers: the shapes that models write, one by one."""

from __future__ import annotations

import dataclasses

import pytest

from llama_index_grounded.rendering import unescape
from llama_index_grounded.synthesis.cleaner import AnswerCleaner, clean_answer

KEYS = ["S1", "S2", "S3", "S4"]


def text_of(text: str) -> str:
    """Return the cleaned text alone."""
    return clean_answer(text, KEYS).text


class TestMarkers:
    """What counts as a marker, and what is left of it."""

    @pytest.mark.parametrize(
        "marker, keys",
        [
            ("[S1]", ("S1",)),
            ("[s2]", ("S2",)),
            ("[S1, S2]", ("S1", "S2")),
            ("[S2;S1]", ("S2", "S1")),
            ("[S1、S2，S3；S4]", ("S1", "S2", "S3", "S4")),
            ("[S1، S2]", ("S1", "S2")),
            ("[S1 and S2]", ("S1", "S2")),
            ("[S1, S2, and S3]", ("S1", "S2", "S3")),
            ("[S1 ve S2]", ("S1", "S2")),
            ("[S1 & S2]", ("S1", "S2")),
            ("[ S1 ]", ("S1",)),
            ("[S1,\nS2]", ("S1", "S2")),
            ("[S1][S2]", ("S1", "S2")),
            ("[[S1]]", ("S1",)),
            ("【S1】", ("S1",)),
            ("［S1］", ("S1",)),
            ("【1†S1】", ("S1",)),
            ("[S2-S4]", ("S2", "S3", "S4")),
            ("[S2–4]", ("S2", "S3", "S4")),
            ("[S2\u2011S3, S1]", ("S2", "S3", "S1")),
            ("[S1] [S2] [S1]", ("S1", "S2")),
        ],
    )
    def test_valid(self, marker: str, keys: tuple[str, ...]) -> None:
        """A marker of known keys stays as it was written, and its keys are reported once, in order."""
        cleaned = clean_answer(f"So it is {marker}.", KEYS)
        assert cleaned.text == f"So it is {marker}."
        assert (cleaned.keys, cleaned.unknown) == (keys, ())

    @pytest.mark.parametrize(
        "marker, unknown",
        [
            ("[S9]", ("S9",)),
            ("[S5, S7]", ("S5", "S7")),
            ("[s9]", ("s9",)),
            ("[S01]", ("S01",)),
            ("[S１]", ("S１",)),
            ("[S٣]", ("S٣",)),
            ("[S²]", ("S²",)),
            ("[S 1]", ("S 1",)),
            ("[S3-S1]", ("S3-S1",)),
            ("[S1-S999999]", ("S1-S999999",)),
            ("[S0-2]", ("S0-2",)),
            ("【4†S9】", ("S9",)),
            ("[[S9]]", ("S9",)),
            ("[S9][S8]", ("S9", "S8")),
            ("[S9] [S9]", ("S9",)),
            ("[S[S9]8]", ("S9", "S8")),
        ],
    )
    def test_unknown(self, marker: str, unknown: tuple[str, ...]) -> None:
        """A marker without a known item goes with the blanks in front of it; its ids are reported as written."""
        cleaned = clean_answer(f"So it is \t{marker}.", KEYS)
        assert cleaned.text == "So it is."
        assert (cleaned.keys, cleaned.unknown) == ((), unknown)

    @pytest.mark.parametrize(
        "marker, left",
        [
            ("[S1, S9]", "[S1]"),
            ("[S9, S1]", "[S1]"),
            ("[S9, S1; S8; S2, S7]", "[S1; S2]"),
            ("[ S1 , S9 ]", "[ S1 ]"),
            ("[[S1, S9]]", "[[S1]]"),
            ("[S1-S2, S2-S9]", "[S1-S2]"),
            ("【1†S9, 2†S2】", "【2†S2】"),
            ("[S1, <source>S2]", "[S1, S2]"),
        ],
    )
    def test_mixed(self, marker: str, left: str) -> None:
        """Unknown items are cut out of a group, each with the separator in front of it."""
        assert text_of(f"x {marker}.") == f"x {left}."

    @pytest.mark.parametrize(
        "text",
        [
            "[3] and [6-10]",
            "[1, 1, 2]",
            "[see note] [S] [Sx] [S1x] [Sé]",
            "S1 says a; sources 2 and 3 agree (S9), ID 3 and 5",
            "[Summary of 0b1c]",
            "[S1】 【S9]",
            "[S9,\n\nS8]",
            "[S1 S9]",
            "array[0] = [",
            "【4†source】",
        ],
    )
    def test_no_marker(self, text: str) -> None:
        """Other bracketed text, and keys in prose, are text."""
        cleaned = clean_answer(text, KEYS)
        assert (cleaned.text, cleaned.keys, cleaned.unknown) == (text, (), ())

    def test_without_inline_citations(self) -> None:
        """All markers go the same way; what they named is reported all the same."""
        cleaned = clean_answer("a [S1], b [[S2]] c [S9, S3].", KEYS, inline_citations=False)
        assert cleaned.text == "a, b c."
        assert (cleaned.keys, cleaned.unknown) == (("S1", "S2", "S3"), ("S9",))

    def test_a_run_of_blanks(self) -> None:
        """All blanks in front of a marker that goes, go with it."""
        assert text_of(f"x{' ' * 40}[S9].") == "x."

    def test_right_to_left(self) -> None:
        """Markers behind Arabic punctuation are read as any other."""
        cleaned = clean_answer("هل يمكن ذلك؟ [S1، S9]", KEYS)
        assert (cleaned.text, cleaned.keys) == ("هل يمكن ذلك؟ [S1]", ("S1",))

    def test_a_marker_has_a_limit(self) -> None:
        """A list longer than any answer needs is text, and so bounds what is held back."""
        text = f"[{'S1, ' * 300}S9]"
        assert text_of(text) == text


class TestStream:
    """What a reader sees while the answer is written."""

    def test_nothing_doubtful_is_shown(self) -> None:
        """A begun marker waits, and text in front of it does not."""
        cleaner = AnswerCleaner(["S1"])
        shown = [cleaner.feed(token) for token in ["a [", "S", "1", "]", "[S2", "].", " b"]]
        assert shown == ["a", "", "", "", " [S1]", ".", " b"]
        assert cleaner.finish() == ""
        assert (cleaner.keys, cleaner.unknown) == (("S1",), ("S2",))

    def test_open_code_and_prices_do_not_stop_the_text(self) -> None:
        """Behind a backtick or a dollar sign that may never be closed text flows on up to the next bracket."""
        cleaner = AnswerCleaner(["S1"])
        assert cleaner.feed("costs US$a or `b and so on [S9] to") == "costs US$a or `b and so on"
        assert cleaner.feed(" the end.\n\n") == " to the end.\n\n"

    def test_finish(self) -> None:
        """A finished answer gives nothing more and takes nothing more."""
        cleaner = AnswerCleaner([])
        assert cleaner.feed("a [S") == "a"
        assert cleaner.finish() == " [S"
        assert cleaner.finish() == ""
        with pytest.raises(RuntimeError, match="finished"):
            cleaner.feed("b")


class TestEscapes:
    """The prompt's escapes, undone once."""

    @pytest.mark.parametrize(
        "text, expected",
        [
            ("if a &lt; b", "if a < b"),
            ("&amp;lt;", "&lt;"),
            ("&amp;amp;lt;", "&amp;lt;"),
            ("&amp;", "&amp;"),
            ("a && b &gt; c &amp;&lt;", "a && b &gt; c &amp;<"),
            ("&amp;ltx &amp;l", "&amp;ltx &amp;l"),
            ("&amp;amp; &am &", "&amp;amp; &am &"),
            ("&LT; &#60;", "&LT; &#60;"),
        ],
    )
    def test_examples(self, text: str, expected: str) -> None:
        """Only what the prompt escaped is unescaped, in a whole text as in an answer."""
        assert unescape(text) == expected
        assert text_of(text) == expected

    def test_before_tags(self) -> None:
        """A copied escape is unescaped first, so it can't hide a tag, and what it stood for is no escape again."""
        assert text_of('&lt;cite index="S1"&gt;x&lt;/cite&gt;') == "x"
        assert text_of("&amp;lt;source>") == "&lt;source>"


def test_cleaned_is_frozen() -> None:
    """The record of a cleaned answer can't be changed."""
    cleaned = clean_answer("x", [])
    with pytest.raises(dataclasses.FrozenInstanceError):
        cleaned.text = "y"  # type: ignore[misc]
