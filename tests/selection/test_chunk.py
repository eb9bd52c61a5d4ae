"""A paragraph means what its headings and lead-in lines make of it, so these decide what may be taken out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import LONG, bodies, ids
from tests.timing import assert_within

A, B, C, LEAD = LONG
HOME = {"document_id": "returns", "section": "window"}


def dedup(texts: Sequence[str], metadata: Any = None) -> list[str]:
    """Return the texts that are left."""
    return bodies(ScopedDedup().postprocess_nodes(make_nodes(texts, metadata=metadata or HOME)))


@pytest.mark.parametrize(
    "one, two",
    [
        (f"## Printed books\n\n{B}", f"## E-books\n\n{B}"),
        (f"## C\n\n{B}", f"## C#\n\n{B}"),
        (f"**Printed books**\n\n{B}", f"**E-books**\n\n{B}"),
        (f"# Printed books\n\n## Note\n\n{B}", f"# E-books\n\n## Note\n\n{B}"),
        (f"Printed books:\n\n{B}", f"E-books:\n\n{B}"),
        (f"Printed books:\n\n{B}", B),
        (f"E-books:\n\n{LEAD}\n\n{B}", f"{LEAD}\n\n{B}"),
    ],
)
def test_another_heading_or_lead_in_makes_another_statement(one: str, two: str) -> None:
    """A paragraph stays when its heading, a heading above that, or its lead-in line differs from its twin's."""
    assert dedup([one, two]) == [one, two]


def test_an_unknown_heading_does_not_count_as_different() -> None:
    """A chunk that begins below its heading is compared with one that shows it; a stated heading is known."""
    shown = f"## Printed books\n\n{B}"
    assert dedup([shown, f"{B}\n\nKeep the receipt."]) == [shown, "Keep the receipt."]
    stated = [{**HOME, "heading": "Printed books"}, {**HOME, "heading": "E-books"}]
    assert dedup([B, f"{B}\n\nKeep the receipt."], stated) == [B, f"{B}\n\nKeep the receipt."]


def test_a_line_that_leads_in_what_stays_is_kept() -> None:
    """A repeated "The following are excluded:" stays while its list does."""
    second = f"{LEAD}\n\n- opened games"
    assert dedup([f"{LEAD}\n\n- sealed music", second])[1] == second
    chained = f"{LEAD}\n\nE-books:\n\n- opened games"
    assert dedup([f"{LEAD}\n\n- sealed music", chained])[1] == chained


def test_a_sentence_before_what_is_never_cut_stays_before_its_labels_too() -> None:
    """A list may be what a sentence is about, also across labels between the two; a heading ends that."""
    for between in ("**Animals**", "Animals", "Animals:\n\nWe mean it.", "***"):
        texts = [f"{A}\n\n{between}\n\n- {own}" for own in ("dogs\n- cats", "mice\n- rats")]
        assert dedup(texts) == texts
    assert dedup([f"{A}\n\n{B}", f"{A}\n\n## Animals\n\n- dogs\n- cats"])[1] == "## Animals\n\n- dogs\n- cats"


def test_a_sentence_that_may_be_a_label_is_not_left_before_another_text() -> None:
    """A short sentence goes with all that stands under it, and stays with a part of that."""
    first = f"Business customers only.\n\n{A}\n\n{B}"
    other = f"Private customers only.\n\n{C}"
    assert dedup([first, f"{first}\n\n{other}"])[1] == other
    assert dedup([first, f"Business customers only.\n\n{A}\n\n{C}\n\n{other}"])[1] == (
        f"Business customers only.\n\n{C}\n\n{other}"
    )


@pytest.mark.parametrize(
    "title",
    ["What follows is the rule for all customers who bought {}", "{}:\nWhat you have to know about these stands here."],
)
def test_a_long_title_stays_before_its_text(title: str) -> None:
    """A line that does not end as a sentence does may be the title of the text behind it, and goes with that only."""
    one, two = (f"{title.format('e-books')}\n\n{own}" for own in (A, C))
    assert dedup([one, two]) == [one, two]
    assert dedup([one, f"{one}\n\n## Damage\n\n{C}"])[1] == f"## Damage\n\n{C}"
    assert dedup([one, two.replace(C, A).replace("e-books", "cards")])[1] == f"{title.format('cards')}\n\n{A}"


def test_headings_and_lead_ins_do_not_stay_alone() -> None:
    """What only framed removed text goes with it, and a chunk of bare headings is dropped, naming its twin."""
    first = f"# Help\n\nE-books:\n\n{B}"
    assert dedup([f"{first}\n\n{C}", f"{first}\n\n## Damage\n\nCall us."]) == [
        f"{first}\n\n{C}",
        "# Help\n\n## Damage\n\nCall us.",
    ]
    sisters = f"## Returns\n\n{B}\n\n## Damage\n\nCall us."
    assert dedup([f"## Returns\n\n{B}", sisters])[1] == "## Damage\n\nCall us."
    selection = ScopedDedup().select(make_nodes([f"{first}\n\n{C}", first], metadata=HOME))
    assert ids(selection.nodes) == ["n0"]
    assert [(d.action, d.reason, d.node_id, d.twin) for d in selection.decisions] == [
        ("dropped", "duplicate", "n1", "n0")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a:\n\n" * 4000,
        "# a\n" * 8000,
        "# a\n\nb:\n\n" * 3000,
        f"# {'a' * 20_000}\n\n" + "x\n\n" * 8000,
        f"{B}:\n\n" * 400,
    ],
    ids=["lead-ins", "headings", "both", "long heading", "repeated"],
)
def test_hostile_chunks_take_no_longer_than_others(text: str) -> None:
    """No framing makes the removal slow: three chunks of some 10,000 blocks take well under ten seconds of work."""
    nodes = make_nodes([f"{A}\n\n{text}", f"{A}\n\n{text}\n\nz", f"q\n\n{text}{A}"], metadata=HOME)
    assert len(assert_within(10, lambda: ScopedDedup().postprocess_nodes(nodes))) == 3
