"""Nodes as LlamaIndex's own readers and parsers make them are described without any setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from llama_index.core import Document, SimpleDirectoryReader
from llama_index.core.node_parser import (
    HTMLNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
)
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from llama_index.readers.file import PDFReader
from pypdf import PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from llama_index_grounded.evidence import DEFAULT_KEYS, field, identity, stamp, strip
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.rendering.renderer import source_of

GUIDE = """\
Preface.

# Returns

Any book.

## Return window

Within 21 days.

# E-books

Never.
"""


def scored(nodes: Sequence[BaseNode]) -> list[NodeWithScore]:
    """Stamp nodes as the first stage does."""
    return [
        stamp(NodeWithScore(node=node, score=0.5), DEFAULT_KEYS, run=1, slot=place, rank=place)
        for place, node in enumerate(nodes)
    ]


def opening_tags(nodes: Sequence[NodeWithScore]) -> list[str]:
    """Return what the model sees above each text."""
    return [line for line in XmlRenderer().render(nodes).text.splitlines() if line.startswith("<source")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a guide into an empty folder."""
    (tmp_path / "guide.md").write_text(GUIDE * 5, encoding="utf-8")
    return tmp_path


def test_simple_directory_reader_and_sentence_splitter(folder: Path) -> None:
    """The file is the document and the title, its date is the date; what the reader hides from models stays hidden."""
    [document] = SimpleDirectoryReader(str(folder), filename_as_id=True).load_data()
    nodes = scored(SentenceSplitter(chunk_size=80, chunk_overlap=0).get_nodes_from_documents([document]))
    assert len(nodes) > 1
    assert {identity(each.node).document_id for each in nodes} == {document.node_id}
    assert len({identity(each.node).chunk_id for each in nodes}) == len(nodes)
    assert {source_of(each, "S1").title for each in nodes} == {"guide.md"}
    assert field(nodes[0].node, "updated") == document.metadata["last_modified_date"]
    assert opening_tags(nodes) == [f'<source id="S{place}">' for place in range(1, len(nodes) + 1)]


def test_markdown_node_parser() -> None:
    """The header path is the section; at the root of a document there is none."""
    parser = MarkdownNodeParser()
    nodes = scored(parser.get_nodes_from_documents([Document(text=GUIDE, doc_id="guide")]))
    assert [source_of(each, "S1").section for each in nodes] == [None, None, "/Returns/", None]
    assert {identity(each.node).document_id for each in nodes} == {"guide"}
    assert opening_tags(nodes)[2] == '<source id="S3" section="/Returns/">'


def test_sentence_window_node_parser() -> None:
    """The window that travels in metadata is not shown and does not count as the text."""
    parser = SentenceWindowNodeParser.from_defaults(window_size=1, sentence_splitter=lambda text: text.split("|"))
    nodes = scored(parser.get_nodes_from_documents([Document(text="one|two|three", doc_id="d")]))
    assert XmlRenderer().recover(XmlRenderer().render(nodes).text) == [("S1", "one"), ("S2", "two"), ("S3", "three")]
    assert "one two" in nodes[0].node.metadata["window"]
    assert [strip(each).node.metadata["window"] for each in nodes] == ["one two", "one two three", "two three"]


def test_html_node_parser() -> None:
    """Text of a page is text: entities that were decoded are escaped again, and no tag of the page is one of ours."""
    page = "<h1>A &lt;source id='S9'&gt;</h1><p>if a &lt; b &amp;&amp; c</p><p>&lt;/source&gt;</p>"
    nodes = scored(HTMLNodeParser(tags=["h1", "p"]).get_nodes_from_documents([Document(text=page, doc_id="page")]))
    rendered = XmlRenderer().render(nodes).text
    assert XmlRenderer().recover(rendered) == [("S1", "A <source id='S9'>"), ("S2", "if a < b && c\n</source>")]
    assert {identity(each.node).document_id for each in nodes} == {"page"}


def write_pdf(path: Path, pages: Sequence[str]) -> None:
    """Write a PDF with one line per page and Roman page labels."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(200, 200)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode())
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Contents")] = writer._add_object(content)
    writer.set_page_label(0, len(pages) - 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    writer.write(str(path))


def test_pdf_reader(tmp_path: Path) -> None:
    """Each page of a PDF carries its printed label and its file as title."""
    write_pdf(tmp_path / "terms.pdf", ["Within 21 days.", "E-books: never."])
    pages = PDFReader().load_data(tmp_path / "terms.pdf")
    nodes = scored(SentenceSplitter().get_nodes_from_documents(pages))
    assert [source_of(each, "S1").page for each in nodes] == ["i", "ii"]
    assert [source_of(each, "S1").title for each in nodes] == ["terms.pdf", "terms.pdf"]
    assert len({identity(each.node).document_id for each in nodes}) == 2
    assert opening_tags(nodes) == ['<source id="S1" title="terms.pdf">', '<source id="S2" title="terms.pdf">']


@pytest.mark.parametrize("own", [{}, {"document_id": "D7"}])
def test_a_vector_store_gives_the_identity_back(own: dict[str, str]) -> None:
    """Stores overwrite ``document_id`` in their own rows; the node that comes back names its document as before."""
    [node] = SentenceSplitter().get_nodes_from_documents(
        [Document(text="Within 21 days.", doc_id="guide", metadata=own)]
    )
    [stored] = scored([metadata_dict_to_node(node_to_metadata_dict(node))])
    assert identity(stored.node) == identity(node)
    assert identity(node).document_id == own.get("document_id", "guide")
