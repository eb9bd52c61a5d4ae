"""What a gate can look at besides the node's score, which hybrid, fused and reranked lists give another meaning.

Place: `RecordScore` right behind the retriever, before a reranker writes its own score; the signals in a `ScoreGate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from llama_index.core import Settings
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import included_text, mark_of, stamp_of, with_stamp
from llama_index_grounded.metadata import known
from llama_index_grounded.selection.embeddings import embed, embed_question, known_to, text_to_embed
from llama_index_grounded.selection.models import EmbedModel
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

if TYPE_CHECKING:
    from llama_index_grounded.selection.carrier import Embedded, Evidence

__all__ = ["MetadataScore", "RecordScore", "Signal", "VectorSimilarity", "cosine"]

Name = Annotated[str, Field(min_length=1)]
_NOTE = "retrieval_score"


class VectorSimilarity(BaseModel):
    """The cosine of query and node text, -1 to 1, whatever the node's own score means.

    The texts of a list are embedded in one call of the model, as the index embeds them, and a question in one; within
    a query no model is asked about a text twice, whichever gates ask (`selection.embeddings`). Blank nodes and images
    without a text are not embedded: their value is missing. Measure the threshold for your embedding model.

    A vector that the query or a node already carries is used. It comes from the index, and nothing tells by which model
    it was made: it is assumed to be ``embed_model``, unless a vector of that model has another length; then none is
    used. A node's own is used as long as no stage has changed its text; whoever else changes one has to remove it.

    Args:
        embed_model: The model of the index; by default ``Settings.embed_model``.
        use_carried: False for a model that is not that of the index: everything is embedded with it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    signal: Literal["vector_similarity"] = "vector_similarity"
    embed_model: EmbedModel = None
    use_carried: StrictBool = True

    def values(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> list[float | None]:
        """Return one value per node; None where a text is blank or a vector has no direction."""
        return self.compare(nodes, query)[0]

    def compare(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, before: Sequence[Embedded] = ()
    ) -> tuple[list[float | None], Embedded]:
        """Return one value per node, and what the model has said; ``before`` is what models have said already."""
        if query is None:
            raise ConfigurationError("VectorSimilarity compares with the query: pass query_bundle")
        said = known_to(Settings.embed_model if self.embed_model is None else self.embed_model, before)
        carried = [self._carried(scored) for scored in nodes]
        texts = [text_to_embed(scored) for scored in nodes]
        said = embed(said, [text for text, vector in zip(texts, carried, strict=True) if vector is None])
        asked: Sequence[float] | None = query.embedding if self.use_carried else None
        if asked is None:
            said, asked = embed_question(said, query.embedding_strs)
        if said.length and any(len(vector) != said.length for vector in (asked, *carried) if vector is not None):
            said, asked = embed_question(embed(said, texts), query.embedding_strs)
            carried = [None] * len(texts)
        vectors = [said.texts.get(text) if own is None else own for text, own in zip(texts, carried, strict=True)]
        return [None if vector is None else cosine(asked, vector) for vector in vectors], said

    def _carried(self, scored: NodeWithScore) -> Sequence[float] | None:
        if not self.use_carried:
            return None
        mark, text = stamp_of(scored.node), included_text(scored.node)
        return scored.node.embedding if mark is None or mark.get("original", text) == text else None


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
        number = value.is_finite() if isinstance(value, Decimal) else isinstance(value, Real)
        return known(value) if number and not isinstance(value, bool) else None


Signal = Literal["score"] | Annotated[VectorSimilarity | MetadataScore, Field(discriminator="signal")]


class RecordScore(Stage):
    """Note the score that nodes have now, so that a gate behind a reranker can still look at it.

    The nodes, their order and their scores stay as they are; `MetadataScore` reads the note.

    It stands in front of whatever adds nodes, and so does the gate: LlamaIndex's ``PrevNextNodePostprocessor`` may put
    a copy without score and note in the place of a hit, and the gate would judge the rest without it.

    Args:
        key: Name of the note.
        keys: Names of the identifying metadata fields.

    Example:
        >>> from llama_index_grounded.selection import ScoreGate
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = RecordScore("dense").postprocess_nodes(make_nodes(["a", "b"], scores=[0.7, 0.2]))
        >>> for scored in nodes:
        ...     scored.score = -4.7  # a reranker's logits
        >>> len(ScoreGate(min_score=0.5, signal=MetadataScore("dense")).postprocess_nodes(nodes))
        2
    """

    kind: ClassVar[Kind] = "filter"
    judges: ClassVar[bool] = False

    key: Name = _NOTE

    def __init__(self, key: str = _NOTE, **more: Any) -> None:
        options: dict[str, Any] = {**more, "key": key}
        super().__init__(**options)

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Write the notes into the stamps."""
        noted: list[NodeWithScore] = []
        for scored in nodes:
            mark = mark_of(scored)
            scores = {**mark.get("scores", {}), self.key: known(scored.score)}
            noted.append(with_stamp(scored, {**mark, "scores": scores}))
        return Outcome(noted)


def cosine(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the cosine of two vectors; None where one of them has no direction or they differ in length."""
    if len(one) != len(other):
        return None
    lengths = math.sqrt(math.fsum(x * x for x in one)) * math.sqrt(math.fsum(x * x for x in other))
    if not math.isfinite(lengths) or lengths == 0:
        return None
    return max(-1.0, min(1.0, math.fsum(x * y for x, y in zip(one, other, strict=True)) / lengths))
