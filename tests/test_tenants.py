"""Two tenants and a page for staff in one table of a real pgvector: nothing of one reaches the other."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
import pytest_asyncio
from llama_index.core import QueryBundle, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.vector_stores.postgres import PGVectorStore
from sqlalchemy import create_engine
from sqlalchemy.exc import DataError
from sqlalchemy.ext.asyncio import create_async_engine

from llama_index_grounded import (
    AttentionReorder,
    GroundedQueryEngine,
    GroundedResponse,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
)
from llama_index_grounded.errors import AccessViolationError
from llama_index_grounded.selection.access import WITHHELD, AccessGuard
from support.extractive import ExtractiveLLM
from tests.caches import cached_texts
from tests.postgres import PgStore, Postgres, WordLlamaEmbedding

QUERIES = 200
CONNECTIONS, POOL_SECONDS = 8, 120
SHARED = "Every return needs the receipt and the original packaging of the goods."
PAGES = [
    ("007", "all", "alpha-returns", f"{SHARED}\n\nGadgets of Alphacorp can be returned within 21 days of delivery."),
    ("007", "all", "alpha-repair", "Alphacorp repairs a broken gadget within 3 days in its own workshop."),
    ("007", "staff", "gamma-margins", "Gammasheet: the margin on a gadget is 40 %, and returns are resold unopened."),
    ("7", "all", "beta-returns", f"{SHARED}\n\nGadgets of Betashop can be returned within 14 days of delivery."),
    ("7", "all", "beta-repair", "Betashop repairs a broken typewriter within 9 days for a flat fee."),
]
"""Tenant, audience, id and text."""
MARKS = {"007": ("beta",), "7": ("alpha", "gamma"), "007 staff": ("beta",)}
"""What must not reach a reader; a customer of 007 must not see "gamma" either, see `strange`."""
QUESTIONS = [
    "How many days do I have to return a gadget?",
    "Who repairs a broken typewriter, and how fast?",
    "What is the margin on a gadget?",
    "Does every return need the receipt?",
]

reader: ContextVar[str] = ContextVar("reader", default="nobody")
seen: dict[str, list[str]] = defaultdict(list)
"""Everything that was written, by the reader in whose query it was."""


def strange(who: str) -> tuple[str, ...]:
    """Return the words that a reader must never meet."""
    return (*MARKS[who], *(("gamma",) if who == "007" else ()))


def tenant_filter(who: str, operator: FilterOperator) -> MetadataFilter:
    """Ask for the reader's tenant."""
    tenant = who.split(maxsplit=1)[0]
    return MetadataFilter(key="tenant", value=[tenant] if operator == FilterOperator.IN else tenant, operator=operator)


def readable(who: str) -> MetadataFilter:
    """Ask for pages that the reader may read."""
    audiences = ["all", "staff"] if who.endswith("staff") else ["all"]
    return MetadataFilter(key="audience", value=audiences, operator=FilterOperator.IN)


class Noting(ExtractiveLLM):
    """Notes every prompt under the reader in whose query it was sent."""

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Note, and reply in pieces."""
        seen[reader.get()].append(prompt)
        return super().stream_complete(prompt, formatted, **kwargs)


class EventNotes(BaseEventHandler):
    """Notes every event under the reader in whose query it was emitted."""

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Note one event."""
        seen[reader.get()].append(f"{event.class_name()} {event.model_dump_json()}")


class LogNotes(logging.Handler):
    """Notes every log line under the reader in whose query it was written."""

    def emit(self, record: logging.LogRecord) -> None:
        """Note one line."""
        seen[reader.get()].append(self.format(record))


@contextmanager
def noted(dispatcher_name: str, *loggers: str) -> Generator[None, None, None]:
    """Note events of a dispatcher and all logs, those of the named loggers down to debug level."""
    seen.clear()
    dispatcher, handler, logger = get_dispatcher(dispatcher_name), LogNotes(), logging.getLogger()
    levels = {name: logging.getLogger(name).level for name in loggers}
    before = list(dispatcher.event_handlers)
    dispatcher.event_handlers = [*before, EventNotes()]
    logger.addHandler(handler)
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield
    finally:
        dispatcher.event_handlers = before
        logger.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@pytest_asyncio.fixture
async def index(postgres: Postgres, wordllama_embed: WordLlamaEmbedding) -> AsyncIterator[VectorStoreIndex]:
    """All pages in one table; few pooled connections serve many queries."""
    store = PGVectorStore(
        table_name="tenants",
        embed_dim=256,
        engine=create_engine(postgres.sync_url),
        # The last query waits for a connection until all others are through.
        async_engine=create_async_engine(
            postgres.async_url, pool_size=CONNECTIONS, max_overflow=0, pool_timeout=POOL_SECONDS
        ),
        initialization_fail_on_error=True,
    )
    store.add([*pages(wordllama_embed)])
    yield VectorStoreIndex.from_vector_store(store, embed_model=wordllama_embed)
    await store.close()
    postgres.execute("SET lock_timeout = '5s'", "DROP TABLE IF EXISTS data_tenants")


def pages(embedding: WordLlamaEmbedding, tenants: dict[str, str] | None = None) -> list[TextNode]:
    """Make the pages with their vectors, the tenants renamed where asked."""
    return [
        TextNode(
            id_=name,
            text=text,
            metadata={"tenant": (tenants or {}).get(tenant, tenant), "audience": audience, "title": name},
            embedding=embedding.get_text_embedding(text),
        )
        for tenant, audience, name, text in PAGES
    ]


def engine_for(
    index: VectorStoreIndex, who: str, retrieval: Sequence[MetadataFilter], on_violation: Any
) -> GroundedQueryEngine:
    """Build a reader's engine: the given filter in the retriever, the whole rule in the guard."""
    rule = MetadataFilters(filters=[tenant_filter(who, FilterOperator.EQ), readable(who)])
    return GroundedQueryEngine.from_args(
        index,
        llm=Noting(),
        similarity_top_k=10,
        filters=MetadataFilters(filters=list(retrieval)),
        node_postprocessors=[
            AccessGuard(filters=rule, require=["tenant", "audience"], on_violation=on_violation),
            ScoreGate(min_score=0.2),
            ScopedDedup(scope="global"),
            TokenBudget(max_tokens=600),
            AttentionReorder(),
        ],
    )


def note(who: str, response: object) -> GroundedResponse:
    """Note everything of a response that can be stored or shown."""
    assert isinstance(response, GroundedResponse)
    seen[who] += [str(response), response.grounded.model_dump_json(), json.dumps(response.grounded.audit())]
    seen[who] += [node.model_dump_json() for node in response.source_nodes]
    seen[who] += [json.dumps(response.metadata, default=repr), repr(vars(response))]
    return response


async def ask_all(engines: dict[str, GroundedQueryEngine], queries: int = QUERIES) -> dict[str, list[GroundedResponse]]:
    """Ask for all readers at once; every other question is one object that they share."""
    bundles = [QueryBundle(question) for question in QUESTIONS]

    async def ask(number: int) -> tuple[str, GroundedResponse]:
        who = list(engines)[number % len(engines)]
        reader.set(who)
        bundle = bundles[number // len(engines) % len(bundles)]
        return who, note(who, await engines[who].aquery(bundle if number % 2 else bundle.query_str))

    answers: dict[str, list[GroundedResponse]] = defaultdict(list)
    # A query that fails must not leave the others behind with open transactions.
    for outcome in await asyncio.gather(*map(ask, range(queries)), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        answers[outcome[0]].append(outcome[1])
    return answers


def check(answers: dict[str, list[GroundedResponse]]) -> None:
    """See that everybody was answered from pages of their own and met nothing of the others."""
    for who, own in (("007", "21 days"), ("7", "14 days"), ("007 staff", "40 %")):
        text = "\n".join(seen[who])
        assert own in text
        assert not [word for word in strange(who) if word in text.lower()]
        assert any(response.answerable for response in answers[who])
    assert not any("40 %" in str(response) for response in [*answers["007"], *answers["7"]])


async def test_the_stores_own_filter_mixes_tenants_whose_names_are_one_number(index: VectorStoreIndex) -> None:
    """PGVectorStore reads "007" and "7" as 7.0, so EQ returns both; IN compares texts and returns one."""

    async def found(operator: FilterOperator) -> set[str]:
        filters = MetadataFilters(filters=[tenant_filter("007", operator)])
        nodes = await index.as_retriever(similarity_top_k=10, filters=filters).aretrieve("returns")
        return {scored.node.metadata["tenant"] for scored in nodes}

    assert await found(FilterOperator.EQ) == {"007", "7"}
    assert await found(FilterOperator.IN) == {"007"}


def test_one_name_that_is_no_number_breaks_the_filter_of_the_others(
    pg_store: PgStore, wordllama_embed: WordLlamaEmbedding
) -> None:
    """Beside a tenant "t_7", the filter for "007" ends in an error of the database, which names the other tenant."""
    store = pg_store("tenants_mixed", 256)
    store.add([*pages(wordllama_embed, {"7": "t_7"})])
    index = VectorStoreIndex.from_vector_store(store, embed_model=wordllama_embed)
    filters = MetadataFilters(filters=[tenant_filter("007", FilterOperator.EQ)])
    with pytest.raises(DataError, match="t_7"):
        index.as_retriever(filters=filters).retrieve("returns")


@pytest.mark.timeout(180)  # on a busy machine
async def test_behind_a_filter_that_mixes_the_guard_keeps_everything_apart(index: VectorStoreIndex) -> None:
    """200 queries at once: no answer, citation, source, prompt, audit, event, log line or cache crosses a tenant."""
    engines = {
        who: engine_for(index, who, [tenant_filter(who, FilterOperator.EQ)], on_violation="drop") for who in MARKS
    }
    parts = [
        part for engine in engines.values() for part in (engine._response_synthesizer, *engine._node_postprocessors)
    ]
    before = [dict(vars(part)) for part in parts]
    # What the retriever itself reports, and logs at debug level, is older than the guard.
    with noted("llama_index_grounded.events", "llama_index_grounded"):
        answers = await ask_all(engines)
    check(answers)
    for who, dropped in (("007", 3), ("7", 3), ("007 staff", 2)):
        withheld = [[d for d in each.grounded.decisions if d.reason == "access"] for each in answers[who]]
        assert {len(each) for each in withheld} == {dropped}
        assert {(d.node_id, d.document_id) for each in withheld for d in each} == {(WITHHELD, WITHHELD)}
        assert sum("AccessGuard dropped" in line for line in seen[who]) == len(answers[who])
    assert not seen["nobody"]
    assert [dict(vars(part)) for part in parts] == before
    del answers
    assert not [text for text in cached_texts() if any(word in text.lower() for word in ("alphac", "betash", "gammas"))]


async def test_with_an_exact_filter_not_even_the_retriever_tells(index: VectorStoreIndex) -> None:
    """With the whole rule in the retriever as IN, the guard never raises and no event of LlamaIndex crosses either."""
    engines = {
        who: engine_for(index, who, [tenant_filter(who, FilterOperator.IN), readable(who)], on_violation="raise")
        for who in MARKS
    }
    with noted("root", "llama_index_grounded", "llama_index"):
        answers = await ask_all(engines, 24)
    check(answers)
    assert not [d for who in MARKS for each in answers[who] for d in each.grounded.decisions if d.reason == "access"]
    assert any(line.startswith("RetrievalEndEvent") for line in seen["007"])


@pytest.mark.parametrize("who", MARKS)
async def test_an_error_tells_nothing_of_the_other_tenant(index: VectorStoreIndex, who: str) -> None:
    """The guard's error, its traceback included, holds counts; the ids are data on it."""
    engine = engine_for(index, who, [tenant_filter(who, FilterOperator.EQ)], on_violation="raise")
    with pytest.raises(AccessViolationError) as caught:
        await engine.aquery(QUESTIONS[0])
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert not [word for word in strange(who) if word in told.lower()]
    assert len(caught.value.node_ids) == (2 if who.endswith("staff") else 3)
