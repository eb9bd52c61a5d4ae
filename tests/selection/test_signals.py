"""Signals for lists whose node score means something else: hybrid pgvector, rank fusion, rerankers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import PrivateAttr, ValidationError

from llama_index_grounded import ScoreGate
from llama_index_grounded.errors import ConfigurationError, MissingScoreError
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.selection import MetadataScore, RecordScore, VectorSimilarity
from llama_index_grounded.selection.signals import cosine
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.postgres import PgStore, WordLlamaEmbedding

PAGES = [
    "Printed books can be returned within 21 days of delivery if they are unread.",
    "A gift card can not be turned into cash.",
    "Standard shipping takes two to four working days.",
    "Loyalty points are valid for 24 months.",
]
ASKED, OFF_TOPIC = "How many days do I have to return a printed book?", "Who won the football match yesterday evening?"
BAR = 0.35


class Counting(BaseEmbedding):
    """Embeds a text as the counts of a few letters, and counts its calls."""

    _calls: list[list[str]] = PrivateAttr(default_factory=list[list[str]])

    @property
    def calls(self) -> list[list[str]]:
        """The texts of each call."""
        return self._calls

    def _embed(self, text: str) -> list[float]:
        return [1.0 + text.lower().count(letter) for letter in "abc"]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._calls.append([query])
        return self._embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._calls.append(texts)
        return [self._embed(text) for text in texts]


_components = st.just(0.0) | st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3)
_vectors = st.lists(_components, min_size=3, max_size=3)


@given(one=_vectors, other=_vectors, scale=st.floats(0.01, 100))
def test_a_cosine_is_one(one: list[float], other: list[float], scale: float) -> None:
    """Between -1 and 1, the same both ways, whatever the lengths; unknown where a vector has no direction."""
    found = cosine(one, other)
    assert found == cosine(other, one)
    if found is None:
        assert 0 in (math.hypot(*one), math.hypot(*other))
    else:
        assert -1 <= found <= 1
        assert cosine([scale * x for x in one], other) == pytest.approx(found, abs=1e-6)


def test_vectors_of_two_models_are_not_compared() -> None:
    """Vectors of different lengths have no cosine."""
    assert cosine([1.0, 0.0], [1.0, 0.0, 0.0]) is None


def index_of(pg_store: PgStore, embed: WordLlamaEmbedding, name: str, **options: Any) -> VectorStoreIndex:
    """Store the pages in a real table."""
    store = pg_store(name, 256, **options)
    nodes = [TextNode(id_=f"p{place}", text=text) for place, text in enumerate(PAGES)]
    return VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=embed)


def verdicts(retriever: BaseRetriever, signal: Any, bar: float = BAR) -> tuple[bool, bool]:
    """Tell whether the gate passes the question that the pages answer, and the one that they do not."""
    gate = ScoreGate(min_score=bar, signal=signal)

    def passes(question: str) -> bool:
        bundle = QueryBundle(question)
        return bool(gate.postprocess_nodes(retriever.retrieve(bundle), bundle))

    return passes(ASKED), passes(OFF_TOPIC)


def test_hybrid_pgvector(pg_store: PgStore, wordllama_embed: WordLlamaEmbedding) -> None:
    """Its one list mixes cosines with text ranks; the similarity gate tells the two questions apart."""
    index = index_of(pg_store, wordllama_embed, "signals_hybrid", hybrid_search=True, text_search_config="english")
    retriever = index.as_retriever(vector_store_query_mode="hybrid", similarity_top_k=1, sparse_top_k=4)
    found = retriever.retrieve("days")
    by_words = [scored.node.node_id for scored in found if (scored.score or 0) < 0.1]
    assert by_words
    assert len(by_words) < len(found)
    similar = VectorSimilarity(embed_model=wordllama_embed)
    # On the scale of cosines the hits by words are all lost; on the scale of text ranks nothing ever is.
    left = ScoreGate(min_score=0.2, drop_below=0.2).select(found, "days").nodes
    assert not {scored.node.node_id for scored in left} & set(by_words)
    assert verdicts(retriever, "score", bar=0.05) == (True, True)
    assert verdicts(retriever, similar) == (True, False)
    left = ScoreGate(min_score=0.2, drop_below=0.1, signal=similar).select(found, "days").nodes
    assert {scored.node.node_id for scored in left} >= set(by_words)


def test_rank_fusion(pg_store: PgStore, wordllama_embed: WordLlamaEmbedding, caplog: pytest.LogCaptureFixture) -> None:
    """A gate on fused scores refuses everything or nothing; the similarity gate works, and a warning names it, once."""
    index = index_of(pg_store, wordllama_embed, "signals_fusion")
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=3), index.as_retriever(similarity_top_k=2)],
        llm=MockLLM(),
        num_queries=1,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        use_async=False,
    )
    assert verdicts(retriever, "score") == (False, False)
    assert verdicts(retriever, "score", bar=0.01) == (True, True)
    assert verdicts(retriever, VectorSimilarity(embed_model=wordllama_embed)) == (True, False)
    gate, nodes = ScoreGate(min_score=BAR), retriever.retrieve(ASKED)
    caplog.clear()
    for _ in range(3):
        gate.select(nodes, ASKED)
    assert [record.message for record in caplog.records if "rank fusion" in record.message][1:] == []
    assert "VectorSimilarity" in caplog.text


def test_the_name_of_a_note_comes_first() -> None:
    """`RecordScore` and `MetadataScore` take the name without its word; copies and dicts keep it."""
    assert RecordScore("dense").key == RecordScore(key="dense").key == MetadataScore("dense").key
    assert RecordScore().key == "retrieval_score"
    assert RecordScore.from_dict(RecordScore("dense", keys=MetadataKeys(document_id="doc")).to_dict()).key == "dense"


def test_a_recorded_score_outlives_a_reranker() -> None:
    """The gate looks at the score of the retriever though a reranker wrote logits and another order over it."""
    nodes = RecordScore(key="dense").postprocess_nodes(make_nodes(["a", "b", "c"], scores=[0.3, 0.62, None]))
    reranked = [NodeWithScore(node=scored.node, score=-4.7) for scored in reversed(nodes)]
    found = ScoreGate(min_score=0.5, signal=MetadataScore("dense")).select(reranked)
    assert [scored.node.node_id for scored in found.nodes] == ["n2", "n1", "n0"]
    assert [(one.node_id, one.value) for one in found.decisions] == [("n1", 0.62)]
    assert not ScoreGate(min_score=0.7, signal=MetadataScore("dense")).select(reranked).nodes


@pytest.mark.parametrize(
    "value, passes",
    [
        *(
            (0.6, True),
            (0.4, False),
            (1, True),
            (Decimal("0.6"), True),
            (Decimal("0.4"), False),
            (Fraction(3, 5), True),
        ),
        *(("0.9", None), (True, None), (None, None), (Decimal("sNaN"), None), (Decimal("Infinity"), None)),
    ],
)
def test_a_number_in_the_metadata(value: Any, passes: bool | None) -> None:
    """A field of the node's metadata is a signal where it holds a number; anything else is a missing score."""
    gate = ScoreGate(min_score=0.5, signal=MetadataScore("relevance"))
    nodes = make_nodes(["a"], metadata={"relevance": value})
    if passes is None:
        with pytest.raises(MissingScoreError):
            gate.select(nodes)
    else:
        assert bool(gate.select(nodes).nodes) is passes


def test_the_laws() -> None:
    """Recording is a filter that drops nothing; gates with signals keep the laws, copies included."""
    check_postprocessor(lambda: RecordScore(key="dense"))
    check_postprocessor(
        lambda: ScoreGate(min_score=0.5, signal=MetadataScore("m"), on_missing_score="pass", drop_below=0.6),
        cases={"some": make_nodes(["a", "b"], metadata=[{"m": 0.7}, {"m": 0.2}])},
    )
    model = Counting()
    check_postprocessor(lambda: ScoreGate(min_score=0.5, signal=VectorSimilarity(embed_model=model)), round_trip=False)


def test_a_gate_with_a_model_is_not_written_down_without_it() -> None:
    """A dict could not hold the model, and a gate without it would look at other vectors: it is refused."""
    with pytest.raises(Exception, match="can not be written down"):
        ScoreGate(min_score=0.5, signal=VectorSimilarity(embed_model=Counting())).to_dict()
    assert ScoreGate(min_score=0.5, signal=VectorSimilarity()).to_dict()["signal"]["signal"] == "vector_similarity"


@pytest.mark.parametrize(
    "make",
    [
        lambda: VectorSimilarity(embed_model="nomic"),
        lambda: MetadataScore(""),
        lambda: RecordScore(key=""),
        lambda: ScoreGate(min_score=0.5, signal="similarity"),  # type: ignore[arg-type]
        lambda: ScoreGate(min_score=0.5, signal=VectorSimilarity),  # type: ignore[arg-type]
        lambda: VectorSimilarity(use_carried="no"),  # type: ignore[arg-type]
        lambda: RecordScore(3),  # type: ignore[arg-type]
        lambda: VectorSimilarity(model=None),  # type: ignore[call-arg]
    ],
)
def test_impossible_options_are_refused(make: Any) -> None:
    """What is no model, no name and no signal is an error at construction."""
    with pytest.raises(ValidationError):
        make()


def test_similarity_needs_the_question() -> None:
    """Without the query there is nothing to compare with."""
    with pytest.raises(ConfigurationError, match="query"):
        ScoreGate(min_score=0.5, signal=VectorSimilarity(embed_model=Counting())).select(make_nodes(["a"]))
