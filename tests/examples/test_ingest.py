"""Filling the vector store: once, whole, and one process at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode

from support.database import Database, open_database
from support.errors import SetupError
from support.ingest import BATCH, open_store
from tests.postgres import Postgres

NODES = [TextNode(id_=f"page#{number}", text=f"text {number}") for number in range(2 * BATCH + 1)]


class BreakingEmbedding(MockEmbedding):
    """Fails on the text of one node, as a server does that goes away in between."""

    def _get_text_embedding(self, text: str) -> list[float]:
        if text == NODES[-1].text:
            raise ConnectionError("gone")
        return super()._get_text_embedding(text)


@pytest.fixture
def database(postgres: Postgres) -> Database:
    """The test server, opened as DATABASE_URL would be."""
    return open_database(postgres.uri, Path("unused"))


@pytest.fixture
def name(postgres: Postgres) -> Iterator[str]:
    """A fingerprint of its own; the table goes when the test ends."""
    fingerprint = uuid4().hex[:12]
    yield fingerprint
    postgres.execute(f'DROP TABLE IF EXISTS "data_bookstore_{fingerprint}"')


def rows(postgres: Postgres, name: str) -> list[str]:
    """Ids in the table, in the order in which they were stored."""
    return [row[0] for row in postgres.fetch(f'SELECT node_id FROM "data_bookstore_{name}" ORDER BY id')]  # noqa: S608


def fill(database: Database, name: str, embedding: BaseEmbedding, *, again: bool = False) -> list[tuple[int, int]]:
    """Open the store and return the progress that was shown."""
    shown: list[tuple[int, int]] = []
    open_store(database, name, lambda: NODES, embedding, lambda *counts: shown.append(counts), again=again)
    return shown


def test_the_second_run_finds_the_work_done(postgres: Postgres, database: Database, name: str) -> None:
    """Progress rises from none to all in the first run; the second stores nothing and shows nothing."""
    total = len(NODES)
    first = fill(database, name, MockEmbedding(embed_dim=4))
    assert first == [(0, total), (BATCH, total), (2 * BATCH, total), (total, total)]
    assert fill(database, name, MockEmbedding(embed_dim=4)) == []
    assert rows(postgres, name) == [node.node_id for node in NODES]


def test_a_run_that_broke_off_is_not_taken_for_finished(postgres: Postgres, database: Database, name: str) -> None:
    """After a failure in between, the next run starts over and every chunk is there once."""
    with pytest.raises(ConnectionError):
        fill(database, name, BreakingEmbedding(embed_dim=4))
    assert rows(postgres, name)
    assert fill(database, name, MockEmbedding(embed_dim=4))[-1] == (len(NODES), len(NODES))
    assert rows(postgres, name) == [node.node_id for node in NODES]


def test_two_runs_at_once_store_every_chunk_once(postgres: Postgres, database: Database, name: str) -> None:
    """Of several first runs at the same time one ingests, the others wait and find the work done."""
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(fill, database, name, MockEmbedding(embed_dim=4)) for _ in range(4)]
    assert sorted(bool(run.result()) for run in runs) == [False, False, False, True]
    assert rows(postgres, name) == [node.node_id for node in NODES]


def test_another_dimension_is_refused_and_can_be_ingested_anew(
    postgres: Postgres, database: Database, name: str
) -> None:
    """Vectors of two sizes never meet in one table; ``again`` replaces the old ones."""
    fill(database, name, MockEmbedding(embed_dim=4))
    with pytest.raises(SetupError, match=r"have 4 components, .* now gives 6: run once with --reingest"):
        fill(database, name, MockEmbedding(embed_dim=6))
    assert fill(database, name, MockEmbedding(embed_dim=6), again=True)
    assert len(rows(postgres, name)) == len(NODES)


@pytest.mark.parametrize(
    "address,message",
    [
        ("no address", "DATABASE_URL is no URL"),
        ("mysql://root@localhost/books", "only postgresql:// works"),
        ("postgresql://me:s3cret@127.0.0.1:1/books", r"cannot connect to PostgreSQL \(DATABASE_URL\)"),
    ],
)
def test_a_database_that_cannot_be_used_gets_one_line_without_its_password(address: str, message: str) -> None:
    """The error says what is wrong with DATABASE_URL and never shows the password."""
    with pytest.raises(SetupError, match=message) as caught:
        open_database(address, Path("unused"))
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
