"""Two tenants and pages for staff in one table: the filter in the retriever, and the guard behind it.

    sh uvw run --locked --extra demo --no-dev examples/tenants.py

The tenants are named 007 and 7, on purpose: the store reads both as the number 7 where a filter compares with EQ, and
the guard catches what comes along. Name yours t_007 (docs/how-to/tenants.md). It runs offline (the extra "demo").
"""

from __future__ import annotations

import logging
import sys

from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_grounded import AccessGuard, GroundedQueryEngine
from support.command import start
from support.database import data_folder, open_database
from support.models import Models, choose_models
from support.printing import audit_lines, show_progress

PAGES = {
    ("007", "all"): "Acme customers can return a gadget within 21 days of delivery.",
    ("007", "staff"): "Acme staff resell a returned gadget at a margin of 40 %.",
    ("7", "all"): "Bolt customers can return a gadget within 14 days of delivery.",
}
QUESTION = "Within how many days can a customer return a gadget?"


def main() -> int:
    """Run as a command, without a log line for each chunk that the guard drops."""
    logging.basicConfig(level=logging.ERROR)
    return start("tenants", compare)


def compare() -> None:
    """Ask for both tenants, by a filter that compares texts and by one that the store reads as a number."""
    models = choose_models(None)
    index = open_index(models)
    for operator in (FilterOperator.IN, FilterOperator.EQ):
        for tenant in ("007", "7"):
            response = engine_for(tenant, index, models, operator).query(QUESTION)
            withheld = sum(decision.reason == "access" for decision in response.grounded.decisions)
            print(f"{tenant} by {operator.name}: {response} ({withheld} withheld by the guard)")
    print("\n".join(audit_lines(response.grounded)))


def readable_by(tenant: str, operator: FilterOperator) -> MetadataFilters:
    """Say what a customer of a tenant may read."""
    wanted = [tenant] if operator == FilterOperator.IN else tenant
    own = MetadataFilter(key="tenant", operator=operator, value=wanted)
    public = MetadataFilter(key="audience", operator=FilterOperator.IN, value=["all"])
    return MetadataFilters(filters=[own, public])


def open_index(models: Models) -> VectorStoreIndex:
    """Store the pages of all tenants in one table."""
    from support.ingest import open_store

    nodes = [TextNode(text=text, metadata={"tenant": who, "audience": to}) for (who, to), text in PAGES.items()]
    database = open_database(None, data_folder())
    store = open_store(database, "tenants", lambda: nodes, models.embedding, show_progress, again=True)
    return VectorStoreIndex.from_vector_store(store, embed_model=models.embedding)


def engine_for(tenant: str, index: VectorStoreIndex, models: Models, operator: FilterOperator) -> GroundedQueryEngine:
    """Build the engine of one tenant: one rule in the retriever, and once more in the guard, which compares exactly."""
    rule = readable_by(tenant, operator)
    guard = AccessGuard(filters=rule, require=["tenant", "audience"], on_violation="drop")
    return GroundedQueryEngine.from_args(
        index, models.llm, similarity_top_k=10, filters=rule, guard=guard, min_score=models.min_score, top_n=3
    )


if __name__ == "__main__":
    sys.exit(main())
