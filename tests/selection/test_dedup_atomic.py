"""What a markup language holds together is never cut, nor is the sentence that it may be about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import ATOMIC, LONG, bodies

A, B, C, _ = LONG


def dedup(texts: list[str]) -> list[str]:
    """Return the texts that are left."""
    return bodies(ScopedDedup().postprocess_nodes(make_nodes(texts, metadata={"document_id": "returns"})))


OPEN_AND_CLOSE = [
    ("<ul>\n<li>", "</li>\n</ul>"),
    ("<pre>\n", "\n</pre>"),
    ("<blockquote>\n\n", "\n\n</blockquote>"),
    ("```\n", "\n```"),
    ("::: warning\n\n", "\n\n:::"),
    ("\\begin{verbatim}\n", "\n\\end{verbatim}"),
    ("\\begin{itemize}\n\\item ", "\n\\end{itemize}"),
]


@pytest.mark.parametrize("opening, closing", OPEN_AND_CLOSE, ids=str)
def test_nothing_is_cut_out_of_a_container(opening: str, closing: str) -> None:
    """Whatever the markup holds together stays whole, blank lines or not, and prose behind it is cut as ever."""
    one, two = (f"{opening}{own}\n\n{A}\n\n{own} again{closing}" for own in ("open()", "close()"))
    assert dedup([one, two]) == [one, two]
    assert dedup([f"{one}\n\n{B}", f"{two}\n\n{B}\n\n{C}"])[1] == f"{two}\n\n{C}"


@pytest.mark.parametrize(
    "opening", [".. code-block:: sh\n", ".. note::\n", "!!! note\n", '??? tip "Try"\n', "As follows::\n"]
)
@pytest.mark.parametrize("indent", ["   ", "    ", "\t"])
def test_nothing_is_cut_out_of_indented_lines(opening: str, indent: str) -> None:
    """What is indented under a directive is a part of it."""
    one, two = (f"{opening}\n{indent}{own}\n\n{indent}{A}\n\n{indent}{own} again" for own in ("open()", "close()"))
    assert dedup([one, two]) == [one, two]


@pytest.mark.parametrize(
    "marks", ["1. 2. 3.", "(1) (2) (3)", "(a) (b) (c)", "i. ii. iii.", "I) II) III)", "a- b- c-", "— — —"]
)
def test_no_step_is_cut_out_of_a_list(marks: str) -> None:
    """Items of whatever numbering are one list, also with blank lines between them."""
    first, second, third = marks.split()
    one, two = (f"{first} {own}\n\n{second} {A}\n\n{third} {own}" for own in ("Open it.", "Close it."))
    assert dedup([one, two]) == [one, two]


@given(one=st.sampled_from(ATOMIC), two=st.sampled_from(ATOMIC), gap=st.sampled_from(["\n\n", "\n\n\n"]))
def test_a_paragraph_right_before_what_is_never_cut_stays(one: str, two: str, gap: str) -> None:
    """A list, a table or code may be about what the sentence before it says, so that both copies of that stay."""
    texts = [f"{A}{gap}{one}\n\n{B}", f"{A}{gap}{two}\n\n{C}"]
    assert dedup(texts) == texts
    assert dedup([f"{A}\n\n{B}", texts[1]])[1] == texts[1]


@pytest.mark.parametrize(
    "thing",
    ["{0}s\n{0}food", "{0}\tcat\nmouse\trat", "![{0}]({0}.png)", "`rm -rf {0}`", "{0}; cat; horse", "$$\n{0}=1\n$$"],
)
def test_a_short_line_with_nothing_under_it_is_no_label_but_what_the_sentence_is_about(thing: str) -> None:
    """A list without bullets, an image or a formula at the end of a section keeps the paragraph before it."""
    for behind in ("", f"\n\n## Refunds\n\n{C}"):
        texts = [f"{A}\n\n{thing.format(own)}{behind}" for own in ("dog", "goose")]
        assert dedup(texts)[1].startswith(texts[1][: len(A) + 4])
    ordinary = f"{A}\n\n{thing.format('dog')}\n\n{B}"
    assert dedup([f"{A}\n\n{C}", ordinary])[1] == ordinary.removeprefix(f"{A}\n\n")
