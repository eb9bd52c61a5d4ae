"""A guard in the engine's usual chain: it comes first, and nothing else can stand in its place."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_grounded import AccessGuard, GroundedQueryEngine, ScoreGate, TokenBudget
from llama_index_grounded.errors import AccessViolationError, ConfigurationError
from llama_index_grounded.testing import ScriptedLLM
from tests.synthesis.test_query_engine import OK, QUESTION, make_index

RULE = MetadataFilters(filters=[MetadataFilter(key="topic", value="returns")])


def make_engine(llm: ScriptedLLM, **options: Any) -> GroundedQueryEngine:
    """Build an engine that finds all four texts."""
    return GroundedQueryEngine.from_args(make_index(), llm, similarity_top_k=4, **options)


async def test_a_guard_stops_the_query_before_anything_else() -> None:
    """A node that breaks its rule raises, also where the gate would refuse, and no model is asked."""
    llm = ScriptedLLM([OK])
    engine = make_engine(llm, guard=AccessGuard(filters=RULE), min_score=9.0)
    with pytest.raises(AccessViolationError, match="3 of 4 nodes"):
        engine.query(QUESTION)
    with pytest.raises(AccessViolationError, match="3 of 4 nodes"):
        await engine.aquery(QUESTION)
    assert llm.prompts == []


def test_a_guard_that_drops_comes_first() -> None:
    """What it drops is withheld, no later stage names it, and the rest of the chain packs what it let pass."""
    llm = ScriptedLLM([OK], context_window=1810)
    engine = make_engine(llm, guard=AccessGuard(filters=RULE, on_violation="drop"), gate=ScoreGate(min_score=0.1))
    result = engine.query(QUESTION).grounded
    dropped = [(one.stage, one.node_id) for one in result.decisions if one.action == "dropped"]
    assert dropped == [(AccessGuard.class_name(), "(withheld)")] * 3
    assert ([source.node_id for source in result.sources], len(llm.prompts)) == (["returns"], 1)


def test_the_budget_packs_behind_the_guard() -> None:
    """With a guard that lets everything pass, the window of the synthesizer's model still counts."""
    guard = AccessGuard(require=["topic"])
    result = make_engine(ScriptedLLM([OK], context_window=1810), guard=guard).query(QUESTION).grounded
    assert {one.stage for one in result.decisions if one.action == "dropped"} == {TokenBudget.class_name()}


@pytest.mark.parametrize(
    "options, fault",
    [
        ({"guard": AccessGuard(filters=RULE), "node_postprocessors": []}, "^guard: for the usual chain"),
        ({"guard": ScoreGate(min_score=0.5)}, "guard must be an AccessGuard, not ScoreGate"),
        ({"guard": AccessGuard}, "guard must be an AccessGuard, not the class AccessGuard"),
        ({"guard": RULE}, "guard must be an AccessGuard, not MetadataFilters"),
        ({"guard": False}, "guard must be an AccessGuard, not bool"),
    ],
)
def test_what_would_guard_nothing_is_refused(options: dict[str, Any], fault: str) -> None:
    """Beside a ready list of stages, or in place of a guard, it fails at construction and says why."""
    with pytest.raises(ConfigurationError, match=fault):
        make_engine(ScriptedLLM([OK]), **options)


def test_a_misspelt_guard_is_refused() -> None:
    """A guard under another name is never ignored; the right name is offered."""
    with pytest.raises(TypeError, match=r"unknown options: guards \(did you mean guard\?\)"):
        make_engine(ScriptedLLM([OK]), guards=AccessGuard(filters=RULE))
