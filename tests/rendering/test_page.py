"""The page on renderers: its code runs and prints what stands below it, and its figures are those of the bench."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llama_index_grounded.testing import ScriptedLLM, make_nodes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "rendering.md").read_text(encoding="utf-8")
CARDS = {"Adult card": {"loans": 10, "fee": "12 €"}, "Child card": {"loans": 5}}


def blocks(language: str) -> list[str]:
    """Return the blocks of one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Each example prints the block that stands below it."""
    nodes = make_nodes(
        ['Books can be returned within "21 days".', ""],
        metadata=[
            {"title": "Returns and exchanges", "section": "Return window"},
            {"title": "Cards", "entities": CARDS},
        ],
    )
    names: dict[str, Any] = {"nodes": nodes, "llm": ScriptedLLM(["x"])}
    shown: list[str] = []
    for block in blocks("python"):
        exec(compile(block, "rendering.md", "exec"), names)  # noqa: S102 - our own page
        shown.append(capsys.readouterr().out.rstrip("\n"))
    assert [text for text in shown if text] == [text.rstrip("\n") for text in blocks("text")]
    assert names["synthesizer"].preview("How long?", nodes[:1]).sources[0].key == "S1"


def test_the_figures_are_those_of_the_bench() -> None:
    """The table on the page is what the command prints, and a frame of XML costs at most fifteen tokens."""
    found = subprocess.run(
        [sys.executable, "-m", "bench.rendering"], cwd=ROOT, capture_output=True, check=True, encoding="utf-8"
    ).stdout
    assert found in PAGE
    [frame] = re.findall(r"^\| XmlRenderer \| (\d+) \|", found, re.MULTILINE)
    assert int(frame) <= 15
