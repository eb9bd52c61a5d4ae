# ruff: noqa: S101 - assert is how pytest checks
"""Tests of an engine of your own, without a model, a database or a network. Copy this file and put your parts in.

    pytest examples/own_tests.py

In a checkout, put ``sh uvw run --locked --all-extras`` in front of it.

See an answer and its citation, an id that names no source, a refusal that asks no model, and a stage of one's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded import GroundedQueryEngine, GroundedResult, ScoreGate
from llama_index_grounded.selection import Outcome, Stage
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, check_postprocessor, make_nodes

TEXTS = ["Books can be returned within 21 days.", "Books can be returned within 99 days."]
NODES = make_nodes(TEXTS, ids=["new", "old"], metadata=[{"status": "approved"}, {"status": "draft"}])
ANSWER = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}


class Approved(Stage):
    """Your own stage: it keeps nodes that somebody approved, and reports the others."""

    def choose(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> Outcome:
        """Leave out what nobody approved."""
        drafts = [scored for scored in nodes if scored.node.metadata.get("status") != "approved"]
        kept = [scored for scored in nodes if scored.node.metadata.get("status") == "approved"]
        return Outcome(kept, [self.decision(scored, "dropped", "not_approved") for scored in drafts])


def ask(llm: ScriptedLLM, min_score: float = 0.5) -> GroundedResult:
    """Ask your engine, with a script in place of the model and fixed nodes in place of your index."""
    stages = [ScoreGate(min_score=min_score), Approved()]
    engine = GroundedQueryEngine.from_args(retriever=FixedRetriever(NODES), llm=llm, node_postprocessors=stages)
    return engine.query("How long can I return a book?").grounded


def test_an_answer_cites_the_node_that_was_shown() -> None:
    """The citation names our node, and the prompt held nothing that the stages left out."""
    llm = ScriptedLLM([ANSWER])
    assert [(cited.key, cited.node_id) for cited in ask(llm).citations] == [("S1", "new")]
    assert [text in llm.prompts[0] for text in TEXTS] == [True, False]


def test_an_unknown_id_is_no_citation() -> None:
    """Only one source was shown, so S2 names none: an answer that cites nothing else is refused."""
    audit = ask(ScriptedLLM([{**ANSWER, "sources": ["S2"]}])).audit()
    assert (audit["refusal"], audit["invalid_source_ids"]) == ("no_valid_citation", ["S2"])


def test_below_the_threshold_no_model_is_asked() -> None:
    """The best node has a score of 0.9."""
    llm = ScriptedLLM([ANSWER])
    assert ask(llm, min_score=0.95).audit()["refusal"] == "low_score"
    assert llm.prompts == []


def test_our_stage_says_what_it_drops() -> None:
    """The same record stands in ``response.grounded.decisions``."""
    assert [(each.node_id, each.reason) for each in Approved().select(NODES).decisions] == [("old", "not_approved")]


def test_our_stage_keeps_the_laws() -> None:
    """It changes nothing that it was given, does the same in async and after pickling, and reports what it drops."""
    check_postprocessor(Approved, cases={"our nodes": NODES})


if __name__ == "__main__":
    print(__doc__)
    # Without pytest nothing was tested, so only who asked for help has got what he wanted.
    sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
