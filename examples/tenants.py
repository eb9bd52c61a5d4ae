"""Two tenants and pages for staff in one table: the filter in the retriever, and the guard behind it.

    python examples/tenants.py

It runs offline, on embedded PostgreSQL, static embeddings and an extractive answerer (the extra "demo").
"""

from __future__ import annotations

import logging
import sys

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_grounded import AccessGuard, GroundedQueryEngine, default_postprocessors
from support.database import data_folder, open_database
from support.errors import SetupError
from support.ingest import open_store
from support.models import Models, choose_models
from support.printing import audit_lines, say, show_progress

PAGES = {
    ("t_007", "all"): "Acme customers can return a gadget within 21 days of delivery.",
    ("t_007", "staff"): "Acme staff resell a returned gadget at a margin of 40 %.",
    ("t_7", "all"): "Bolt customers can return a gadget within 14 days of delivery.",
}
QUESTION = "Within how many days can a customer return a gadget?"


def main() -> int:
    """Ask for both tenants, then see what the guard does when the filter was forgotten."""
    logging.basicConfig(level=logging.ERROR)
    try:
        models = choose_models(None)
        index = open_index(models)
        for tenant in ("t_007", "t_7"):
            print(f"{tenant}: {engine_for(tenant, index, models).query(QUESTION)}")
        response = engine_for("t_7", index, models, forgotten=True).query(QUESTION)
        print(f"Without a filter in the retriever, t_7: {response}")
        print("\n".join(audit_lines(response.grounded)))
    except SetupError as error:
        say(f"tenants: {error}")
        return 2
    return 0


def readable_by(tenant: str) -> MetadataFilters:
    """Say what a customer of a tenant may read. IN compares texts; the store reads EQ with "007" as a number."""
    wanted = {"tenant": [tenant], "audience": ["all"]}
    return MetadataFilters(
        filters=[MetadataFilter(key=key, operator=FilterOperator.IN, value=value) for key, value in wanted.items()]
    )


def open_index(models: Models) -> VectorStoreIndex:
    """Store the pages of all tenants in one table."""
    nodes = [TextNode(text=text, metadata={"tenant": who, "audience": to}) for (who, to), text in PAGES.items()]
    database = open_database(None, data_folder())
    store = open_store(database, "tenants", lambda: nodes, models.embedding, show_progress, again=True)
    return VectorStoreIndex.from_vector_store(store, embed_model=models.embedding)


def engine_for(tenant: str, index: VectorStoreIndex, models: Models, *, forgotten: bool = False) -> GroundedQueryEngine:
    """Build the engine of one tenant; only ``forgotten=True`` leaves the retriever's own filter out."""
    rule = readable_by(tenant)
    guard = AccessGuard(filters=rule, require=["tenant", "audience"], on_violation="drop" if forgotten else "raise")
    stages = [guard, *default_postprocessors(min_score=models.min_score, top_n=3)]
    filters = None if forgotten else rule
    return GroundedQueryEngine.from_args(
        index, models.llm, similarity_top_k=10, filters=filters, node_postprocessors=stages
    )


if __name__ == "__main__":
    sys.exit(main())
