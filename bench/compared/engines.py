"""LlamaIndex's own engine for citations, and this package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import CitationQueryEngine
from typing_extensions import override

from bench.compared import library as given
from bench.compared.library import Library, calls
from llama_index_grounded import AttentionReorder, GroundedQueryEngine, ScopedDedup, TokenBudget
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.selection import NearDuplicateFilter
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter


def found(texts: Sequence[str], score: float | None = None) -> FixedRetriever:
    """Return a retriever that finds these texts."""
    scores = None if score is None else [score] * len(texts)
    return FixedRetriever(make_nodes(texts, scores, metadata={"document_id": "help", "section": "Returns"}))


class LlamaIndex(Library):
    """`CitationQueryEngine`, and postprocessors that LlamaIndex brings."""

    name, packages, opens = "CitationQueryEngine", ("llama-index-core",), r"^Source \d+:"

    def _ask(
        self, retriever: FixedRetriever, reply: str = given.PROSE, window: int = 8192, **options: Any
    ) -> tuple[Any, list[str]]:
        llm = ScriptedLLM([reply], context_window=window)
        return CitationQueryEngine(retriever, llm=llm, **options).query(given.QUESTION), llm.prompts

    @override
    def answer(self, texts: Sequence[str], reply: str) -> str:
        response, prompts = self._ask(found(texts), reply)
        return f"“{response}”, {len(response.source_nodes)} source nodes, {calls(len(prompts))}"

    @override
    def prompt(self, texts: Sequence[str]) -> str:
        return self._ask(found(texts))[1][0]

    @override
    def cells(self) -> dict[str, str]:
        left = [scored.node.get_content()[7] for scored in self._ask(found(given.SAME_AND_OTHER))[0].source_nodes]
        large = found([f"{text} " * 40 for text in given.TEN_WORDS])
        split = len(self._ask(large, window=1600)[1])
        cutoff = SimilarityPostprocessor(similarity_cutoff=given.THRESHOLD)
        low, prompts = self._ask(found(given.TEXTS, given.LOW), node_postprocessors=[cutoff])
        ordered = LongContextReorder().postprocess_nodes(make_nodes(given.RANKS))
        shared = super().cells()
        # Its template shows two sources as an example.
        opened = {name: str(int(shared[name]) - 2) for name in ("hostile", "long")}
        return {
            **shared,
            **opened,
            "same": str([int(number) - 1 for number in left]),
            "edge": f"no limit; 1,200 words and a window of 1,600 tokens: {calls(split)}",
            "low": f"“{low}”, {calls(len(prompts))} (`SimilarityPostprocessor`)",
            "order": f"{' '.join(scored.node.get_content() for scored in ordered)} (`LongContextReorder`)",
        }


class Grounded(Library):
    """This package."""

    name, packages = "llama-index-grounded", ("llama-index-grounded",)

    def _ask(self, retriever: FixedRetriever, reply: Any, **options: Any) -> tuple[Any, list[str]]:
        llm = ScriptedLLM([reply])
        return GroundedQueryEngine.from_args(retriever=retriever, llm=llm, **options).query(given.QUESTION), llm.prompts

    @override
    def answer(self, texts: Sequence[str], reply: str) -> str:
        text = re.sub(r"\[(\d)\]", r"[S\1]", reply)
        asked_for = {"verdict": "answered", "sources": re.findall(r"S\d", text), "answer": text}
        return self._told(*self._ask(found(texts), asked_for if asked_for["sources"] else reply))

    def _told(self, response: Any, prompts: list[str]) -> str:
        cited = [citation.key for citation in response.citations]
        outcome = f"refused: {response.refusal.reason}" if response.refusal else f"“{response}”, citations {cited}"
        unknown = list(response.grounded.invalid_source_ids)
        return f"{outcome}{f', unknown {unknown}' if unknown else ''}, {calls(len(prompts))}"

    @override
    def prompt(self, texts: Sequence[str]) -> str:
        return self._ask(found(texts), given.PROSE)[1][0]

    def _quoted(self, quote: str) -> str:
        claims = [{"sources": ["S1"], "quote": quote, "text": given.PROSE}]
        reply = {"verdict": "answered", "sources": ["S1"], "claims": claims}
        response, _ = self._ask(found(given.TEXTS), reply, output_cls=ClaimedAnswer, checks=[QuoteCheck()])
        return str(response.grounded.checks[0].status)

    @override
    def cells(self) -> dict[str, str]:
        once = ScopedDedup().postprocess_nodes(found(given.SAME_AND_OTHER).retrieve(given.QUESTION))
        left = NearDuplicateFilter().postprocess_nodes(once)
        ten = make_nodes(given.TEN_WORDS)
        two = TokenCounter().count(XmlRenderer().render(ten[:2]).text)
        fits = [str(len(TokenBudget(max_tokens=most).postprocess_nodes(ten))) for most in (two, two - 1)]
        ordered = AttentionReorder().postprocess_nodes(make_nodes(given.RANKS))
        return {
            **super().cells(),
            "same": f"{[int(scored.node.node_id[1:]) for scored in left]} (`ScopedDedup`, `NearDuplicateFilter`)",
            "edge": f"{'; '.join(fits)} (`TokenBudget`, tokens as rendered)",
            "low": self._told(*self._ask(found(given.TEXTS, given.LOW), given.PROSE, min_score=given.THRESHOLD)),
            "quotes": f"{'; '.join(map(self._quoted, given.QUOTES))} (`QuoteCheck`)",
            "order": f"{' '.join(scored.node.get_content() for scored in ordered)} (`AttentionReorder`)",
        }
