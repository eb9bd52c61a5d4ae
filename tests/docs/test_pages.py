"""Every Python block of every page runs, and prints what the page says."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import llama_index.core
import pytest
from llama_index.core import Settings

from tests.docs.names import standard_names, started
from tests.docs.pages import DOCS, PAGES, blocks, prose, run_page

if TYPE_CHECKING:
    from tests.postgres import WordLlamaEmbedding

OWN_TESTS = {
    "how-to/checks.md": "tests/test_docs.py gives it claims and models of its own",
    "how-to/rendering.md": "tests/rendering/test_page.py gives it nodes of its own",
}
"""Pages with names of their own, and where they are tested."""

TEXTS = {name: (DOCS / name).read_text(encoding="utf-8") for name in PAGES}
WITH_PYTHON = [name for name, text in TEXTS.items() if any(block.language == "python" for block in blocks(text))]


def _settings(monkeypatch: pytest.MonkeyPatch, **given: object) -> None:
    """Give LlamaIndex's settings values, and bring back what a page may set."""
    for name, value in vars(Settings).items():
        monkeypatch.setattr(Settings, name, given.get(name, value))
    monkeypatch.setattr(llama_index.core, "global_tokenizer", llama_index.core.global_tokenizer)


@pytest.mark.parametrize("name", [name for name in WITH_PYTHON if name not in OWN_TESTS])
def test_the_python_of_a_page_runs(
    name: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    wordllama_embed: WordLlamaEmbedding,
) -> None:
    """The blocks of a page run from top to bottom with the standard names, and print what the page says."""
    page = TEXTS[name]
    module = ModuleType("docs_page")
    monkeypatch.setitem(sys.modules, "docs_page", module)
    module.__dict__.update(standard_names(wordllama_embed), **started(page, request))
    _settings(monkeypatch, _llm=module.__dict__["llm"], _embed_model=wordllama_embed)
    assert run_page(page, str(DOCS / name), module) == []


@pytest.mark.parametrize("name", PAGES)
def test_blocks_are_marked(name: str) -> None:
    """Every block names its language, and Python goes by its full name, so that none is left out by a spelling."""
    page = TEXTS[name]
    languages = {block.language for block in blocks(page)}
    assert languages <= {"python", "text", "sh", "json", "toml", "yaml", "xml", "sql", "html", "diff"}
    assert len(re.findall(r"^ *(?:```|~~~)", page, re.MULTILINE)) == 2 * len(blocks(page))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_with_its_title(name: str) -> None:
    """A page has one title, on its first line."""
    page = prose(TEXTS[name])
    assert re.findall(r"^# .+$", page, re.MULTILINE) == [page.split("\n", 1)[0]]
