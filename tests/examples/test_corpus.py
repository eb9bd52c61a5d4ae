"""The corpus: what it holds, what it leaves out, and how it is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index.core.schema import MetadataMode, TextNode

from support.corpus import CORPUS, chunk, fingerprint, load_documents
from support.errors import SetupError


@pytest.fixture(scope="module")
def nodes() -> list[TextNode]:
    """The chunks of the corpus."""
    return chunk(load_documents())


def test_every_chunk_stands_in_its_document_where_it_says(nodes: list[TextNode]) -> None:
    """The character positions of a chunk cut exactly its text out of the document."""
    texts = {document.id_: document.text for document in load_documents()}
    for node in nodes:
        assert node.ref_doc_id is not None
        assert texts[node.ref_doc_id][node.start_char_idx : node.end_char_idx] == node.text


def test_ids_are_unique_and_readable(nodes: list[TextNode]) -> None:
    """A chunk is named by its document and its heading, and no name stands twice."""
    ids = [node.node_id for node in nodes]
    assert len(set(ids)) == len(ids)
    assert {"returns#return-window", "iade#iade-süresi", "shutdown-runbook#shutdown-sequence-2"} <= set(ids)


def test_every_chunk_has_what_a_citation_shows(nodes: list[TextNode]) -> None:
    """Title, section, link to the section, reader, language and date are there."""
    for node in nodes:
        assert all(node.metadata[name] for name in ("title", "section", "last_updated"))
        assert node.metadata["audience"] in {"customer", "staff"}
        assert node.metadata["language"] in {"en", "tr"}
        assert node.metadata["url"].startswith("/")
        assert "#" in node.metadata["url"]


def test_the_two_chunks_of_the_shutdown_sequence_share_one_paragraph(nodes: list[TextNode]) -> None:
    """The overlap is the paragraph about the deadline, word for word; only the second chunk has the token."""
    first, second = (node for node in nodes if node.node_id.startswith("shutdown-runbook#shutdown-sequence"))
    shared = set(first.text.split("\n\n")) & set(second.text.split("\n\n"))
    (paragraph,) = shared
    assert paragraph.startswith("Remaining items are drained only while the shutdown deadline allows it.")
    assert first.metadata["section"] == second.metadata["section"]
    assert "deadline token" not in first.text
    assert "deadline token is passed to each asynchronous operation" in second.text


def test_only_the_supplier_agreement_is_for_staff(nodes: list[TextNode]) -> None:
    """No page for customers says anything about suppliers."""
    assert {node.ref_doc_id for node in nodes if node.metadata["audience"] == "staff"} == {"supplier-returns"}
    for node in nodes:
        if node.metadata["audience"] == "customer":
            assert not any(word in node.text.casefold() for word in ("supplier", "unsold", "90 days"))


def test_readers_and_links_are_not_embedded(nodes: list[TextNode]) -> None:
    """The vector of a chunk is made from its title, section and text only."""
    text = nodes[0].get_content(MetadataMode.EMBED)
    assert nodes[0].metadata["title"] in text
    assert not any(nodes[0].metadata[name] in text for name in ("audience", "url", "last_updated"))


@pytest.mark.parametrize("subject", ["café", "cafe", "sunday", "pazar g", "book club", "kulüb", "carrier", "courier"])
def test_the_corpus_is_silent_where_a_refusal_is_expected(subject: str) -> None:
    """No page speaks of a café, of Sundays, of a book club or of a carrier."""
    assert not any(subject in document.text.casefold() for document in load_documents())


def test_a_changed_corpus_or_model_changes_the_fingerprint() -> None:
    """The name of the table follows texts, metadata and embedding model."""
    pages = load_documents()
    before = fingerprint(pages, "one")
    assert before == fingerprint(load_documents(), "one")
    assert before != fingerprint(pages, "two")
    assert before != fingerprint(pages[1:], "one")
    pages[0].metadata["audience"] = "staff"
    assert before != fingerprint(pages, "one")


def test_a_folder_without_pages_and_a_page_without_metadata_are_refused(tmp_path: Path) -> None:
    """What cannot be read is named in one line."""
    with pytest.raises(SetupError, match="no Markdown file"):
        load_documents(tmp_path)
    (tmp_path / "page.md").write_text("---\ntitle: A\nurl: /a\n---\n\ntext\n", encoding="utf-8")
    with pytest.raises(SetupError, match=r"page\.md: the front matter lacks audience, language, last_updated"):
        load_documents(tmp_path)


def test_the_corpus_has_about_a_dozen_pages_in_two_languages() -> None:
    """There are English and Turkish pages, and one file for each document id."""
    pages = load_documents()
    assert len(pages) == len({page.id_ for page in pages}) == len(list(CORPUS.rglob("*.md")))
    assert {page.metadata["language"] for page in pages} == {"en", "tr"}
