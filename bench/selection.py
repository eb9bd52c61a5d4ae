"""How long the selection of evidence takes, next to one bare pass of the tokenizer and to LlamaIndex's own engines.

    python -m bench.selection

All in one run, as ratios: gate, dedup, budget, order and rendering, without and with lexical near-duplicates, for 10 to
1,000 nodes of about 170 tokens, counted with `o200k_base` and with `cl100k_base`; `CitationQueryEngine` and
`RetrieverQueryEngine` over the same nodes with a mock LLM; memory per node; and what importing the package adds to
importing LlamaIndex. The things that are compared run in turns on one thread, each figure is the processor time of the
best of several runs, and the tokenizer's pass is one call over the text of all nodes.
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from bench.without_stages import without_stages
from llama_index_grounded import AttentionReorder, ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.selection import NearDuplicateFilter, Stage
from llama_index_grounded.tokens import TokenCounter

COUNTS = (10, 50, 200, 1000)
PAGES = Path(__file__).parent.parent / "examples" / "bookstore"
"""Pages whose words the nodes are drawn from, so that they tokenize as prose does; by language."""
SECONDS, LEAST_RUNS = 6.0, 4
"""How long the turns of one row go on, and how many there are at least."""
MIN_SCORE, MOST_TOKENS = 0.3, 10_000_000
OURS = TokenCounter()
"""Counts with the encoding that is ours by default; LlamaIndex's own default is `cl100k_base`."""
QUERY = QueryBundle("How many days do I have to return a book?")


def main() -> None:
    """Measure and print Markdown tables."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    Settings.llm, Settings.embed_model = MockLLM(), MockEmbedding(embed_dim=4)
    print(
        "| nodes | tiktoken, ms | by hand | without stages | chain | with near-duplicates | per node, µs "
        "| CitationQueryEngine | compact engine |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in COUNTS:
        print(_row(f"{count:,}", make(count)))
    print(_row("200, Turkish", make(200, "tr")))
    for count in COUNTS[1:]:
        print(_row(f"{count:,}, `cl100k_base`", make(count), TokenCounter(encoding="cl100k_base")))
    print(f"\nMemory: {_memory(1000):.1f} kB per node at 1,000 nodes, at the peak and above the nodes themselves.")
    print(f"Import: {_import_ms():.0f} ms more than llama_index.core, garbage collection off.")


def make(count: int, language: str = "en") -> list[NodeWithScore]:
    """Make nodes, two of each section, every tenth with a paragraph that stands in another section too."""
    drawn = random.Random(7)  # noqa: S311 - a sample, not a secret
    words = sorted({word for page in (PAGES / language).iterdir() for word in page.read_text(encoding="utf-8").split()})

    def paragraph(length: int = 38) -> str:
        return " ".join(drawn.choices(words, k=length)).capitalize() + "."

    shared = paragraph()
    texts = [
        "\n\n".join([paragraph(), shared if place % 10 == 0 else paragraph(), paragraph()]) for place in range(count)
    ]
    fields = [
        {"document_id": f"d{place // 4}", "section": f"s{place % 4 // 2}", "title": "A page"} for place in range(count)
    ]
    return [
        NodeWithScore(node=TextNode(id_=f"n{place}", text=text, metadata=fields[place]), score=0.9 - place / 10_000)
        for place, text in enumerate(texts)
    ]


def chain(stages: Sequence[Stage], nodes: list[NodeWithScore]) -> str:
    """Run the stages as an engine does and render what is left."""
    query = QueryBundle(QUERY.query_str)
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query)
    return XmlRenderer().render(nodes).text


def by_hand(nodes: list[NodeWithScore], counter: TokenCounter) -> str:
    """Do the least that such a chain can be: no identity, no decisions, no escaping beyond a bracket, no records."""
    seen: set[str] = set()
    blocks: list[str] = []
    used = 0
    for scored in nodes:
        if (scored.score or 0.0) < MIN_SCORE:
            continue
        paragraphs = [part for part in scored.node.get_content().split("\n\n") if part not in seen]
        seen.update(paragraphs)
        text = "\n\n".join(paragraphs).replace("<", "&lt;")
        title, section = scored.node.metadata["title"], scored.node.metadata["section"]
        block = f'<source id="S{len(blocks) + 1}" title="{title}" section="{section}">\n{text}\n</source>\n'
        used += counter.tokens(block)
        if used <= MOST_TOKENS:
            blocks.append(block)
    return "".join(blocks[::2] + blocks[1::2][::-1])


def _stages(counter: TokenCounter, *, near_duplicates: bool) -> list[Stage]:
    near: list[Stage] = [NearDuplicateFilter()] if near_duplicates else []
    return [
        ScoreGate(min_score=MIN_SCORE),
        ScopedDedup(),
        *near,
        TokenBudget(max_tokens=MOST_TOKENS, counter=counter),
        AttentionReorder(),
    ]


def _row(name: str, nodes: list[NodeWithScore], counter: TokenCounter = OURS) -> str:
    count = len(nodes)
    text = "".join(scored.node.get_content() for scored in nodes)
    plain, near = _stages(counter, near_duplicates=False), _stages(counter, near_duplicates=True)
    bare, least, in_a_row, ours, ours_near, citation, compact = _best(
        lambda: counter.tokens(text),
        lambda: by_hand(nodes, counter),
        lambda: without_stages(nodes, counter, min_score=MIN_SCORE, max_tokens=MOST_TOKENS),
        lambda: chain(plain, nodes),
        lambda: chain(near, nodes),
        lambda: _citation(nodes).query(QUERY),
        lambda: _compact(nodes).query(QUERY),
    )
    cells = [
        name,
        f"{bare * 1e3:.2f}",
        f"{least / bare:.2f} × tiktoken",
        f"{in_a_row / bare:.2f} × tiktoken",
        f"{ours / bare:.2f} × tiktoken",
        f"{ours_near / bare:.2f} × tiktoken",
        f"{ours / count * 1e6:.0f}, {ours_near / count * 1e6:.0f}",
        f"{citation / ours:.0f} × slower",
        f"{compact / ours:.0f} × slower",
    ]
    return f"| {' | '.join(cells)} |"


def _best(*runs: Callable[[], Any]) -> list[float]:
    """Return the shortest of several turns of each, in seconds of this thread's processor time."""
    best = [float("inf")] * len(runs)
    started, turns = time.perf_counter(), 0
    while turns < LEAST_RUNS or time.perf_counter() - started < SECONDS:
        for place, run in enumerate(runs):
            begun = time.thread_time()
            run()
            best[place] = min(best[place], time.thread_time() - begun)
        turns += 1
    return best


class _Fixed(BaseRetriever):
    """Retrieves the same nodes for every question; `testing.FixedRetriever` copies them, which would be timed, too."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self._nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(self._nodes)


def _citation(nodes: list[NodeWithScore]) -> CitationQueryEngine:
    """Build it as its users do, with its own prompts."""
    index: Any = None  # the retriever is given
    return CitationQueryEngine.from_args(index, llm=_llm(), retriever=_Fixed(nodes))


def _compact(nodes: list[NodeWithScore]) -> RetrieverQueryEngine:
    return RetrieverQueryEngine(retriever=_Fixed(nodes), response_synthesizer=_synthesizer())


def _synthesizer() -> Any:
    return get_response_synthesizer(llm=_llm(), response_mode=ResponseMode.COMPACT)


def _llm() -> MockLLM:
    return MockLLM(max_tokens=8)


def _memory(count: int) -> float:
    nodes, stages = make(count), _stages(OURS, near_duplicates=True)
    chain(stages, nodes)
    gc.collect()
    tracemalloc.start()
    chain(stages, nodes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / count / 1000


def _import_ms() -> float:
    code = (
        "import gc; gc.disable(); import time, llama_index.core; begun = time.perf_counter(); "
        "import llama_index_grounded; print(time.perf_counter() - begun)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(LEAST_RUNS)]  # noqa: S603 - our own code
    return min(float(run.stdout) for run in runs) * 1e3


if __name__ == "__main__":
    main()
