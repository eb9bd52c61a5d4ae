"""What the tests of the stages share: generated nodes, an embedding, and postprocessors as others write them."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_grounded.evidence import included_text, strip
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.rendering.renderer import source_of
from llama_index_grounded.selection import AttentionReorder, Outcome, ScopedDedup, ScoreGate, Stage, TokenBudget
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.trail import collect
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.tokens import TokenCounter

T = TypeVar("T")

LONG = [
    "Printed books can be returned within twenty-one days of delivery if unread.",
    "A refund is paid to the original payment method within five working days.",
    "Damaged books are replaced free of charge when we receive two photographs.",
    "The following goods are excluded from every kind of return or exchange:",
]
"""Paragraphs of eight words or more."""
SHORT = ["See below.", "E-books:", "Printed books:", "Keep the receipt."]
FRAMES = ["## Returns", "## E-books", "# Help", "**Note**"]
ATOMIC = ["- sealed music\n- gift cards", "```\nx = 1\n\ny = 2\n```", "| a | b |\n|---|---|\n| 1 | 2 |"]

texts = st.lists(st.sampled_from([*LONG, *LONG, *SHORT, *FRAMES, *ATOMIC]), max_size=5).map("\n\n".join)
scores = st.none() | st.just(float("nan")) | st.sampled_from([0.9, 0.7, 0.5, 0.2, -3.0])
documents = st.fixed_dictionaries(
    {}, optional={"document_id": st.sampled_from(["d1", "d2"]), "section": st.sampled_from(["s1", "s2"])}
)


@st.composite
def node_lists(draw: st.DrawFn, *, max_size: int = 6, same_section: bool = False) -> list[NodeWithScore]:
    """Draw nodes that repeat each other a lot, with ids of their own."""
    drawn = draw(st.lists(texts, max_size=max_size))
    metadata = {"document_id": "d1", "section": "s1"}
    return make_nodes(
        drawn,
        scores=[draw(scores) for _ in drawn],
        metadata=metadata if same_section else [draw(documents) for _ in drawn],
    )


def seen(nodes: Sequence[NodeWithScore]) -> list[tuple[str, str, str]]:
    """Return what counts as the same node: id, text and score."""
    return [(scored.node.node_id, included_text(strip(scored).node), repr(scored.score)) for scored in nodes]


def ids(nodes: Sequence[NodeWithScore]) -> list[str]:
    """Return the node ids, in order."""
    return [scored.node.node_id for scored in nodes]


def bodies(nodes: Sequence[NodeWithScore]) -> list[str]:
    """Return the included texts, in order."""
    return [included_text(scored.node) for scored in nodes]


def repickled(value: T) -> T:
    """Send a value to a worker process and back."""
    copied: T = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes
    return copied


class WordEmbedding(BaseEmbedding):
    """Counts words in 64 buckets: texts that share words are near, the same in every process."""

    def _embed(self, text: str) -> list[float]:
        vector = [0.0] * 64
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".,:?").encode()) % 64] += 1.0
        return vector if any(vector) else [1.0] * 64

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)


async def in_span(work: Coroutine[Any, Any, T]) -> T:
    """Run work inside of a span, as every LlamaIndex engine does."""

    async def engine() -> T:
        return await work

    return await get_dispatcher().span(engine)()


def run(
    stages: Sequence[BaseNodePostprocessor], nodes: list[NodeWithScore], bundle: QueryBundle | None = None
) -> Evidence:
    """Run a chain as LlamaIndex's engines do, and take the result as the synthesizer does."""
    bundle = QueryBundle("How many days?") if bundle is None else bundle
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query_bundle=bundle)
    return collect(nodes, bundle)


async def run_async(
    stages: Sequence[BaseNodePostprocessor], nodes: list[NodeWithScore], bundle: QueryBundle | None = None
) -> Evidence:
    """Run a chain as LlamaIndex's engines do in async."""
    bundle = QueryBundle("How many days?") if bundle is None else bundle
    for stage in stages:
        nodes = await stage.apostprocess_nodes(nodes, query_bundle=bundle)
    return collect(nodes, bundle)


def decided(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return action, reason and node of what was decided on the way, moves left out."""
    return [(d.action, d.reason, d.node_id) for d in evidence.trail.decisions if d.action != "moved"]


def in_documents(*names: str) -> list[dict[str, str]]:
    """Name the document of each node."""
    return [{"document_id": name} for name in names]


def also_in(nodes: Sequence[NodeWithScore]) -> list[tuple[str, ...]]:
    """Return which other documents each source lists."""
    return [source_of(scored, "S1").also_in for scored in nodes]


def repeating() -> list[NodeWithScore]:
    """Make three nodes of one section, the second of which repeats the first."""
    first, second, third, _ = LONG
    home = {"document_id": "d"}
    return make_nodes([first, f"{first}\n\n{second}", third], metadata=home)


def chain_around(between: BaseNodePostprocessor) -> list[BaseNodePostprocessor]:
    """Build a chain with a foreign postprocessor in the middle."""
    return [ScoreGate(min_score=0.1), ScopedDedup(), between, TokenBudget(top_n=2), AttentionReorder()]


def room_for(*texts: str, **metadata: Any) -> int:
    """Count what these texts take as sources."""
    return TokenCounter().count(XmlRenderer().render(make_nodes(texts, metadata=metadata)).text)


class Foreign(BaseNodePostprocessor):
    """A postprocessor that somebody else wrote: it does what its function says."""

    act: Any

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        returned: list[NodeWithScore] = self.act(nodes)
        return returned


class ForeignAsync(Foreign):
    """The same, with an async side of its own."""

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        returned: list[NodeWithScore] = self.act(nodes)
        return returned


class Guard(Stage):
    """A stage as an application writes it: nodes of one tenant only."""

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Drop the nodes of other tenants."""
        kept = [scored for scored in nodes if scored.node.metadata.get("tenant") == "ours"]
        gone = [scored for scored in nodes if scored not in kept]
        return Outcome(kept, [self.decision(scored, "dropped", "other_tenant") for scored in gone])


def drop_all(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Drop everything."""
    return nodes[:0]


def look_and_pass(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Look at every node, find nothing wrong, and return the very list."""
    if any("forbidden" in scored.node.metadata for scored in nodes):
        raise PermissionError
    return nodes


def rewrap(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Put every node into a new wrapper, as rerankers do."""
    return [NodeWithScore(node=scored.node, score=scored.score) for scored in nodes]


def rebuild(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Make new nodes of the texts alone, as prompt compressors do."""
    return [NodeWithScore(node=TextNode(text=included_text(scored.node))) for scored in nodes]


def redact_in_place(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Change the texts of the very nodes, as sentence filters do."""
    for scored in nodes:
        scored.node.set_content(included_text(scored.node).replace("Gift", "[redacted]"))
    return nodes


def backwards(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes in the opposite order."""
    return nodes[::-1]
