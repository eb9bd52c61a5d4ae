"""A line that may lead in what follows is told from one that only stands before it; in doubt nothing is cut."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.selection.lead_ins import label_of
from llama_index_grounded.selection.paragraphs import split_blocks
from llama_index_grounded.testing import make_nodes
from tests.hostile import texts
from tests.selection.parts import LONG, bodies
from tests.timing import assert_linear

A, B, C, _ = LONG
OWN = "Sealed music goes back within two weeks, if the seal is whole."
HOME = {"document_id": "returns", "section": "window"}
OPEN = """
{}: | {} : | *{}:* | _{}:_ | **{}:** | ***{}:*** | **{}**: | <b>{}:</b> | <p>{}:</p> | <strong>{}</strong> | <h2>{}</h2>
1. {}: | - {}: | * {}: | a) {}: | (1) {}: | 1. **{}:** | 1. {} | 3.2 {} | § 3 {} | **1. {}** | ***{}*** | __{}__
> {}: | > **{}:** | “{}:” | ‘{}’: | «{}:» | ({}:) | {}:[1] | {}:¹ | {}: ↓ | {}… | {}... | {}— | {}:- | {}\\: | `{}`:
{}:<br> | {}:\u200b | {}： | {}﹕ | {}؛ | {} | ====⏎{}⏎==== | {}⏎--- | ## {} | • {}: | 🙂 {}:
(a) {} | (b) {}: | (ii) {} | iv. {} | IV) {} | a- {} | 1- {}: | [1] {} | Step 2: {} | § 3.1 {} | 第{}条 | ① {}
（一）{} | all {} | for {} only | {}; | {}, | // {} | # {} | = {} | == {} == | h2. {} | [[{}]] | {{{{{}}}}} | {}:&nbsp;
{}&#58; | Only {}. | {} only! | Not for {}. | {}। | Are {} excluded? | Q: {}?
What about {} that I bought as a present for others? | {}⏎and more
The following rule applies to all customers who bought {} | If what you have bought from us is one of our {}, then
\\section{{{}}} | \\textbf{{{}}} | .. note:: {} | !!! note "{}" | ::: {} | :::warning {} | <!-- {} -->
<div class="{}"> | Q: {}?⏎A: No, none of them, and here is what we do for you instead of that. | - a⏎- b⏎⏎- {}
"""
FORMS = [form.strip().replace("⏎", "\n") for line in OPEN.splitlines() for form in line.split("|") if form.strip()]


def dedup(texts: list[str], **options: Any) -> list[str]:
    """Return the texts that are left."""
    return bodies(ScopedDedup(**options).postprocess_nodes(make_nodes(texts, metadata=HOME)))


# Laws


@given(texts())
def test_any_block_can_be_judged(text: str) -> None:
    """Nothing in a text raises, and a heading never counts as a lead-in line."""
    for block in split_blocks(text):
        label = label_of(block, text)
        assert label is None or block.kind != "heading" or label.kind != "lead-in"


WORDS = st.text(st.characters(exclude_categories=["Cs", "Zl", "Zp", "Cc"]), min_size=1, max_size=24)


@given(
    one=WORDS, two=WORDS, between=st.sampled_from([(), (A,), (A, "Keep the receipt.")]), mark=st.sampled_from("\n.?:")
)
def test_no_paragraph_is_lost_that_stands_below_another_short_line(
    one: str, two: str, between: tuple[str, ...], mark: str
) -> None:
    """Where the short lines above them differ, in whatever form, equal paragraphs are all kept, also further down."""
    assume(spoken(one) and spoken(two) and spoken(one) != spoken(two))
    first, second = ("\n\n".join([label + mark, *between, B]) for label in (one, two))
    assert dedup([first, second]) == [first.strip(), second.strip()] or dedup([first, second]) == [first, second]


def spoken(label: str) -> str:
    """Return what a label says: letters and digits, in one form."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", label)))


@given(st.lists(st.sampled_from(["E-books", "Printed books", "Help", "Note:"]), min_size=1, max_size=7))
def test_no_label_is_lost_with_what_it_leads_in(labels: list[str]) -> None:
    """However many labels stand before a paragraph, each still stands before it somewhere."""
    one, two = "\n\n".join([*labels, B]), "\n\n".join([*labels[1:], B])
    left = dedup([two, f"{one}\n\n{C}"])
    assert any(f"{one}\n\n" in f"{text}\n\n" for text in left)


# Forms


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scope", ["section", "global"])
def test_another_lead_in_in_any_form_keeps_its_paragraph(form: str, scope: Any) -> None:
    """What stands under "E-books" in whatever form is no repetition of what stands under "Printed books"."""
    one, two = (f"{form.format(label)}\n\n{B}\n\n{own}" for label, own in (("E-books", A), ("Printed books", C)))
    assert dedup([one, two], scope=scope) == [one, two]


@pytest.mark.parametrize("form", ["{}:", "{}", "*{}:*", "> **{}:**", "<b>{}:</b>"])
def test_a_lead_in_that_repeats_goes_with_its_paragraph(form: str) -> None:
    """Where both chunks have the same line before the same paragraph, both are said once."""
    label = form.format("E-books")
    assert dedup([f"{label}\n\n{B}", f"Keep it.\n\n{label}\n\n{B}"])[1] == "Keep it."


@pytest.mark.parametrize("label", ["1. E-books:", "- E-books:", "| E-books: |"])
def test_a_list_that_leads_in_is_never_cut_itself(label: str) -> None:
    """Lists and tables are atomic, also where their last line leads in what was taken out."""
    assert dedup([f"{label}\n\n{B}", f"Keep it.\n\n{label}\n\n{B}"])[1] == f"Keep it.\n\n{label}"


@pytest.mark.parametrize("before", ["- sealed music\n- gift cards", "| a | b |\n|---|---|\n| 1 | 2 |", A, f"{A}\n{C}"])
def test_a_text_before_a_paragraph_leads_nothing_in(before: str) -> None:
    """A sentence of eight words, and a list of several items, are no labels: what follows is said once."""
    assert dedup([f"{before}\n\n{B}", f"{C}\n\n{B}\n\n{OWN}"]) == [f"{before}\n\n{B}", f"{C}\n\n{OWN}"]


@pytest.mark.parametrize("before", ["Keep the receipt.", "See below!", "why not", "iPhone"])
def test_a_short_line_may_be_the_label_of_what_follows(before: str) -> None:
    """A short sentence is not told from a label ("Business customers only."), so that both paragraphs stay."""
    texts = [f"{before}\n\n{B}", f"Call us.\n\n{B}\n\n{C}"]
    assert dedup(texts) == texts
    assert dedup([f"{before}\n\n{B}", f"{before}\n\n{B}\n\n{C}"])[1] == f"{before}\n\n{C}"


@pytest.mark.parametrize(
    "between",
    [["They are files."], [A], [A, "No returns."], ["**Note**"], ["- a\n- b"], ["- a\n\n- b", "Note:"]],
    ids=str,
)
def test_a_label_counts_until_the_next_heading(between: list[str]) -> None:
    """What stands further down under "E-books:" repeats nothing that stands under "Gift cards:"; a heading ends it."""
    texts = ["\n\n".join([label, *between, B]) for label in ("E-books:", "Gift cards:")]
    assert dedup(texts) == texts
    headed = [text.replace(B, f"## Refunds\n\n{B}") for text in texts]
    assert B not in dedup(headed)[1]


def test_a_label_above_the_beginning_of_a_chunk_does_not_count_as_different() -> None:
    """Chunks that overlap say the overlap once, although one of them does not show the label that stands further up."""
    assert dedup([f"iPhone\n\n{A}\n\n{B}", f"{B}\n\n{C}"]) == [f"iPhone\n\n{A}\n\n{B}", C]
    assert dedup([f"{B}\n\n{C}", f"iPhone\n\n{A}\n\n{B}"]) == [f"{B}\n\n{C}", f"iPhone\n\n{A}"]


def test_by_position_a_label_that_stands_nowhere_else_stays() -> None:
    """Another chunk that begins behind the label holds the paragraph, not the label."""
    document = f"E-books:\n\n{B}\n\n{C}"
    nodes = [
        NodeWithScore(node=TextNode(text=document[at:], start_char_idx=at, end_char_idx=len(document), metadata=HOME))
        for at in (document.index(B), 0)
    ]
    assert bodies(ScopedDedup(match="position").postprocess_nodes(nodes)) == [f"{B}\n\n{C}", "E-books:"]


@pytest.mark.parametrize("piece", ["<", "<a", "[", "*", "a\n", ">", "[1", "(", "E ", "\u200b", "&", "&lt;", "a?\n"])
def test_time_grows_with_length_only(piece: str) -> None:
    """A line of nothing but marks takes no more than linear time."""

    def read(size: int) -> None:
        text = piece * (size // len(piece))
        for block in split_blocks(text)[:2]:
            label_of(block, text)

    assert_linear(read, 100_000)
