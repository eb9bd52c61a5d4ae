"""Every stage, renderer and check has a card that says all of it, and no reason that it does not give."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from llama_index_grounded import checks, rendering, selection
from llama_index_grounded.schema import record
from llama_index_grounded.selection import Stage
from tests.docs.pages import DOCS, blocks
from tests.docs.reasons import reasons_of

SIGNALS = ["MetadataScore", "VectorSimilarity"]
STAGES = [
    name
    for name in selection.__all__
    if inspect.isclass(part := getattr(selection, name)) and issubclass(part, Stage) and part is not Stage
]
RENDERERS = [
    name
    for name in rendering.__all__
    if hasattr(part := getattr(rendering, name), "model_fields") and part is not rendering.BlockRenderer
]
CHECKS = [name for name in checks.__all__ if name.endswith("Check") and name != "AnswerCheck"]
PARTS = [
    *(("selection", name) for name in [*STAGES, *SIGNALS]),
    *(("rendering", name) for name in RENDERERS),
    *(("checks", name) for name in CHECKS),
]
DROPS = {"selection": "drops when", "rendering": "leaves out", "checks": "fails when"}
CARDS = sorted(path for folder in DROPS for path in (DOCS / "cards" / folder).glob("*.md"))
ACTIONS = set(record.Action.__args__)  # type: ignore[attr-defined]


def _card(folder: str, name: str) -> Path:
    part: Any = getattr({"selection": selection, "rendering": rendering, "checks": checks}[folder], name)
    return DOCS / "cards" / folder / f"{part.__module__.rsplit('.', 1)[1]}.md"


def _rows(card: Path) -> dict[str, str]:
    """Return the rows of a card's table by their first cell."""
    page = card.read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", page, re.MULTILINE))


def test_the_parts_are_found() -> None:
    """The lists below are not empty, and every card belongs to a part."""
    assert (len(STAGES), len(RENDERERS), len(CHECKS)) == (13, 5, 5)
    assert {_card(folder, name) for folder, name in PARTS} == set(CARDS)


@pytest.mark.parametrize("folder, name", PARTS)
def test_every_part_has_a_card(folder: str, name: str) -> None:
    """A card is named after the source file, has its part in the title and links to its reference."""
    page = _card(folder, name).read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", page.split("\n", 1)[0])
    assert f"[{name}][llama_index_grounded.{folder}.{name}]" in re.sub(r"\s+", " ", page)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_a_card_says_everything(card: Path) -> None:
    """Each card has all rows, in order, and a short example that prints something."""
    wanted = ["position", "input", "output", DROPS[card.parent.name], "cost", "reports", "failure"]
    assert list(_rows(card)) == wanted
    (example,) = [block.text for block in blocks(card.read_text(encoding="utf-8")) if block.language == "python"]
    lines = [line for line in example.splitlines() if line and not line.startswith(("from ", "import "))]
    assert 2 <= len(lines) <= 10
    assert "print(" in example


@pytest.mark.parametrize("name", STAGES)
def test_a_card_names_the_reasons_that_its_stage_gives(name: str) -> None:
    """The reasons of a card are exactly those in the source, and so are those of all stages of one file."""
    card = _card("selection", name)
    named = set(re.findall(r"`([a-z_]+)`", _rows(card)["reports"])) - ACTIONS
    given = set[str]().union(
        *(reasons_of(getattr(selection, one)) for one in STAGES if _card("selection", one) == card)
    )
    assert named == given


@pytest.mark.parametrize("name", RENDERERS)
def test_the_tokens_of_a_card_are_those_of_the_bench(name: str) -> None:
    """A renderer costs what the table on the page says, which the tests compare with the bench."""
    page = (DOCS / "how-to" / "rendering.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {name} \| (.+) \| yes \|$", page, re.MULTILINE)
    frame, described, _, _, _, attributes = row.split(" | ")
    both = str(int(frame) + int(described))
    cost = _rows(_card("rendering", name))["cost"]
    said = [number for number in (frame, both, attributes) if number != "–"]
    assert re.findall(r"\d+", cost.split("(`python")[0]) == said


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_the_commands_of_a_card_exist(card: Path) -> None:
    """A figure's command is a module of this repository."""
    page = card.read_text(encoding="utf-8")
    assert "bench/" not in page
    for module in re.findall(r"`python -m bench\.(\w+)", page):
        assert (DOCS.parent / "bench" / f"{module}.py").is_file()
