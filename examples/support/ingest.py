"""Fill the vector store once for each corpus, embedding model and chunking; later runs find it filled."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llama_index.core.schema import MetadataMode, TextNode
from llama_index.vector_stores.postgres import PGVectorStore
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from .errors import SetupError

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from .database import Database

BATCH = 16
"""Chunks that are embedded and stored at a time."""

Progress = Callable[[int, int], None]
"""Called with the number of chunks that are stored and the number of all chunks."""

# A row is written when all chunks are in: a run that was broken off leaves none, and its work is done again.
_SETUP = text(
    "CREATE TABLE IF NOT EXISTS bookstore_ingestions"
    " (name text PRIMARY KEY, dimension int NOT NULL, nodes int NOT NULL)"
)
_FIND = text("SELECT dimension FROM bookstore_ingestions WHERE name = :name")
_FINISH = text("INSERT INTO bookstore_ingestions (name, dimension, nodes) VALUES (:name, :dimension, :nodes)")
_FORGET = text("DELETE FROM bookstore_ingestions WHERE name = :name")
_LOCK = text("SELECT pg_advisory_lock(hashtext('bookstore_ingestions'))")


def open_store(
    database: Database,
    fingerprint: str,
    cut: Callable[[], Sequence[TextNode]],
    embedding: BaseEmbedding,
    progress: Progress,
    *,
    again: bool = False,
) -> PGVectorStore:
    """Return the vector store of a corpus, and ingest the corpus when that was not done yet.

    Two processes at once take turns: the second one finds the work done.

    Args:
        database: Where the table lies.
        fingerprint: Names the table, so that two corpora or two embedding models never share one.
        cut: Makes the chunks; called only when they have to be ingested.
        embedding: Asked once for the size of its vectors.
        progress: Called before the first chunk and after each batch; never when nothing is ingested.
        again: Ingest anew even if it was done.

    Raises:
        SetupError: The stored vectors have another dimension than the embedding model gives now, or the database
            refuses to store.
    """
    name, dimension = f"bookstore_{fingerprint}", len(embedding.get_text_embedding("dimension"))
    store = PGVectorStore(
        table_name=name,
        embed_dim=dimension,
        engine=database.engine,
        async_engine=create_async_engine(database.async_url),
        initialization_fail_on_error=True,
    )
    with _turn(database, name) as connection:
        stored = connection.scalar(_FIND, {"name": name})
        if stored is None or again:
            connection.execute(_FORGET, {"name": name})
            connection.execute(text(f'DROP TABLE IF EXISTS "data_{name}"'))
            nodes = cut()
            _ingest(store, nodes, embedding, progress)
            connection.execute(_FINISH, {"name": name, "dimension": dimension, "nodes": len(nodes)})
        elif stored != dimension:
            raise SetupError(
                f"wrong dimension: the stored vectors have {stored} components, {embedding.model_name} now "
                f"gives {dimension}: run once with --reingest"
            )
    return store


@contextmanager
def _turn(database: Database, name: str) -> Generator[Connection, None, None]:
    """Hold a lock in the database, which ends with the connection, also when this process is killed."""
    try:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(_LOCK)
            connection.execute(_SETUP)
            yield connection
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error))
        raise SetupError(f"PostgreSQL cannot store {name}: {reason}: check the rights of its user") from error


def _ingest(store: PGVectorStore, nodes: Sequence[TextNode], embedding: BaseEmbedding, progress: Progress) -> None:
    progress(0, len(nodes))
    for start in range(0, len(nodes), BATCH):
        batch = nodes[start : start + BATCH]
        vectors = embedding.get_text_embedding_batch([node.get_content(MetadataMode.EMBED) for node in batch])
        pairs = zip(batch, vectors, strict=True)
        store.add([node.model_copy(update={"embedding": vector}) for node, vector in pairs])
        progress(start + len(batch), len(nodes))
