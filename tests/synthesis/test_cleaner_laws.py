"""What holds for every answer, however it is cut into pieces."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index_grounded.rendering import unescape
from llama_index_grounded.synthesis.cleaner import AnswerCleaner, Cleaned, clean_answer
from llama_index_grounded.synthesis.lookahead import LIMIT
from tests.synthesis.cleaner_cases import (
    ESCAPES,
    FRAMES,
    KEYS,
    MARKDOWN,
    MARKERS,
    OF_DOCUMENTS,
    TAGS,
    clean_in_pieces,
    mixtures,
)

every = mixtures(TAGS, MARKERS, FRAMES, MARKDOWN, ESCAPES)
unescaped = mixtures(TAGS, MARKERS, FRAMES, MARKDOWN)
of_documents = mixtures(OF_DOCUMENTS, TAGS, MARKERS, FRAMES, MARKDOWN)
cuts = st.lists(st.integers(0, 60), max_size=6)

PLAIN = (
    "<",
    "< ",
    "a<b",
    "<b>",
    "<5",
    "</b>",
    "[3]",
    "[1, 1, 2]",
    "[see note]",
    "[x](http://y/[S9])",
    "[S9](u)",
    "![S9](u)",
    "<https://x/[S9]>",
    "(S1)",
    "S9 says ",
    "[S9 | x]",
    "[/path]",
    "[\\S9]",
    "[S9 | Document: z](u)",
    "![S9 | Document: z](u)",
    "see <source of the Nile, ",
    "&gt;",
    "&amp;",
    " && ",
)

# A whole tag without attributes, and a marker of one unknown id, as somebody else would look for them.
A_TAG = re.compile(r"<\s*/?\s*(source|sources|cite)\s*/?\s*>", re.IGNORECASE)
AN_UNKNOWN_MARKER = re.compile(r"\[\s*S[4-9]\s*\]|【\s*S[4-9]\s*】|［\s*S[4-9]\s*］")


@given(every, cuts, st.booleans())
@example("a [", [1], True)
@example("$$[S8]\\$$]", list(range(10)), True)
@example("<source\tS9\n=]", list(range(14)), True)
@example("&lt;source&gt;", [], True)
@example("```bash\nls\n```\nx [S1]", list(range(21)), True)
def test_cuts_do_not_matter(text: str, cuts: list[int], inline: bool) -> None:
    """Text, keys and unknown ids are the same for the whole answer, for single characters and for any pieces."""
    whole = clean_answer(text, KEYS, inline_citations=inline)
    assert clean_in_pieces(text, range(1, len(text)), inline_citations=inline) == whole
    assert clean_in_pieces(text, [cut for cut in cuts if cut < len(text)], inline_citations=inline) == whole


@given(of_documents, cuts, st.booleans())
@example("[x][\\S1]", [4], True)
@example("\\[\\S1]", [1], True)
@example("[\\S9<source>]", [5], True)
@example("[S1 | Document: [\\/S1]\\]", [20], False)
def test_keys_of_documents(text: str, cuts: list[int], inline: bool) -> None:
    """Where documents' own keys were escaped, cuts do not matter, and no second look finds a key that is new."""
    whole = clean_answer(text, KEYS, inline_citations=inline, escapes="brackets")
    for places in (range(1, len(text)), [cut for cut in cuts if cut < len(text)]):
        assert clean_in_pieces(text, places, inline_citations=inline, escapes="brackets") == whole
    again = clean_answer(whole.text, KEYS, inline_citations=inline, escapes="none")
    assert (again.text, again.unknown) == (whole.text, ())
    assert set(again.keys) <= (set(whole.keys) if inline else set())


@given(unescaped, st.booleans())
@example("`<source>`[S9]`[S8]`", True)
@example("`<source>`<source>`", True)
@example("``[S9]`[S8]`", True)
@example("$ [S9]x `$ [S8]`", True)
@example("$<source>5 [S9]$", True)
@example("[[S9]<source e=]()", True)
@example("<so<sou<source>rce><so", True)
@example("$$ [S8]\n<source> <source>\n$$", True)
@example("<http:<cite>`><source>`", True)
@example("\\<source>[`[S8] \\] [S9]`", True)
def test_nothing_is_left_to_remove(text: str, inline: bool) -> None:
    """Cleaning what was cleaned changes nothing and finds no unknown id, so removal never makes a tag or a marker."""
    first = clean_answer(text, KEYS, inline_citations=inline)
    second = clean_answer(first.text, KEYS, inline_citations=inline)
    assert (second.text, second.unknown) == (first.text, ())
    assert inline or not second.keys


@given(mixtures(TAGS, [item for item in MARKERS if item[0] not in "()]" or item[-1] == "]"], ["a", " ", "\n"]))
def test_no_tag_and_no_unknown_marker(text: str) -> None:
    """Where there is neither code nor mathematics nor a link, no whole tag and no unknown marker comes out."""
    cleaned = clean_answer(text, KEYS).text
    assert not A_TAG.search(cleaned)
    assert not AN_UNKNOWN_MARKER.search(re.sub(r"<https?:[^\s<>]*>", "", cleaned))


@given(mixtures(MARKDOWN, PLAIN), st.booleans())
@example("a" * 5000, True)
def test_plain_text_stays(text: str, inline: bool) -> None:
    """Without tags, markers and escapes every byte comes back and nothing is reported."""
    cleaned = clean_answer(text, KEYS, inline_citations=inline)
    assert cleaned == Cleaned(text=text, keys=(), unknown=())


@given(every, st.booleans())
def test_reports(text: str, inline: bool) -> None:
    """What is reported as a key is one, what is reported as unknown is none, and nothing is reported twice."""
    cleaned = clean_answer(text, KEYS, inline_citations=inline)
    assert set(cleaned.keys) <= set(KEYS)
    assert not set(cleaned.unknown) & set(KEYS)
    assert len(set(cleaned.keys)) == len(cleaned.keys)
    assert len(set(cleaned.unknown)) == len(cleaned.unknown)


@given(every)
def test_no_marker_is_left(text: str) -> None:
    """Without inline citations no marker of a key is left."""
    cleaned = clean_answer(text, KEYS, inline_citations=False)
    assert not clean_answer(cleaned.text.replace("&", ""), KEYS, inline_citations=False).keys


@given(st.text(st.sampled_from("&<;ampltgx \n")))
def test_unescape_inverts_the_prompt(text: str) -> None:
    """What the prompt escaped comes back exactly."""
    escaped = re.sub(r"&(?=(amp;)*lt;)", "&amp;", text).replace("<", "&lt;")
    assert unescape(escaped) == text


@given(mixtures([item for item in ESCAPES if "source" not in item], ["x", " ", "amp", "lt"]), cuts)
@example("&amp;ltx", [5])
def test_unescape_is_incremental(text: str, cuts: list[int]) -> None:
    """Pieces of an answer are unescaped as the whole is."""
    assert clean_in_pieces(text, [cut for cut in cuts if cut < len(text)]).text == unescape(text)
    assert clean_in_pieces(text, range(1, len(text))).text == unescape(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "S1, " * 2000,
        "[S1, " * 1500,
        "[x [S9] " * 800,
        "[S9](" * 1200,
        "<" * 6000,
        "<sou" * 1500 + "rce>" * 1500,
        "[S" * 2000 + "9]" * 2000,
        "[S1 | Document: " + "x" * 6000,
        "[S1 | Document: " * 400,
        "[/S" * 2000,
        '<source title="' + "x" * 6000,
        "<source" + " " * 6000,
        "<https://" + "x" * 6000,
        "&" + "amp;" * 1500,
        "x" + " " * 6000 + "[S9]",
        "x" + "~" * 6000,
    ],
    ids=lambda text: text[:9],
)
def test_little_is_held_back(text: str) -> None:
    """Outside code and mathematics at most 4,096 characters wait at any time, here looked at every 97."""
    cleaner = AnswerCleaner(KEYS)
    for start in range(0, len(text), 97):
        cleaner.feed(text[start : start + 97])
        assert len(copy.deepcopy(cleaner).finish()) <= 4 * LIMIT


@given(unescaped)
def test_certain_text_is_let_go(text: str) -> None:
    """Behind a blank line, a letter and a line end nothing waits, unless code or mathematics is open."""
    cleaner = AnswerCleaner(KEYS)
    cleaner.feed(text.replace("`", "").replace("~", "") + "\n\n")
    cleaner.feed('">x\n')
    assert not cleaner.finish()
