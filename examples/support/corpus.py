"""The bookstore's help pages, contracts and runbook: Markdown files in, LlamaIndex nodes out.

Each file starts with front matter (title, url, audience, language, last_updated) and is cut at its
headings. A section that is longer than a chunk is cut again, with an overlap of whole paragraphs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from llama_index.core import Document
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.schema import TextNode

from llama_index_grounded.rendering import slug

from .errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

CORPUS = Path(__file__).parent.parent / "bookstore"
CHUNK_TOKENS = 180
OVERLAP_TOKENS = 60
FIELDS = ("title", "url", "audience", "language", "last_updated")
# Who may read a page and where it stands say nothing about its subject; its date matters to the model only.
NOT_SHOWN = ["audience", "language", "url"]
NOT_EMBEDDED = [*NOT_SHOWN, "last_updated"]


def load_documents(folder: Path = CORPUS) -> list[Document]:
    """Read every Markdown file under a folder.

    Args:
        folder: Searched with its sub-folders; the file name without its ending is the document's id.

    Returns:
        The documents, sorted by path, so that two runs see the same order.

    Raises:
        SetupError: The folder holds no Markdown file, or a file lacks a field of its front matter.
    """
    documents = [_read(path) for path in sorted(folder.rglob("*.md"))]
    if not documents:
        raise SetupError(f"no Markdown file under {folder}: check out the folder examples/bookstore again")
    return documents


def customer_pages() -> list[Document]:
    """Read the pages that customers may see, which is what examples without a reader of their own ask about."""
    return [page for page in load_documents() if page.metadata["audience"] == "customer"]


def _read(path: Path) -> Document:
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    fields = (line.partition(":") for line in front.splitlines())
    metadata = {name.strip(): value.strip() for name, _, value in fields}
    missing = [name for name in FIELDS if name not in metadata]
    if missing:
        raise SetupError(f"{path}: the front matter lacks {', '.join(missing)}")
    return Document(
        id_=path.stem,
        text=body.strip(),
        metadata=metadata,
        excluded_embed_metadata_keys=NOT_EMBEDDED,
        excluded_llm_metadata_keys=NOT_SHOWN,
    )


def chunk(documents: Sequence[Document]) -> list[TextNode]:
    """Cut documents at their headings, and long sections once more.

    Args:
        documents: From `load_documents`.

    Returns:
        Nodes with a readable id ("returns#return-window"), the heading as ``section``, a link to the
        section as ``url`` and character positions inside the document.
    """
    splitter = SentenceSplitter(chunk_size=CHUNK_TOKENS, chunk_overlap=OVERLAP_TOKENS, paragraph_separator="\n\n")
    nodes: list[TextNode] = []
    for section in MarkdownNodeParser().get_nodes_from_documents(documents):
        if isinstance(section, TextNode):
            anchor = _describe(section)
            parts = [part for part in splitter([section]) if isinstance(part, TextNode)]
            nodes += [_place(part, section, anchor, number) for number, part in enumerate(parts, start=1)]
    return nodes


def _describe(section: TextNode) -> str:
    """Set ``section`` and ``url`` from the heading, and return the heading's slug."""
    heading = section.text.splitlines()[0].lstrip("#").strip()
    above = [name for name in str(section.metadata.pop("header_path", "")).split("/") if name]
    anchor = slug(heading)
    section.metadata |= {
        "section": " / ".join([*above, heading]),
        "url": f"{section.metadata['url']}#{anchor}",
    }
    return anchor


def _place(part: TextNode, section: TextNode, anchor: str, number: int) -> TextNode:
    """Give a chunk its id and its place in the document.

    A splitter that gets a section counts characters from the start of that section.
    """
    part.id_ = f"{part.ref_doc_id}#{anchor}" + (f"-{number}" if number > 1 else "")
    start = section.start_char_idx
    if start is not None and part.start_char_idx is not None and part.end_char_idx is not None:
        part.start_char_idx += start
        part.end_char_idx += start
    return part


def fingerprint(documents: Sequence[Document], embedding: str) -> str:
    """Hash everything that shapes the stored vectors.

    Args:
        documents: The corpus.
        embedding: Name of the embedding model.

    Returns:
        Twelve hexadecimal digits.
    """
    digest = hashlib.sha256(f"{embedding}\0{CHUNK_TOKENS}\0{OVERLAP_TOKENS}\0{NOT_EMBEDDED}".encode())
    for document in documents:
        digest.update(f"\0{document.id_}\0{sorted(document.metadata.items())}\0{document.text}".encode())
    return digest.hexdigest()[:12]
