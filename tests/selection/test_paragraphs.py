"""A chunk is split where a whole block may be taken out, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.selection.paragraphs import fold, split_blocks, word_count
from tests.timing import assert_within

MARKS = st.sampled_from(
    ["\n", "\n\n", "# ", "- ", "1. ", "```", "~~~", "|", "---", "===", "**", "    ", "\t", "\u2028"]
)
DOCUMENTS = st.lists(MARKS | st.text(max_size=8), max_size=20).map("".join)

COUNTED = """
- * + • ‣ – — ▪ ● □ ✓ ⚠️ ✅ ** . 1. 1) (1) [1] 12. a) (a) a. A. ç) (ç) ii. ii) (ii) IV. (IV) (Ⅳ) 1- a- 1: 1.1 1.1. 2.3.4)
Step~1: Adım~2: Madde~3~– §~3 §3 ① ➓ （一） （1） 1、 十一、 3️⃣ **1.** __a)__ *(1)* >~1. >~- \\item <li>
"""


@given(text=DOCUMENTS)
def test_the_blocks_hold_every_visible_character_in_order(text: str) -> None:
    """Blocks follow each other without overlap, begin and end with their own text, and only white space is between."""
    at = 0
    for block in split_blocks(text):
        assert not text[at : block.start].strip()
        assert block.start < block.end
        assert text[block.end - 1].strip()
        at = block.end
    assert not text[at:].strip()


@given(text=DOCUMENTS)
def test_only_headings_have_a_level_and_a_title(text: str) -> None:
    """Level and title belong to headings, and a title is a part of its block."""
    for block in split_blocks(text):
        assert (block.kind == "heading") == (block.level > 0)
        assert block.title in text[block.start : block.end]


@given(text=st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    """The folded form is stable, and white space and composition make no difference."""
    assert fold(fold(text)) == fold(text)
    assert fold(f" \n{text}\t") == fold(text)


@pytest.mark.parametrize(
    "text, kinds",
    [
        ("One.\n\nTwo.", ["prose", "prose"]),
        ("One,\ngoing on.", ["prose"]),
        ("# Title\nText.", ["heading", "prose"]),
        ("Title\n=====\nText.", ["heading", "prose"]),
        ("Title\n---\n\nText.", ["heading", "prose"]),
        ("**Note**\n\nText.", ["heading", "prose"]),
        ("**Note** that this is text.", ["prose"]),
        ("#hashtag is text", ["prose"]),
        ("```\na\n\nb\n```\nText.", ["code", "prose"]),
        ("````\n```\n\nb\n````", ["code"]),
        ("~~~\nnever closed\n\nb", ["code"]),
        ("    a = 1\n    b = 2", ["code"]),
        ("- one\n- two\n\n- three\n\nText.", ["list", "prose"]),
        ("1. one\n\n   more of one\n\n2. two", ["list"]),
        ("Text:\n- one\n- two", ["prose", "list"]),
        ("- one\n# Title", ["list", "heading"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["table"]),
        ("a | b\n--- | ---\n1 | 2", ["table"]),
        ("{|\n| a\n|-\n| b\n|}", ["table"]),
        ("+---+---+\n| a | b |\n+---+---+", ["table"]),
        ("=== ===\na   b\n=== ===", ["table"]),
        ("<table>\n<tr><td>1</td></tr>\n</table>", ["table"]),
        ("a | b is no table", ["prose"]),
        ("(1) one\n\n(2) two\n\nText.", ["list", "prose"]),
        ("i. one\n\nii. two\n\niii. three", ["list"]),
        ("Text:\n(a) one\n(b) two", ["prose", "list"]),
        ("<ul>\n<li>one</li>\n\n<li>two\n\nmore</li>\n</ul>\nText.", ["list", "prose"]),
        ("<UL>\n\n<ul>\n\na\n\n</ul>\n\nb\n\n</UL>\n\nText.", ["list", "prose"]),
        ("<li>two</li>\n\n<li>three</li>\n\nText.", ["list", "prose"]),
        ("<pre>\na\n\n# b\n</pre>\n\nText.", ["code", "prose"]),
        ("<pre>\nnever closed\n\nb", ["code"]),
        ("<table>\n\n<tr><td>1</td></tr>\n\n</table>", ["table"]),
        ("Text.\n<blockquote>\n\na\n\n</blockquote>", ["prose", "code"]),
        ("<p>Text.</p>", ["prose"]),
        ("\\begin{verbatim}\na\n\nb\n\\end{verbatim}\n\nText.", ["code", "prose"]),
        ("\\begin{quote}\n\\begin{center}\n\na\n\\end{center}\n\nb\n\\end{quote}", ["code"]),
        ("\\begin{document}\n\nText.", ["prose", "prose"]),
        (".. code-block:: python\n\n   a\n\n   b\n\nText.", ["code", "prose"]),
        ("Text::\n\n  a\n\n  b\n\nText.", ["prose", "code", "code", "prose"]),
        ("!!! note\n\n    a\n\n    b\n\nText.", ["code", "prose"]),
        ('??? note "Title"\n    a\n\nText.', ["code", "prose"]),
        ("::: warning\n\na\n\nb\n\n:::\n\nText.", ["code", "prose"]),
        ("a :: b\n\nQ: What?\nA: That.\n\nQ2: How?", ["prose", "prose", "prose"]),
        ("", []),
        (" \n\t\n", []),
    ],
)
def test_kinds_of_blocks(text: str, kinds: list[str]) -> None:
    """Markdown's blocks are told apart."""
    assert [block.kind for block in split_blocks(text)] == kinds


@pytest.mark.parametrize("mark", [mark for line in COUNTED.splitlines() for mark in line.split(" ") if mark])
def test_every_usual_mark_begins_a_list(mark: str) -> None:
    """Whatever bullet or count stands before them, items are one list, also with blank lines between them."""
    item = f"{mark.replace('~', ' ')} Switch off the main pump and wait until the green light is on."
    assert [block.kind for block in split_blocks(f"{item}\n\n{item}\n\nText.")] == ["list", "prose"]
    assert [block.kind for block in split_blocks(f"Text.\n{item}\n{item}")] == ["prose", "list"]


@pytest.mark.parametrize(
    "text",
    [
        "In 2024 it rained.",
        "I am",
        "Mild. Warm",
        "(see below) we",
        "A book",
        "(Note) that",
        "3 books",
        "E-books",
    ],
)
def test_other_beginnings_are_prose(text: str) -> None:
    """A year, a short word and a remark in brackets begin no list."""
    assert [block.kind for block in split_blocks(f"{text} are all that there is.")] == ["prose"]


@pytest.mark.parametrize(
    "line, level, title",
    [
        ("# Returns", 1, "Returns"),
        ("### Returns ###", 3, "Returns"),
        ("## C#", 2, "C#"),
        ("##\tTabbed", 2, "Tabbed"),
        ("#", 1, ""),
        ("Returns\n=======", 1, "Returns"),
        ("Returns\n-------", 2, "Returns"),
        ("__Returns__", 7, "Returns"),
    ],
)
def test_headings(line: str, level: int, title: str) -> None:
    """A heading's level and title are read without its marks."""
    (block,) = split_blocks(line)
    assert (block.kind, block.level, block.title) == ("heading", level, title)


@pytest.mark.parametrize(
    "text, words",
    [
        ("", 0),
        ("one two three", 3),
        ("Yes - no - or - maybe", 4),
        ("bir iki üç", 3),
        ("退貨期限為二十一天", 4),
        ("本は21日以内に返品できます", 7),
        ("คืนหนังสือได้ภายใน", 4),
    ],
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    """Marks alone are no words, and scripts without spaces are counted by their characters."""
    assert word_count(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "# " + " " * 100_000 + "x",
        " " * 100_000 + "x",
        "-|-" + " " * 100_000 + "x",
        "#" * 100_000,
        "**" + "*a" * 50_000,
        "```\n" * 50_000,
        "- \n" * 50_000,
        "a:\n\n" * 20_000,
        "|" * 100_000,
        "=" * 100_000 + " x",
        "<ul>\n" * 50_000,
        "<ul></ul>\n" * 20_000,
        "\\begin{a}\n" * 50_000,
        ":" * 100_000,
        "::: a\n" * 30_000,
        ".. a\n\n" * 30_000,
        "> " * 50_000,
        "1." * 50_000,
        "<li " * 50_000,
        "a " * 50_000,
        "(" * 100_000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_documents_take_no_longer_than_others(text: str) -> None:
    """No document makes the split slow: 100,000 awkward characters take well under three seconds of work."""
    assert_within(3, lambda: split_blocks(text))
