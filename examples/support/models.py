"""The models that answer and embed: an Ollama server's, or the two that need no server."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from .errors import SetupError

if TYPE_CHECKING:
    from .ollama_host import OllamaChoice

CONTEXT_WINDOW = 8192
"""Tokens that Ollama is asked to hold; its own default would cut a longer prompt without a word."""
REQUEST_SECONDS = 300.0
"""A model that is not loaded yet may take minutes on a slow machine."""
EXTRACTIVE_SECONDS = 30.0
WORDLLAMA_MIN_SCORE = 0.35
"""Cosine similarity under which a question counts as unanswerable, for wordllama vectors of this corpus.

Measured on the best score of each question in English: 34 that the corpus answers reach 0.40 to 0.78, 11 whose subject
no page knows (a café, Sundays, a book club, …) 0.14 to 0.33, and 7 that only share words with a page (who carries the
parcels, gift wrapping, …) 0.35 to 0.49. The last kind passes the gate and is left to the answerer, as is Turkish:
there the scores lie between 0.42 and 0.80 whether a page answers or not, because the tokenizer cuts Turkish into
fragments that all texts share.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What answers, what embeds, and how its scores are judged."""

    llm: LLM
    embedding: BaseEmbedding
    min_score: float | None
    """Threshold for this embedding; None where none was measured."""
    timeout: float
    """Seconds that one answer may take."""
    label: str
    """For the line that says what the quickstart runs on."""


def choose_models(server: OllamaChoice | None) -> Models:
    """Build the models of an Ollama server, or the built-in ones.

    Args:
        server: From `find_ollama`; None for wordllama and the extractive answerer.
    """
    return _built_in() if server is None else _from_ollama(server)


def _built_in() -> Models:
    try:
        from .wordllama_embedding import WordLlamaEmbedding
    except ImportError as error:
        raise SetupError("wordllama is missing: pip install 'llama-index-grounded[demo]'") from error
    from .extractive import ExtractiveLLM

    return Models(
        llm=ExtractiveLLM(),
        embedding=WordLlamaEmbedding(),
        min_score=WORDLLAMA_MIN_SCORE,
        timeout=EXTRACTIVE_SECONDS,
        label="wordllama embeddings, extractive answerer (no Ollama in use)",
    )


def _from_ollama(server: OllamaChoice) -> Models:
    from llama_index.embeddings.ollama import OllamaEmbedding
    from llama_index.llms.ollama import Ollama

    return Models(
        llm=Ollama(
            model=server.model,
            base_url=server.url,
            temperature=0.0,
            context_window=CONTEXT_WINDOW,
            request_timeout=REQUEST_SECONDS,
            additional_kwargs={"seed": 42},
        ),
        embedding=OllamaEmbedding(
            model_name=server.embed_model, base_url=server.url, client_kwargs={"timeout": REQUEST_SECONDS}
        ),
        min_score=None,
        timeout=REQUEST_SECONDS,
        label=f"{server.embed_model} and {server.model} on Ollama at {server.url}",
    )


@contextmanager
def model_errors(server: OllamaChoice | None) -> Generator[None, None, None]:
    """Turn the errors of the Ollama clients into one line that says what to do."""
    if server is None:
        yield
        return
    import httpx
    import ollama

    try:
        yield
    except ollama.ResponseError as error:
        name = server.embed_model
        raise SetupError(f"Ollama cannot embed with {name} ({error.error}): try 'ollama pull {name}'") from error
    except (httpx.HTTPError, ConnectionError) as error:
        raise SetupError(f"Ollama stopped answering ({error}): is 'ollama serve' still running?") from error
