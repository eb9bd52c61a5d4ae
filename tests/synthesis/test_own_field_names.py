"""Names of metadata fields are given once: to a stage, or to the synthesizer."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, ScopedDedup, TokenBudget
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
OWN = MetadataKeys(document_id="doc", section="heading")
FIELDS = {"doc": "returns", "heading": "Window", "document_id": "row 7", "section": "§ 3"}


@pytest.mark.parametrize("stages", [[], [ScopedDedup()], [ScopedDedup(), TokenBudget(top_n=1)]], ids=len)
@pytest.mark.parametrize("given", ["synthesizer", "stage", "both"])
def test_the_names_hold_for_the_citation(stages: list[Any], given: str) -> None:
    """Whoever is given them, and whichever stages that were not told run in front."""
    told = [ScopedDedup(keys=OWN)] if given != "synthesizer" else []
    options: dict[str, Any] = {"keys": OWN} if given != "stage" else {}
    engine = GroundedQueryEngine.from_args(
        retriever=FixedRetriever(make_nodes(["Within 21 days.", "Else."], metadata=FIELDS)),
        llm=ScriptedLLM([OK]),
        node_postprocessors=[*stages, *told],
        **options,
    )
    (citation,) = engine.query("How long?").citations
    assert (citation.document_id, citation.section) == ("returns", "Window")


def test_a_preview_knows_them_too() -> None:
    """What would be sent names the same documents."""
    nodes = ScopedDedup().postprocess_nodes(make_nodes(["Within 21 days."], metadata=FIELDS))
    plan = CitingSynthesizer(ScriptedLLM([OK]), keys=OWN).preview("How long?", nodes)
    assert [(source.document_id, source.section) for source in plan.sources] == [("returns", "Window")]


def test_names_of_a_stage_stay_where_the_synthesizer_has_the_defaults() -> None:
    """The defaults are no names that somebody gave."""
    nodes = ScopedDedup(keys=OWN).postprocess_nodes(make_nodes(["Within 21 days."], metadata=FIELDS))
    plan = CitingSynthesizer(ScriptedLLM([OK])).preview("How long?", nodes)
    assert [(source.document_id, source.section) for source in plan.sources] == [("returns", "Window")]
