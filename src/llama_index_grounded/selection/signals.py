"""What a gate can look at besides the node's score, which hybrid, fused and reranked lists give another meaning.

Place: `RecordScore` right behind the retriever, before a reranker writes its own score; the signals in a `ScoreGate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from llama_index.core import Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import BaseModel, ConfigDict, Field

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import mark_of, stamp_of, with_stamp
from llama_index_grounded.selection.models import EmbedModel
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

if TYPE_CHECKING:
    from llama_index_grounded.selection.carrier import Evidence

__all__ = ["MetadataScore", "RecordScore", "Signal", "VectorSimilarity", "cosine", "known"]

Name = Annotated[str, Field(min_length=1)]


class VectorSimilarity(BaseModel):
    """The cosine of query and node text, -1 to 1, whatever the node's own score means.

    The texts of a list are embedded in one call, as the index embeds them; embeddings that nodes or the query already
    carry are used. Measure the threshold for your embedding model.

    Args:
        embed_model: By default ``Settings.embed_model``. Where nodes carry embeddings, the model of their index.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    signal: Literal["vector_similarity"] = "vector_similarity"
    embed_model: EmbedModel = None

    def values(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> list[float | None]:
        """Return one value per node; None where a vector has no direction."""
        if query is None:
            raise ConfigurationError("VectorSimilarity compares with the query: pass query_bundle")
        model: BaseEmbedding = Settings.embed_model if self.embed_model is None else self.embed_model
        wanted = query.embedding
        if wanted is None:
            wanted = model.get_agg_embedding_from_queries(query.embedding_strs)
        vectors = [scored.node.embedding for scored in nodes]
        missing = [place for place, vector in enumerate(vectors) if vector is None]
        texts = [nodes[place].node.get_content(MetadataMode.EMBED) for place in missing]
        for place, vector in zip(missing, _embedded(model, texts), strict=True):
            vectors[place] = vector
        return [cosine(wanted, vector) for vector in vectors if vector is not None]


class MetadataScore(BaseModel):
    """A number that stands in the node's metadata, or that a `RecordScore` stage noted under this name.

    Args:
        key: Name of the field.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    signal: Literal["metadata_score"] = "metadata_score"
    key: Name

    def __init__(self, key: str, **more: Any) -> None:
        super().__init__(key=key, **more)

    def values(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> list[float | None]:
        """Return one value per node; None where it is missing or no number."""
        return [self._value(scored) for scored in nodes]

    def _value(self, scored: NodeWithScore) -> float | None:
        mark = stamp_of(scored.node)
        noted = mark.get("scores", {}) if mark else {}
        value = noted.get(self.key, scored.node.metadata.get(self.key))
        if isinstance(value, bool) or not isinstance(value, Real):
            return None
        return known(float(value))


Signal = Literal["score"] | Annotated[VectorSimilarity | MetadataScore, Field(discriminator="signal")]


class RecordScore(Stage):
    """Note the score that nodes have now, so that a gate behind a reranker can still look at it.

    The nodes, their order and their scores stay as they are; `MetadataScore` reads the note.

    Args:
        key: Name of the note.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.selection import ScoreGate
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = RecordScore(key="dense").postprocess_nodes(make_nodes(["a", "b"], scores=[0.7, 0.2]))
        >>> for scored in nodes:
        ...     scored.score = -4.7  # a reranker's logits
        >>> len(ScoreGate(min_score=0.5, signal=MetadataScore("dense")).postprocess_nodes(nodes))
        2
    """

    kind: ClassVar[Kind] = "filter"

    key: Name = "retrieval_score"

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Write the notes into the stamps."""
        noted: list[NodeWithScore] = []
        for scored in nodes:
            mark = mark_of(scored)
            scores = {**mark.get("scores", {}), self.key: known(scored.score)}
            noted.append(with_stamp(scored, {**mark, "scores": scores}))
        return Outcome(noted)


def known(score: float | None) -> float | None:
    """Read a score as a float; None, not-a-number and infinite ones are unknown."""
    return float(score) if score is not None and math.isfinite(score) else None


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the cosine of two vectors; None where one of them has no direction or they differ in length."""
    if len(one) != len(other):
        return None
    lengths = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(x * x for x in other))
    if not math.isfinite(lengths) or lengths == 0:
        return None
    return max(-1.0, min(1.0, math.fsum(x * y for x, y in zip(one, other, strict=True)) / lengths))


def _embedded(model: BaseEmbedding, texts: list[str]) -> list[list[float]]:
    """Embed in one call: a model's usual batch would make several requests of a long list."""
    if not texts:
        return []
    whole = model.model_copy(update={"embed_batch_size": len(texts)})
    return whole.get_text_embedding_batch(texts)
