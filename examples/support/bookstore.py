"""The bookstore's pages in a vector store, and the models that embed and answer."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from .errors import SetupError
from .ollama_host import find_ollama
from .printing import say, show_progress

if TYPE_CHECKING:
    from llama_index.core import VectorStoreIndex

    from .database import Database
    from .models import Models
    from .options import Options


@contextmanager
def open_bookstore(options: Options) -> Generator[tuple[VectorStoreIndex, Models], None, None]:
    """Find the database and the models, store the pages if that was not done yet, and say what it runs on.

    Raises:
        SetupError: Something has to be put right first; errors of the models inside the ``with`` become one, too.
    """
    server = None if options.offline else find_ollama(*options.models)
    if server is None and options.named:
        raise SetupError(
            f"{options.named} needs an Ollama server, and none answers on its default port: start it with 'ollama "
            "serve', set OLLAMA_HOST, or leave the option out to run without a model"
        )
    from .database import data_folder, open_database

    database = open_database(os.environ.get("DATABASE_URL"), data_folder())
    # LlamaIndex takes seconds to import: whatever can be refused is refused above.
    from .models import choose_models, model_errors

    models = choose_models(server)
    say(f"Running on {database.label}; {models.label}")
    with model_errors(server):
        yield bookstore_index(database, models, again=options.reingest), models


def bookstore_index(database: Database, models: Models, *, again: bool = False) -> VectorStoreIndex:
    """Return an index over the bookstore's pages, and ingest them when that was not done yet.

    Args:
        database: Where the vectors live.
        models: Their embedding makes the vectors.
        again: Ingest anew even if it was done.
    """
    from llama_index.core import VectorStoreIndex

    from .corpus import chunk, fingerprint, load_documents
    from .ingest import open_store

    pages = load_documents()
    name = fingerprint(pages, models.embedding.model_name)
    store = open_store(database, name, partial(chunk, pages), models.embedding, show_progress, again=again)
    return VectorStoreIndex.from_vector_store(store, embed_model=models.embedding)
