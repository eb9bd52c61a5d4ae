"""Before and after: `CitationQueryEngine` and `GroundedQueryEngine` over the same index and the same model.

    sh uvw run --locked --extra demo --no-dev examples/migration.py

The construction differs in the name of the class. See what a caller gets from each: with an answer, with a question
that the pages do not answer, and with a citation of a source that was never shown. The model's replies are written
down here, with one meaning in the form that each engine asks for, so that only the engines make a difference.

`CitationQueryEngine` also cuts long nodes into smaller sources, hence the new ids; here nodes are cited as retrieved.
"""

from __future__ import annotations

import sys
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import CitationQueryEngine

from llama_index_grounded import GroundedQueryEngine, GroundedResponse
from llama_index_grounded.testing import ScriptedLLM
from support.command import start
from support.corpus import chunk, customer_pages
from support.printing import citation_line
from support.wordllama_embedding import WordLlamaEmbedding

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "How many days do I have to return a book?": (
        "Within 21 days of delivery [1].",
        {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days of delivery [S1]."},
    ),
    "Is there a café in the store?": (
        "The sources do not mention a café.",
        {"verdict": "not_in_sources", "sources": [], "answer": "The sources do not mention a café."},
    ),
    "Can I turn a gift card into cash?": (
        "No, a gift card cannot be turned into cash [7].",
        {"verdict": "no", "sources": ["S7"], "answer": "No, a gift card cannot be turned into cash [S7]."},
    ),
}
"""What the model writes for each question: prose with numbers, and the fields of a `GroundedAnswer`."""


def main() -> None:
    """Ask both engines every question."""
    index = VectorStoreIndex(chunk(customer_pages()), embed_model=WordLlamaEmbedding())
    llm = ScriptedLLM([reply for both in CASES.values() for reply in both])

    before = CitationQueryEngine.from_args(index, llm, similarity_top_k=3)
    after = GroundedQueryEngine.from_args(index, llm, similarity_top_k=3)

    known = set(index.index_struct.nodes_dict.values())
    for question in CASES:
        print(question)
        show("before", before.query(question), known)
        show("after", after.query(question), known)


def show(name: str, response: Any, known: set[str]) -> None:
    """Print what both engines return, and what only the second one does: citations and refusals as data."""
    nodes = response.source_nodes
    found = sum(scored.node.node_id in known for scored in nodes)
    print(f"  {name}: {response}")
    print(f"    {len(nodes)} source nodes, {found} of them with the id of a node in the index")
    print(
        f"    the first: {nodes[0].node.get_content().splitlines()[0][:25]!r}, page {nodes[0].node.metadata['title']!r}"
    )
    if isinstance(response, GroundedResponse):
        print(f"    verdict {response.verdict}, unknown keys {list(response.grounded.invalid_source_ids)}")
        print(*(f"    {citation_line(citation)}\n" for citation in response.citations), sep="", end="")
        print(f"    refused: {response.refusal.reason}\n" if response.refusal else "", end="")


if __name__ == "__main__":
    sys.exit(start("migration", main))
