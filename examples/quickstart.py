"""Ask the bookstore's help pages a question: a cited answer, or a refusal that says why.

    python examples/quickstart.py "How many days do I have to return a book?"

It stores the pages in PostgreSQL with pgvector and answers from them. Without any set-up it runs on an
embedded server, on static word embeddings and on an extractive answerer. With an Ollama server (OLLAMA_HOST,
or one on the default port) it uses that one's models; with DATABASE_URL it uses that PostgreSQL.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from support.errors import SetupError
from support.ollama_host import find_ollama
from support.printing import answer_lines, preview_lines, say, show_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core import VectorStoreIndex
    from llama_index.core.vector_stores import MetadataFilters

    from llama_index_grounded import GroundedResult
    from support.database import Database
    from support.models import Models

READABLE = {"customer": ["customer"], "staff": ["customer", "staff"]}
"""The audiences whose pages each reader may see."""
MOST_CANDIDATES, MOST_SOURCES = 10, 6
"""Chunks that are retrieved, and chunks that reach the prompt."""


def main(argv: Sequence[str] | None = None) -> int:
    """Answer one question; return 0, or 2 when something has to be set up first."""
    options = _parse(argv)
    # wordllama would set the level to INFO, and the log of every HTTP request would follow.
    logging.basicConfig(level=logging.WARNING)
    try:
        _run(options)
        sys.stdout.flush()
    except SetupError as error:
        say(f"quickstart: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        say(f"quickstart: {error.name} is missing: pip install 'llama-index-grounded[demo]'")
        return 2
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would flush once more on its way out, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask the bookstore's help pages a question.")
    add = parser.add_argument
    add("question", nargs="+", type=_question)
    add("--audience", choices=sorted(READABLE), default="customer", help="whose pages may be read")
    add("--min-score", type=_score, help="refuse when the best score is lower; built in for wordllama only")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the whole result as JSON")
    form.add_argument("--preview", action="store_true", help="print what would be sent, and call no model")
    add("--reingest", action="store_true", help="store the pages again")
    add("--offline", action="store_true", help="use the built-in models even where an Ollama answers")
    add("--model", default="gemma3:4b", help="chat model on Ollama")
    add("--embed-model", default="nomic-embed-text", help="embedding model on Ollama")
    options = parser.parse_args(argv)
    options.question = " ".join(options.question)  # also where nobody quoted it
    return options


def _question(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("ask something")
    if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise argparse.ArgumentTypeError("the question is not in the terminal's encoding")
    return text


def _score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise argparse.ArgumentTypeError(f"not a finite number: {text!r}")
    return score


def _run(options: argparse.Namespace) -> None:
    server = None if options.offline else find_ollama(options.model, options.embed_model)
    from support.database import data_folder, open_database

    database = open_database(os.environ.get("DATABASE_URL"), data_folder())
    # LlamaIndex takes seconds to import: whatever can be refused is refused above.
    from support.models import choose_models, model_errors

    models = choose_models(server)
    say(f"Running on {database.label}; {models.label}")
    with model_errors(server):
        index = _open_index(database, models, again=options.reingest)
        _answer(index, models, options)


def _open_index(database: Database, models: Models, *, again: bool) -> VectorStoreIndex:
    from llama_index.core import VectorStoreIndex

    from support.corpus import chunk, fingerprint, load_documents
    from support.ingest import open_store

    pages = load_documents()
    name = fingerprint(pages, models.embedding.model_name)
    store = open_store(database, name, partial(chunk, pages), models.embedding, show_progress, again=again)
    return VectorStoreIndex.from_vector_store(store, embed_model=models.embedding)


def _answer(index: VectorStoreIndex, models: Models, options: argparse.Namespace) -> None:
    from llama_index.core import QueryBundle

    from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine
    from support.words import is_turkish

    synthesizer = CitingSynthesizer(
        llm=models.llm,
        language="tr" if is_turkish(options.question) else "en",
        timeout=models.timeout,
    )
    engine = GroundedQueryEngine.from_args(
        index,
        response_synthesizer=synthesizer,
        similarity_top_k=MOST_CANDIDATES,
        filters=_readable_by(options.audience),
        min_score=models.min_score if options.min_score is None else options.min_score,
        top_n=MOST_SOURCES,
    )
    query, started = QueryBundle(options.question), time.perf_counter()
    if options.preview:
        print("\n".join(preview_lines(synthesizer.preview(query, engine.retrieve(query)))))
        return
    # The type of LlamaIndex's query method does not know what this engine returns.
    result: GroundedResult = cast("Any", engine.query(query)).grounded
    seconds = time.perf_counter() - started
    print(result.model_dump_json(indent=2) if options.json else "\n".join(answer_lines(result, seconds)))


def _readable_by(audience: str) -> MetadataFilters:
    """Keep pages for other readers out where they are looked up, so that no later step sees them."""
    from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

    wanted = MetadataFilter(key="audience", operator=FilterOperator.IN, value=READABLE[audience])
    return MetadataFilters(filters=[wanted])


if __name__ == "__main__":
    sys.exit(main())
