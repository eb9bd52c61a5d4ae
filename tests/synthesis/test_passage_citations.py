"""A quote from a passage cites the chunk that holds it."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_grounded import CitingSynthesizer, TokenBudget
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.selection import PassageMerger
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM, make_nodes

PAGE = "Returns take five days. Keep the receipt. Gift cards are excluded from this."
CHUNKS = ("Returns take five days. Keep the receipt", "Keep the receipt. Gift cards are excluded from this.")


def _chunks() -> list[NodeWithScore]:
    names = [{"document_id": "d", "chunk_id": name} for name in ("first", "second")]
    nodes = make_nodes(list(CHUNKS), ids=["c1", "c2"], metadata=names)
    for scored in nodes:
        assert isinstance(scored.node, TextNode)
        start = PAGE.index(scored.node.text)
        scored.node.start_char_idx, scored.node.end_char_idx = start, start + len(scored.node.text)
    return nodes


@pytest.mark.parametrize(
    "quote,chunk",
    [
        ("Gift cards are excluded from this.", ("c2", "second")),
        ("Returns take five days.", ("c1", "first")),
        ("Keep the receipt", ("c1", "first")),
    ],
    ids=["second", "first", "both"],
)
def test_a_quote_names_the_chunk_that_holds_it(quote: str, chunk: tuple[str, str]) -> None:
    """The citation has the node id and the chunk id of the chunk, the best-ranked one where two hold the words."""
    reply = {"verdict": "answered", "sources": ["S1"], "claims": [{"sources": ["S1"], "quote": quote, "text": "So."}]}
    query = QueryBundle("Are gift cards excluded?")
    synthesizer = CitingSynthesizer(ScriptedLLM([reply]), output_cls=ClaimedAnswer, checks=[QuoteCheck()])
    nodes = PassageMerger().postprocess_nodes(_chunks(), query)
    packed = TokenBudget.for_synthesizer(synthesizer).postprocess_nodes(nodes, query)
    response: Any = synthesizer.synthesize(query, packed)
    (citation,) = response.citations
    assert (citation.node_id, citation.chunk_id) == chunk
    assert PAGE[citation.start : citation.end] == quote
    (source,) = response.grounded.sources
    assert (source.node_id, source.chunk_id) == ("c1", "first")
