"""Read by type checkers only: what users write against evidence, counting and rendering has the types they expect."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index_grounded import GroundedQueryEngine, ScoreGate
from llama_index_grounded.evidence import MetadataKeys, field, identity, included_text
from llama_index_grounded.rendering import Rendered, Renderer, XmlRenderer, clean, escape, unescape
from llama_index_grounded.schema import Citation, Decision, GroundedResult, Refusal, SourceRef, Verdict
from llama_index_grounded.synthesis import Plan, system_prompt
from llama_index_grounded.testing import FixedRetriever
from llama_index_grounded.tokens import TokenCounter


class PlainRenderer:
    """A renderer of a user's own needs no base class."""

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        return f"<{key}>{escape(clean(included_text(node)))}</{key}>\n"

    def render(self, nodes: Sequence[NodeWithScore]) -> Rendered:
        """Render nodes."""
        return Rendered(text="".join(self.block(each.node, "S1") for each in nodes), sources=())

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find the blocks."""
        return [("S1", unescape(text))]

    def escape(self, text: str) -> str:
        """Make a user's text safe."""
        return escape(text)


def takes_any_renderer(renderers: Sequence[Renderer]) -> int:
    """Both kinds are renderers."""
    return len(renderers)


takes_any_renderer([XmlRenderer(attributes=("title", "page")), PlainRenderer()])


def reads_results(result: GroundedResult) -> str:
    """Everything about an answer is typed."""
    verdict: Verdict | None = result.verdict
    refusal: Refusal | None = result.refusal
    citations: tuple[Citation, ...] = result.citations
    sources: tuple[SourceRef, ...] = result.sources
    decisions: tuple[Decision, ...] = result.decisions
    score: float | None = decisions[0].value if decisions else result.top_score
    return f"{verdict} {refusal} {score} {[each.url or each.title for each in citations]} {len(sources)}"


async def asks(engine: GroundedQueryEngine) -> tuple[GroundedResult, GroundedResult]:
    """The engine's responses are ours, streamed or not, and need no cast."""
    citations: tuple[Citation, ...] = engine.query("How long?").citations
    refusal: Refusal | None = (await engine.aquery("How long?")).refusal
    del citations, refusal
    return engine.query("How long?").grounded, (await engine.aquery("How long?")).grounded


async def previews(nodes: Sequence[NodeWithScore]) -> str:
    """What would be sent is typed too; gates and nodes of one's own go in as they are."""
    engine: GroundedQueryEngine = GroundedQueryEngine.from_args(
        retriever=FixedRetriever(nodes), gate=ScoreGate(min_score=0.4), system_prompt=system_prompt("legal")
    )
    plan: Plan = engine.preview("How long?")
    refusal: Refusal | None = (await engine.apreview("How long?")).refusal
    return f"{plan.text}{refusal}"


def reads_quotes(result: GroundedResult) -> list[str]:
    """A quote leads to its claim."""
    quotes = [quote for check in result.checks for quote in check.quotes]
    return [result.claims[quote.claim].text for quote in quotes if quote.claim is not None]


def reads_nodes(scored: NodeWithScore, count: TokenCounter) -> int:
    """Identity and fields are text or absent; counts are whole numbers."""
    document: str = identity(scored.node).document_id
    title: str | None = field(scored.node, "title")
    return count.count(f"{document}{title}{MetadataKeys().title}")
