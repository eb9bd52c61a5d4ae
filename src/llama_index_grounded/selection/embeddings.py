"""Ask an embedding model about the texts of a query: about all of them in one call, and about none of them twice.

What it said travels with the query (`Trail.embedded`), so that a later stage with the same model need not ask again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.constants import DEFAULT_EMBED_BATCH_SIZE
from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index_grounded.evidence import included_text
from llama_index_grounded.rendering import clean
from llama_index_grounded.selection.carrier import Embedded

__all__ = ["embed", "embed_question", "known_to", "text_to_embed"]

_MOST_TEXTS = 2048
"""LlamaIndex's own limit for one request."""


def text_to_embed(scored: NodeWithScore) -> str:
    """Return what an index would embed of a node, metadata included; nothing where the node has no visible text.

    Half a surrogate pair becomes ``?``: most models fail on it, and with them the query.
    """
    if not clean(included_text(scored.node)).strip():
        return ""
    return _encodable(scored.node.get_content(MetadataMode.EMBED))


def known_to(model: BaseEmbedding, embedded: Iterable[Embedded]) -> Embedded:
    """Find what this very model has said in this query."""
    return next((one for one in embedded if one.model is model), Embedded(model=model))


def embed(known: Embedded, texts: Iterable[str]) -> Embedded:
    """Ask for the embeddings of texts that are not known, in one call of the model; blank texts are left out.

    The model sends up to 2,048 texts in one request, or as many as its ``embed_batch_size`` says where that is not
    LlamaIndex's default of 10, which nobody chose.
    """
    missing = list(dict.fromkeys(text for text in texts if text.strip() and text not in known.texts))
    if not missing:
        return known
    model: BaseEmbedding = known.model
    if model.embed_batch_size == DEFAULT_EMBED_BATCH_SIZE < len(missing):
        model = model.model_copy(update={"embed_batch_size": min(len(missing), _MOST_TEXTS)})
    vectors = zip(missing, model.get_text_embedding_batch(missing), strict=True)
    return replace(known, texts={**known.texts, **dict(vectors)})


def embed_question(known: Embedded, strings: Sequence[str]) -> tuple[Embedded, Sequence[float]]:
    """Ask for the embedding of a question, the mean where it has several strings."""
    asked = tuple(map(_encodable, strings))
    if asked not in known.questions:
        vector = known.model.get_agg_embedding_from_queries(list(asked))
        known = replace(known, questions={**known.questions, asked: vector})
    return known, known.questions[asked]


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()
