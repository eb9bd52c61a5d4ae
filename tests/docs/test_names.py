"""The standard names of the pages behave as a reader's own would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine
from llama_index_grounded.checks import AnswerCheck, GroundednessCheck, NumberCheck, QuoteCheck
from llama_index_grounded.selection import ConflictFlagger, SufficiencyGate
from llama_index_grounded.synthesis import ClaimedAnswer
from tests.docs.names import standard_names, started

if TYPE_CHECKING:
    from tests.postgres import WordLlamaEmbedding

QUESTION = "How many days do I have to return a book?"


@pytest.fixture
def names(wordllama_embed: WordLlamaEmbedding) -> dict[str, Any]:
    """What a page starts with."""
    return standard_names(wordllama_embed)


def test_the_index_finds_the_right_node_first(names: dict[str, Any]) -> None:
    """Scores over the index tell a question that it covers from one that it does not."""
    retriever = names["index"].as_retriever(similarity_top_k=4)
    found = retriever.retrieve(QUESTION)
    assert found[0].node.metadata["section"] == "Return window"
    assert [round(scored.score, 2) for scored in found] == [0.51, 0.46, 0.14, 0.11]
    assert retriever.retrieve("Is there a café in the store?")[0].score < 0.2


def test_the_llm_answers_about_returns_alone(names: dict[str, Any]) -> None:
    """It cites the first source, and finds nothing where the question is about something else."""
    engine = GroundedQueryEngine.from_args(names["index"], llm=names["llm"], similarity_top_k=4)
    assert str(engine.query(QUESTION)) == "You have 21 days [S1]."
    refusal = engine.query("Is there a café in the store?").refusal
    assert refusal is not None
    assert refusal.reason == "not_in_sources"


def test_the_llm_makes_claims_that_hold(names: dict[str, Any]) -> None:
    """Asked for claims, it quotes the first source, and every check passes."""
    checks: list[AnswerCheck] = [QuoteCheck(), NumberCheck(), GroundednessCheck(llm=names["judge"])]
    synthesizer = CitingSynthesizer(names["llm"], output_cls=ClaimedAnswer, checks=checks)
    result: Any = synthesizer.synthesize(QUESTION, names["nodes"])
    assert [check.status for check in result.grounded.checks] == ["passed"] * 3


@pytest.mark.parametrize("question, kept", [(QUESTION, 4), ("Is there a café?", 0)])
def test_the_judge_finds_sources_enough_for_returns(names: dict[str, Any], question: str, kept: int) -> None:
    """It lets questions about returns pass and no other."""
    assert len(SufficiencyGate(llm=names["judge"]).select(names["nodes"], question).nodes) == kept


def test_the_judge_confirms_every_pair(names: dict[str, Any]) -> None:
    """What the filter finds, the judge confirms."""
    nodes = names["nodes"][:2]
    nodes[1].node.set_content("Unread books can be returned within 14 days of delivery. Keep the receipt.")
    nodes[1].node.metadata["document_id"] = "old"
    flagged = ConflictFlagger(llm=names["judge"]).select(nodes, QUESTION)
    assert [decision.reason for decision in flagged.decisions] == ["conflict"]


def test_servers_are_started_for_pages_that_name_them(names: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """A page that names the two servers gets both, and they answer; another page gets none."""
    from llama_index.llms.ollama import Ollama

    assert started("```python\nx = 1\n```\nollama_url vector_store\n", request) == {}
    given = started("```python\nprint(ollama_url, vector_store)\n```\n", request)
    nodes = [scored.node for scored in names["nodes"]]
    storage = StorageContext.from_defaults(vector_store=given["vector_store"])
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=names["embed_model"])
    llm = Ollama(model="gemma3:4b", base_url=given["ollama_url"])
    engine = GroundedQueryEngine.from_args(index, llm=llm, similarity_top_k=2)
    assert str(engine.query(QUESTION)) == "You have 21 days [S1]."
