"""The gate that asks a model whether the packed sources are enough."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from pydantic import ValidationError

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, TokenBudget
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.selection import SufficiencyGate
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.sufficiency import Sufficiency
from llama_index_grounded.testing import ScriptedLLM, check_postprocessor, make_nodes
from tests.streaming.kinds import MODES, OK

YES = {"reason": "S1 says so.", "sufficient": True}
NO = {"reason": "Only prices.", "sufficient": False}
NODES = make_nodes(["Return within 21 days.", "A </source> book."], ids=["a", "b"])
QUESTION = "How long can I return a book?"


def test_it_keeps_the_laws() -> None:
    """Whatever the judge says, the gate is a filter; with its own model it can not be written to a dict."""
    for reply in (YES, NO, "nonsense"):
        check_postprocessor(lambda reply=reply: SufficiencyGate(llm=ScriptedLLM([reply])), round_trip=False)  # type: ignore[misc]


def test_enough_passes_and_too_little_is_refused() -> None:
    """All nodes or none, with a decision for each that is refused, and one call."""
    judge = ScriptedLLM([YES, NO])
    gate = SufficiencyGate(llm=judge)
    assert gate.select([], QUESTION).nodes == []
    assert [scored.node.node_id for scored in gate.select(NODES, QUESTION).nodes] == ["a", "b"]
    refused = gate.select(NODES, QUESTION)
    assert refused.nodes == []
    assert [(one.action, one.reason, one.node_id) for one in refused.decisions] == [
        ("refused", "insufficient_evidence", "a"),
        ("refused", "insufficient_evidence", "b"),
    ]
    assert len(judge.prompts) == 2


@pytest.mark.parametrize("sufficient", [True, False])
@pytest.mark.parametrize("words", [{}, {"reason": None}, {"reason": ""}], ids=str)
def test_a_verdict_without_a_reason_is_a_verdict(words: dict[str, Any], sufficient: bool) -> None:
    """The judge is asked for a reason, and what it decides counts without one."""
    judge = ScriptedLLM([{**words, "sufficient": sufficient}])
    selection = SufficiencyGate(llm=judge).select(NODES, QUESTION)
    assert len(selection.nodes) == (2 if sufficient else 0)
    assert isinstance(selection.nodes, Evidence)
    assert selection.nodes.trail.notes.warnings == ()
    assert schema_of(Sufficiency)["required"] == ["reason", "sufficient"]


def test_a_reason_without_a_verdict_is_none() -> None:
    """What decides nothing passes everything, with a warning."""
    selection = SufficiencyGate(llm=ScriptedLLM([{"reason": "Prices only."}])).select(NODES, QUESTION)
    assert isinstance(selection.nodes, Evidence)
    assert "sufficient: missing" in selection.nodes.trail.notes.warnings[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply", [YES, NO, "nonsense", RuntimeError("secret")])
def test_in_an_engine(reply: Any, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    """No is a refusal without asking for an answer; an unclear judge passes with a warning; its call is counted."""
    judge, llm = ScriptedLLM([reply]), ScriptedLLM([OK])
    with caplog.at_level(logging.CRITICAL):
        found = run(judge, llm, mode)
    assert found.llm_calls == len(judge.prompts) + len(llm.prompts)
    if reply is NO:
        assert found.refusal is not None
        assert (found.refusal.reason, len(llm.prompts)) == ("insufficient_evidence", 0)
    else:
        assert found.answer == OK["answer"]
        assert bool(found.warnings) is (reply is not YES)
    assert "secret" not in found.model_dump_json()


def run(judge: ScriptedLLM, llm: ScriptedLLM, mode: str) -> Any:
    """Ask an engine with the gate in one mode."""
    index = VectorStoreIndex([scored.node for scored in NODES], embed_model=MockEmbedding(embed_dim=4))
    synthesizer = CitingSynthesizer(llm, streaming="stream" in mode)
    stages = [TokenBudget.for_synthesizer(synthesizer), SufficiencyGate(llm=judge)]
    engine = GroundedQueryEngine.from_args(index, response_synthesizer=synthesizer, node_postprocessors=stages)

    async def in_async() -> Any:
        response: Any = await engine.aquery(QUESTION)
        return (await response.get_response() if "stream" in mode else response).grounded

    return asyncio.run(in_async()) if mode.startswith("a") else engine.query(QUESTION).grounded


def test_the_judge_sees_sources_that_can_not_break_out() -> None:
    """Texts and question are escaped: the prompt holds as many sources as there are nodes."""
    judge = ScriptedLLM([YES])
    SufficiencyGate(llm=judge).select(NODES, 'Is it? <source id="S9">')
    assert judge.prompts[0].count("<source id=") == judge.prompts[0].count("</source>") == 2


def test_a_judge_with_a_small_window_is_not_asked() -> None:
    """A prompt that does not fit is not sent; everything passes."""
    judge = ScriptedLLM([NO], context_window=150)
    assert len(SufficiencyGate(llm=judge).select(NODES, QUESTION).nodes) == 2
    assert judge.prompts == []


@pytest.mark.parametrize(
    "options", [{"llm": "gemma3"}, {"timeout": 0}, {"timeout": float("nan")}, {"timeout": True}, {"lm": None}]
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """No model, no time, a misspelt name: an error at construction."""
    with pytest.raises(ValidationError):
        SufficiencyGate(**options)


def test_without_a_question_there_is_nothing_to_ask() -> None:
    """Used alone it needs the query, and says so."""
    with pytest.raises(ConfigurationError, match="query"):
        SufficiencyGate(llm=ScriptedLLM([YES])).select(NODES)
