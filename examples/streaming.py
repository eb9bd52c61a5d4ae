"""A stream in a terminal: the sources first, the text as the model writes it, the whole result last.

    sh uvw run --locked --extra demo --no-dev examples/streaming.py

See an answer, read by `events()`; a refusal, which comes the same way and asks no model; and the answer once more in
async, by `aevents()`. Text is held back until a valid citation is known. A `ScriptedLLM` plays the model, a few letters
at a time; it also cites a source S9 that was not shown, whose marker never reaches the terminal.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, closing
from typing import Any

from llama_index.core import VectorStoreIndex

from llama_index_grounded import GroundedQueryEngine
from llama_index_grounded.schema import ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.testing import ScriptedLLM
from support.command import start
from support.corpus import chunk, customer_pages
from support.models import WORDLLAMA_MIN_SCORE as MIN_SCORE
from support.wordllama_embedding import WordLlamaEmbedding

QUESTION, UNANSWERED = "How many days do I have to return a book?", "Is there a café in the store?"
REPLY = {
    "verdict": "answered",
    "sources": ["S1"],
    "answer": "You can return printed books within 21 days of delivery [S1], if they are unread [S1, S9].",
}


def main() -> None:
    """Read three streams."""
    index = VectorStoreIndex(chunk(customer_pages()), embed_model=WordLlamaEmbedding())
    llm = ScriptedLLM([REPLY], chunk_size=6, delay=0.02)
    engine = GroundedQueryEngine.from_args(index, llm, similarity_top_k=2, min_score=MIN_SCORE, streaming=True)
    for question in (QUESTION, UNANSWERED):
        print(f"> {question}")
        read(engine, question)
    print(f"> {QUESTION} (async)")
    asyncio.run(aread(engine, QUESTION))


def read(engine: GroundedQueryEngine, question: str) -> None:
    """Read a stream to its end; leaving the ``with`` earlier would stop the model."""
    response: Any = engine.query(question)
    with closing(response.events()) as events:
        for event in events:
            show(event)


async def aread(engine: GroundedQueryEngine, question: str) -> None:
    """Read a stream in async."""
    response: Any = await engine.aquery(question)
    async with aclosing(response.aevents()) as events:
        async for event in events:
            show(event)


def show(event: StreamEvent) -> None:
    """Print an event as soon as it is there."""
    match event:
        case SourcesEvent(sources=sources):
            print(*(f"  {source.key}: {source.title} | {source.section}\n" for source in sources), sep="", end="")
        case TextEvent(text=text):
            print(text, end="", flush=True)
        case ResultEvent(grounded=result):
            outcome = result.refusal.reason if result.refusal else result.verdict
            cited = [citation.key for citation in result.citations]
            print(f"\n  {outcome}, cites {cited}, model calls: {result.llm_calls}")


if __name__ == "__main__":
    sys.exit(start("streaming", main))
