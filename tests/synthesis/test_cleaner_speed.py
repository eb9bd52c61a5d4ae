"""Hostile answers cost as much per character as friendly ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llama_index_grounded.synthesis.cleaner import AnswerCleaner, clean_answer
from tests.timing import assert_linear, assert_within

KEYS = [f"S{number}" for number in range(1, 9)]

HOSTILE: dict[str, Callable[[int], str]] = {
    "open marker": lambda size: "[" + "S1, " * (size // 4),
    "open markers": lambda size: "[S1, " * (size // 5),
    "brackets": lambda size: "[" * size,
    "nested markers": lambda size: "[S" * (size // 4) + "9]" * (size // 4),
    "markers on one line": lambda size: "[S9] " * (size // 5),
    "open heading": lambda size: "[S1 | Document: " + "x" * size,
    "open headings": lambda size: "[S1 | Document: " * (size // 16),
    "headings on one line": lambda size: "[S9 | Page: 1] " * (size // 15),
    "ends of blocks": lambda size: "[/S9] " * (size // 6),
    "links that are none": lambda size: "[a](" * (size // 4),
    "angles": lambda size: "<" * size,
    "tag names": lambda size: "<source " * (size // 8),
    "cut names": lambda size: "<sou" * (size // 4),
    "nested tags": lambda size: "<sou" * (size // 8) + "rce>" * (size // 8),
    "open value": lambda size: '<source title="' + "x" * size,
    "space in a tag": lambda size: "<source" + " " * size,
    "backticks": lambda size: "`" * size,
    "runs of all lengths": lambda size: "".join("`" * length + "a" for length in range(1, int((2 * size) ** 0.5))),
    "open code": lambda size: "` " + "a [S9] " * (size // 7),
    "dollars": lambda size: "$" * size,
    "open mathematics": lambda size: "\\(" * (size // 2),
    "backslashes": lambda size: "\\(" + "\\" * size,
    "fences": lambda size: "```a\n" * (size // 5),
    "entities": lambda size: "&amp;" * (size // 5),
    "chain of entities": lambda size: "&" + "amp;" * (size // 4),
    "blanks": lambda size: "x" + " " * size,
    "line ends": lambda size: "`\n" * (size // 2),
    "prose": lambda size: "Books may be returned [S1]. " * (size // 28),
}


def feed_characters(text: str) -> None:
    """Clean a text that arrives character by character."""
    cleaner = AnswerCleaner(KEYS)
    for character in text:
        cleaner.feed(character)
    cleaner.finish()


@pytest.mark.parametrize("part", ["[\\S1", "[\\S9] ", "[\\S1, ", "[\\S1 | Document: x", "[\\/", "[\\"])
def test_keys_of_documents(part: str) -> None:
    """Four times the characters of escaped keys, whole or begun, take about four times as long."""
    assert_linear(lambda size: clean_answer(part * (size // len(part)), KEYS, escapes="brackets"), 5_000)


def test_a_marker_that_never_closes() -> None:
    """Twenty thousand characters of an open marker take less than 50 ms."""
    text = HOSTILE["open marker"](20_000)
    assert_within(0.05, lambda: clean_answer(text, KEYS))


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE.keys())
def test_whole_answers(build: Callable[[int], str]) -> None:
    """Four times the characters of anything take about four times as long."""
    assert_linear(lambda size: clean_answer(build(size), KEYS), 5_000)


@pytest.mark.parametrize("build", HOSTILE.values(), ids=HOSTILE.keys())
def test_single_characters(build: Callable[[int], str]) -> None:
    """Four times the characters, one by one, take about four times as long."""
    assert_linear(lambda size: feed_characters(build(size)), 2_000)
