"""How tenants are named in one table of a real pgvector, as docs/how-to/tenants.md has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from sqlalchemy.exc import DBAPIError

from tests.postgres import PgStore, WordLlamaEmbedding

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "tenants.md"
RULE = re.compile(r"t_[a-z0-9_]+")
SAFE = ["t_007", "t_7", "t_nan", "t_inf", "t_1e5", "t_1_000", "t__"]
NUMBERS = ["nan", "inf", "infinity", "1e5", "1_000", "007"]
"""Names that Python reads as a number, and so the store; a letter at the front does not help."""


def reads_as_number(name: str) -> bool:
    """Tell what the store tells of a wanted value."""
    try:
        float(name)
    except ValueError:
        return False
    return True


@given(st.from_regex(RULE, fullmatch=True))
def test_a_name_with_the_prefix_is_never_a_number(name: str) -> None:
    """Whatever letters, digits and underscores follow."""
    assert not reads_as_number(name)


def test_the_page_says_so() -> None:
    """The rule of the page is the one that is tried here, and it warns of words that are numbers."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"`{RULE.pattern}`" in text
    for name in ("nan", "inf", "infinity", "1_000", "007"):
        assert f"`{name}`" in text
        assert reads_as_number(name)
        assert not RULE.fullmatch(name)


@pytest.mark.parametrize("operator", [FilterOperator.EQ, FilterOperator.IN, FilterOperator.NE, FilterOperator.NIN])
def test_with_the_prefix_the_store_compares_texts(
    pg_store: PgStore, wordllama_embed: WordLlamaEmbedding, operator: FilterOperator
) -> None:
    """Each name finds its own row, or all others under a negation, beside any other name of the rule."""
    found = {name: find(pg_store, wordllama_embed, SAFE, name, operator) for name in SAFE}
    own = operator in (FilterOperator.EQ, FilterOperator.IN)
    assert found == {name: [other for other in SAFE if (other == name) is own] for name in SAFE}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_name_that_is_a_number_breaks_the_filter(
    pg_store: PgStore, wordllama_embed: WordLlamaEmbedding, name: str
) -> None:
    """Beside a name that is none, its own query ends in an error of the database; one of a word does so alone."""
    for tenants in [[name, "t_8"], *([[name]] if name.isalpha() else [])]:
        with pytest.raises(DBAPIError):
            find(pg_store, wordllama_embed, tenants, name, FilterOperator.EQ)


def find(
    pg_store: PgStore, embed: WordLlamaEmbedding, tenants: list[str], name: str, operator: FilterOperator
) -> list[str]:
    """Ask the rows of tenants by a filter on one of them."""
    store = pg_store("tenant_names", 256)
    vector = embed.get_text_embedding("Returns")
    store.add([TextNode(id_=one, text=one, metadata={"tenant": one}, embedding=vector) for one in tenants])
    value = [name] if operator in (FilterOperator.IN, FilterOperator.NIN) else name
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=value, operator=operator)])
    index = VectorStoreIndex.from_vector_store(store, embed_model=embed)
    found = {scored.node_id for scored in index.as_retriever(filters=filters, similarity_top_k=20).retrieve("returns")}
    store.clear()
    return [one for one in tenants if one in found]
