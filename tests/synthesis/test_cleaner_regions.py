"""Code, mathematics and links, where brackets are no markers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.synthesis.cleaner import clean_answer

KEYS = ["S1", "S2"]

OPAQUE = [
    "`arr[S9]`",
    "``a ` [S9]``",
    "`a\n[S9]`",
    "``a `[S9]` b `[S9]` c",
    "```bash\nls [S9]\n```",
    "```py [S9]\n[S9]\n\n[S9]\n```",
    "   ```\n[S9]\n   ```",
    "~~~\n[S9]\n```\n[S9]\n~~~",
    "````\n```\n[S9]\n````",
    "```\n[S9]\n``` not closed\n[S9]\n```",
    "$v[S9]$",
    "$\\$[S9]$",
    "$$\nv = [S9]\n$$",
    "\\( [S9] \\)",
    "\\[ v=[1,1,2] [S9] \\]",
    "\\\\[ v=[S9] \\\\]",
    "[S9](http://x)",
    '[S9](http://x "a title")',
    "[S9]()",
    "[see [S9] here](http://x)",
    "![chart [S9]](c.png)",
    "[t](http://x/[S9])",
    "[t](http://x/(a)[S9])",
    "[[S9]](http://x)",
    "<https://x/[S9]>",
]


@pytest.mark.parametrize("text", OPAQUE)
def test_untouched(text: str) -> None:
    """Inside, markers are neither removed nor reported; behind, they are."""
    cleaned = clean_answer(f"{text}\n\nholds [S1] [S8]", KEYS)
    assert cleaned.text == f"{text}\n\nholds [S1]"
    assert (cleaned.keys, cleaned.unknown) == (("S1",), ("S8",))


@pytest.mark.parametrize("text", OPAQUE)
def test_untouched_at_the_end(text: str) -> None:
    """It is the same where the answer ends with it."""
    cleaned = clean_answer(text, KEYS, inline_citations=False)
    assert (cleaned.text, cleaned.keys, cleaned.unknown) == (text, (), ())


@pytest.mark.parametrize("text", [text for text in OPAQUE if "\n" not in text])
def test_behind_on_the_line(text: str) -> None:
    """Behind its end on the same line a marker is one again."""
    assert clean_answer(f"{text} holds [S1] [S8]", KEYS).text == f"{text} holds [S1]"


@pytest.mark.parametrize("text", ["```\n[S9]", "```py [S9]", "~~~~\n[S9]\n~~~\n[S9]"])
def test_fence_to_the_end(text: str) -> None:
    """A fence that is never closed reaches to the end."""
    assert clean_answer(text, KEYS).text == text


@pytest.mark.parametrize(
    "before, after",
    [
        ("`a ", "\n\n` b"),
        ("``a ", "` b"),
        ("` ", ""),
        ("`a", "\n```\nx ` y\n```"),
        ("costs $5", " or $6"),
        ("US$", "\nor CA$"),
        ("$a", "\n$"),
        ("US$ a", " or $"),
        ("\\$a", " \\$"),
        ("$$x ", "\n \t\n$$"),
        ("\\( ", "\n\n\\)"),
        ("\\[", ""),
        ("text ``` ", "\n\n```"),
        ("[t", " u"),
        ("[see", "](the note below)"),
        ("<https://x y ", ">"),
        ("http://x/", ""),
        ("<b>", "</b>"),
    ],
)
def test_not_opaque(before: str, after: str) -> None:
    """What does not open or does not close in time is text, and so is what follows it."""
    cleaned = clean_answer(f"{before}[S9]{after}", KEYS)
    assert cleaned.text == f"{before.rstrip(' ')}{after}"
    assert cleaned.unknown == ("S9",)


def test_prose_in_parentheses_is_no_target() -> None:
    """Parentheses with white space behind a marker make no link."""
    cleaned = clean_answer("open all day [S1](as of 2024) and [S9](see below)", KEYS)
    assert cleaned.text == "open all day [S1](as of 2024) and(see below)"
    assert cleaned.keys == ("S1",)


def test_marker_in_brackets_that_are_no_link() -> None:
    """Brackets around a marker that turn out to be no link's text leave it a marker."""
    assert clean_answer("[see [S9] and [S1]] so", KEYS).text == "[see and [S1]] so"


def test_blank_behind_a_dollar_sign_stays() -> None:
    """Removal does not turn a price into mathematics."""
    assert clean_answer("US$ [S9]x `$ [S8]`", KEYS).text == "US$ x `$ [S8]`"


def test_removal_does_not_make_an_autolink() -> None:
    """What a removal leaves behind ``<https://…`` does not become a part of it."""
    assert clean_answer("<https://x [S9]>", KEYS).text == "<https://x >"
    assert clean_answer("<https://x <source>y [S9]>", KEYS).text == "<https://x y>"


def without_markers_outside_code(text: str) -> str:
    """Take the markers out of a text with no other Markdown than inline code, the slow and plain way."""
    out, at = "", 0
    while at < len(text):
        run = re.match(r"`+", text[at:])
        if run is None:
            out, at = out + text[at], at + 1
            continue
        block = re.split(r"\n\n", text[at + run.end() :])[0]
        close = re.search(rf"(?<!`){run[0]}(?!`)", block)
        size = run.end() + (close.end() if close else 0)
        # What is code is marked, so that the markers in it are not seen below.
        out, at = out + text[at : at + size].replace("[", "\0"), at + size
    return out.replace("[S9]", "").replace("\0", "[")


@given(st.lists(st.sampled_from(["`", "``", "```", "````", "x[S9]x", " x ", "x\n\nx"]), max_size=30))
def test_inline_code(fragments: list[str]) -> None:
    """Markers go exactly where a plain search for closing backticks says that there is no code."""
    text = f"x{''.join(fragments)}"
    assert clean_answer(text, KEYS).text == without_markers_outside_code(text)
