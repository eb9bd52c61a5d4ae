"""The site's navigation and its pages are the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped] # it ships no types

from tests.docs.pages import DOCS, PAGES, blocks

CONFIG: dict[str, Any] = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))


def _pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _pages(part)


def test_every_page_is_in_the_navigation_once() -> None:
    """A page that nobody can reach, or that stands in two places, is a fault."""
    listed = list(_pages(CONFIG["nav"]))
    assert len(set(listed)) == len(listed)
    assert set(PAGES) == set(listed)


def test_the_flow_is_one_picture() -> None:
    """The home page and the README show the same flow of a question."""
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "index.md", DOCS.parent / "README.md")]
    first, second = [[block.text for block in blocks(page) if "retriever ─►" in block.text] for page in pages]
    assert len(first) == 1
    assert first == second


def test_a_broken_link_fails_the_build() -> None:
    """Everything that the builder can find out about links is a warning, which the strict build does not let pass."""
    assert set(CONFIG["validation"]["links"].values()) == {"warn"}
    assert CONFIG["validation"]["nav"]["omitted_files"] == "warn"
    assert "mkdocs build --strict" in (DOCS.parent / ".ci" / "run").read_text(encoding="utf-8")


def test_a_reader_loads_nothing_from_elsewhere() -> None:
    """The theme brings no fonts of others."""
    assert CONFIG["theme"]["font"] is False
