"""After the queries of two tenants nothing in the process remembers a word of either."""

from __future__ import annotations

import functools
from typing import Any

from llama_index.core import QueryBundle

from llama_index_grounded import (
    AccessGuard,
    CitingSynthesizer,
    GroundedQueryEngine,
    GroundedResponse,
    ScopedDedup,
    ScoreGate,
    TokenBudget,
)
from llama_index_grounded.checks import NumberCheck, OverlapCheck, QuoteCheck
from llama_index_grounded.selection import (
    ConflictFlagger,
    NearDuplicateFilter,
    PassageMerger,
    SourceOrder,
    VectorSimilarity,
)
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.caches import cached_texts
from tests.selection.parts import WordEmbedding
from tests.selection.test_engine import Holds

OWNERS = {"t_007": "Alphacorp", "t_7": "Betashop", "t_tr": "Gammakitap"}
QUESTION = "Within how many days can a gadget be returned?"


def pages(owner: str) -> list[str]:
    """Write pages that give every stage and every check something to do."""
    rule = f"Gadgets of {owner} can be returned within 21 days of delivery if they are unused and complete."
    return [
        f"{rule}\n\n{owner} repairs broken gadgets, costs of 9.50 EUR are not charged by {owner}.",
        f"{rule}\n\n{owner}'ın kitapları iade edilir ve makbuz verilir, {owner} için ücret alınmaz.",
        rule.replace("21", "14"),
        rule.replace("complete.", "complete!"),
    ]


def ask(tenant: str, owner: str) -> list[str]:
    """Ask one tenant's engine, with every stage and check that needs no judge; return how the checks ended."""
    nodes = make_nodes(
        pages(owner), metadata=[{"tenant": tenant, "document_id": f"{owner}-{n}", "title": owner} for n in range(4)]
    )
    quote = f"{owner} can be returned within 21 days of delivery if they are unused"
    claim = {"sources": ["S1", "S2"], "quote": quote, "text": f"Gadgets of {owner} go back within 21 days if unused."}
    llm, model = ScriptedLLM([{"verdict": "answered", "sources": ["S1", "S2"], "claims": [claim]}]), WordEmbedding()
    engine = GroundedQueryEngine.from_args(
        retriever=Holds(nodes),
        response_synthesizer=CitingSynthesizer(
            llm, output_cls=ClaimedAnswer, checks=[QuoteCheck(), NumberCheck(), OverlapCheck(threshold=0.1)]
        ),
        node_postprocessors=[
            AccessGuard(require=["tenant"]),
            ScoreGate(min_score=0.0, signal=VectorSimilarity(embed_model=model)),
            PassageMerger(),
            ScopedDedup(scope="global"),
            NearDuplicateFilter(),
            NearDuplicateFilter(method="embedding", embed_model=model, threshold=1.0),
            TokenBudget(max_tokens=900),
            ConflictFlagger(confirm=False),
            SourceOrder(),
        ],
    )
    response = engine.query(QueryBundle(QUESTION))
    assert isinstance(response, GroundedResponse)
    return [check.status for check in response.grounded.checks]


def test_no_cache_of_the_process_holds_a_word_of_a_tenant() -> None:
    """With all stages and checks at work, no cache, table or list that outlives a query has a part of a secret name."""
    assert [ask(tenant, owner) for tenant, owner in OWNERS.items()] == [["passed"] * 3] * 3
    # Six letters: what a stem leaves of a word.
    parts = [owner[:6].lower() for owner in OWNERS.values()]
    assert [text for text in cached_texts() if any(part in text.lower() for part in parts)] == []


def test_a_cache_that_holds_a_word_would_be_found() -> None:
    """The search sees keys, answers and what lies inside of them."""

    def cached(word: str) -> Any:
        return {word: [("Zyxwanswer",)]}

    cached.__module__ = "llama_index_grounded.nowhere"
    remembered = functools.lru_cache(maxsize=4)(cached)
    assert not [text for text in cached_texts() if text in ("Zyxwkey", "Zyxwanswer")]
    remembered("Zyxwkey")
    assert {text for text in cached_texts() if text in ("Zyxwkey", "Zyxwanswer")} == {"Zyxwkey", "Zyxwanswer"}
