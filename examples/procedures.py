"""A procedure in overlapping chunks, retrieved out of order: joined to passages, and put into the document's order.

    sh uvw run --locked --extra demo --no-dev examples/procedures.py

See the sources of the prompt without the two stages, and with them: no step twice, and none before the one that it
follows. Step 7 was not retrieved, and nothing makes it up.
In the usual chain of stages: ``default_postprocessors(passages=PassageMerger(), order=SourceOrder())``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from llama_index.core import Document, QueryBundle
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.selection import PassageMerger, SourceOrder
from llama_index_grounded.testing import ScriptedLLM
from support.command import start

PAGE = """\
If a book arrives damaged, we replace it. Do this in order.
1. Keep the box. The carrier may ask to see it.
2. Take a photo of the damage and of the label on the box.
3. Open "My orders" and choose the book.
4. Choose "Damaged on arrival" and add both photos.
5. Wait for our message with the return number. A parcel without that number is sent back to you.
6. Print the label that comes with the message.
7. Put the book and the label into the box and close it firmly.
8. Leave the box at any post office. Ask for a receipt.
9. Keep the receipt until the new book has arrived.
"""
QUESTION = "What do I do when a book arrives damaged?"
RANKED = [4, 2, 0, 1]
"""Places of the chunks that a retriever found, best first."""


def main() -> None:
    """Show the prompt's sources without the stages, then with them."""
    page = Document(id_="damaged", text=PAGE, metadata={"title": "Damaged books"})
    splitter = SentenceSplitter(
        chunk_size=60,
        chunk_overlap=20,
        include_metadata=False,
        id_func=lambda place, document: f"{document.node_id}-{place}",
    )
    chunks = splitter.get_nodes_from_documents([page])
    found = [NodeWithScore(node=chunks[place], score=0.8 - rank / 10) for rank, place in enumerate(RANKED)]
    show("Without the stages", found, [])
    show("With PassageMerger and SourceOrder", found, [PassageMerger(), SourceOrder()])


def show(title: str, nodes: list[NodeWithScore], stages: Sequence[BaseNodePostprocessor]) -> None:
    """Run the stages as an engine does, and print what a model would be sent."""
    query = QueryBundle(QUESTION)
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query)
    preview = CitingSynthesizer(ScriptedLLM(["never asked"])).preview(query, nodes)
    print(f"=== {title}: {preview.shares['sources']} tokens of sources")
    for source, scored in zip(preview.sources, preview.nodes, strict=True):
        print(f"--- {source.key}, {source.node_id}\n{scored.text}")
    print("---" if preview.decisions else "")
    for decision in preview.decisions:
        twin = f", with {decision.twin}" if decision.twin else ""
        print(f"{decision.stage} {decision.action} {decision.node_id}: {decision.reason}{twin}")


if __name__ == "__main__":
    sys.exit(start("procedures", main))
