"""Hybrid search: the scores of a fused list cannot tell whether a question is answered; `VectorSimilarity` can.

    sh uvw run --locked --extra demo --no-dev examples/hybrid.py

PostgreSQL looks for each question twice, by vectors (pgvector) and by words (full-text search), and LlamaIndex fuses
the two lists by rank. See the scores of both questions: the fused ones come from ranks alone, and the best is the same
for a question that no page answers; the cosines differ. The gate whose bar fused scores can never meet warns of it in
the log, once. It runs offline, on the embedded server (the extra "demo").
"""

from __future__ import annotations

import sys

from llama_index.core import QueryBundle, StorageContext, VectorStoreIndex
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from sqlalchemy.ext.asyncio import create_async_engine

from llama_index_grounded import GroundedQueryEngine, ScoreGate
from llama_index_grounded.selection import VectorSimilarity
from support.command import start
from support.corpus import chunk, customer_pages
from support.database import data_folder, open_database
from support.models import WORDLLAMA_MIN_SCORE, Models, choose_models

QUESTIONS = ("Can I turn a gift card into cash?", "How can I join the book club?")


def main() -> None:
    """Show the scores of both questions, what each gate makes of them, and the answers."""
    models = choose_models(None)
    retriever = fused_retriever(models)
    similarity = VectorSimilarity(embed_model=models.embedding)
    gate = ScoreGate(min_score=WORDLLAMA_MIN_SCORE, signal=similarity)
    # Made once, as in an engine: each gate warns only once.
    gates = (ScoreGate(min_score=WORDLLAMA_MIN_SCORE), ScoreGate(min_score=0.01), gate)
    engine = GroundedQueryEngine.from_args(retriever=retriever, llm=models.llm, gate=gate, top_n=3)
    for query in map(QueryBundle, QUESTIONS):
        nodes = retriever.retrieve(query)
        print(query.query_str)
        for scored, cosine in zip(nodes, similarity.values(nodes, query), strict=True):
            print(f"  fused {scored.score:.4f}  cosine {cosine:.2f}  {scored.node.node_id}")
        for other in gates:
            judged = f"{'cosine' if other is gate else 'fused'} >= {other.min_score}"
            print(f"  {judged}: {'passes' if other.select(nodes, query).nodes else 'refuses'}")
        print(f"  {engine.query(query)}")


def fused_retriever(models: Models) -> QueryFusionRetriever:
    """Store the customers' pages for both kinds of search, and fuse what they find."""
    from llama_index.vector_stores.postgres import PGVectorStore

    database = open_database(None, data_folder())
    store = PGVectorStore(
        engine=database.engine,
        async_engine=create_async_engine(database.async_url),
        table_name="hybrid",
        embed_dim=len(models.embedding.get_text_embedding("dimension")),
        hybrid_search=True,
        text_search_config="english",
        # Chunks of equal rank would come in any order.
        customize_query_fn=lambda query, table, *_, **__: query.order_by(table.id),
    )
    store.clear()
    nodes = chunk(customer_pages())
    storage = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=models.embedding)
    by_meaning = index.as_retriever(similarity_top_k=3)
    by_words = index.as_retriever(vector_store_query_mode="sparse", sparse_top_k=3)
    both = [by_meaning, by_words]
    # One question, no variants of it from a model; without use_async the two searches run one after the other.
    return QueryFusionRetriever(
        both, models.llm, mode=FUSION_MODES.RECIPROCAL_RANK, similarity_top_k=4, num_queries=1, use_async=False
    )


if __name__ == "__main__":
    sys.exit(start("hybrid", main))
