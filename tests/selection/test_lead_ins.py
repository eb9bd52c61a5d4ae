"""A line that may lead in what follows is told from one that only stands before it; in doubt nothing is cut."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.selection.lead_ins import leads_in
from llama_index_grounded.selection.paragraphs import split_blocks
from llama_index_grounded.testing import make_nodes
from tests.hostile import texts
from tests.selection.parts import LONG, bodies

A, B, C, _ = LONG
HOME = {"document_id": "returns", "section": "window"}
OPEN = """
{}: | {} : | *{}:* | _{}:_ | **{}:** | ***{}:*** | **{}**: | <b>{}:</b> | <p>{}:</p> | <strong>{}</strong> | <h2>{}</h2>
1. {}: | - {}: | * {}: | a) {}: | (1) {}: | 1. **{}:** | 1. {} | 3.2 {} | § 3 {} | **1. {}** | ***{}*** | __{}__
> {}: | > **{}:** | “{}:” | ‘{}’: | «{}:» | ({}:) | {}:[1] | {}:¹ | {}: ↓ | {}… | {}... | {}— | {}:- | {}\\: | `{}`:
{}:<br> | {}:\u200b | {}： | {}﹕ | {}؛ | {} | ====⏎{}⏎==== | {}⏎--- | ## {} | • {}: | 🙂 {}:
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
        assert leads_in(block, text) in {True, False}
        assert block.kind != "heading" or not leads_in(block, text)


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


@pytest.mark.parametrize("before", ["Keep the receipt.", "See below!", "why not", "- sealed music\n- gift cards", A])
def test_a_sentence_before_a_paragraph_leads_nothing_in(before: str) -> None:
    """A sentence, a list of several items and a line in small letters are no labels: what follows is said once."""
    assert dedup([f"{before}\n\n{B}", f"Call us.\n\n{B}\n\n{C}"]) == [f"{before}\n\n{B}", f"Call us.\n\n{C}"]


def test_by_position_a_label_that_stands_nowhere_else_stays() -> None:
    """Another chunk that begins behind the label holds the paragraph, not the label."""
    document = f"E-books:\n\n{B}\n\n{C}"
    nodes = [
        NodeWithScore(node=TextNode(text=document[at:], start_char_idx=at, end_char_idx=len(document), metadata=HOME))
        for at in (document.index(B), 0)
    ]
    assert bodies(ScopedDedup(match="position").postprocess_nodes(nodes)) == [f"{B}\n\n{C}", "E-books:"]


@pytest.mark.parametrize("piece", ["<", "<a", "[", "*", "a\n", ">", "[1", "(", "E ", "\u200b"])
def test_time_grows_with_length_only(piece: str) -> None:
    """A line of nothing but marks takes no more than linear time."""
    text = piece * (400_000 // len(piece))
    began = time.process_time()
    for block in split_blocks(text)[:2]:
        leads_in(block, text)
    assert time.process_time() - began < 3
