"""The synthesizer as LlamaIndex sees it: any reply is survived, sync equals async, events change nothing."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import Field

from llama_index_grounded import CitingSynthesizer, GroundedResponse, GroundedResult, ScoreGate, TokenBudget
from llama_index_grounded.events import GroundedEndEvent, SelectionEvent
from llama_index_grounded.testing import ScriptedLLM, make_nodes

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
QUESTION = "How long can I return a book?"
SOURCES = make_nodes(["Return a book within 21 days.", "Keep the receipt."], metadata={"tags": {"deep": ["x"]}})


def grounded(response: object) -> GroundedResult:
    """Return the result of a response."""
    assert isinstance(response, GroundedResponse)
    return response.grounded


def timeless(result: GroundedResult) -> GroundedResult:
    """Forget how long it took, and the fingerprint, which knows the size of a model's pieces."""
    return result.model_copy(update={"elapsed_ms": 0.0, "fingerprint": ""})


words = st.text(max_size=12) | st.sampled_from(
    ["S1", "S2", "S9", "[S1]", "answered", "yes", "not_in_sources", "</source>"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
shaped = st.fixed_dictionaries(
    {"verdict": st.sampled_from(["answered", "yes", "no", "conflicting", "not_in_sources"]) | anything},
    optional={"sources": st.lists(words, max_size=4) | anything, "answer": words | anything, "extra": anything},
).map(json.dumps)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid reply with a slice cut out and something put in its place."""
    text = json.dumps(OK)
    start = draw(st.integers(0, len(text)))
    stop = draw(st.integers(start, len(text)))
    return text[:start] + draw(st.text(max_size=6) | st.sampled_from(['"', "{", "}", "\\", "[", ","])) + text[stop:]


replies = st.text(max_size=30) | shaped | mutated()


@settings(max_examples=80)
@given(reply=replies, inline=st.booleans(), policy=st.sampled_from(["drop", "refuse", "retry"]))
@example(reply='{"sources": ' + "1" * 5000 + "}", inline=True, policy="drop")
def test_any_reply_is_survived(reply: str, inline: bool, policy: Any) -> None:
    """No reply makes a query raise, cite what was not shown, leave a stamp, or change what it was given."""
    nodes = copy.deepcopy(SOURCES)
    synthesizer = CitingSynthesizer(ScriptedLLM([reply]), inline_citations=inline, on_invalid_ids=policy)
    response = synthesizer.synthesize(QUESTION, nodes)
    result = grounded(response)
    assert [citation.node_id for citation in result.citations] == [
        {"S1": "n0", "S2": "n1"}[citation.key] for citation in result.citations
    ]
    assert result.answerable == (result.refusal is None) == bool(result.citations)
    assert result.answer.strip()
    assert GroundedResult.model_validate_json(result.model_dump_json()) == result
    json.dumps((response.metadata or {})["grounded"], allow_nan=False)
    assert nodes == response.source_nodes == SOURCES


@settings(max_examples=25)
@given(reply=replies, size=st.integers(1, 40))
@example(reply='{"verdict": "answered",' + " " * 600 + '"sources": ["S1"], "answer": "x"}', size=8)
def test_sync_async_and_any_chunk_size_give_one_result(reply: str, size: int) -> None:
    """The same reply has the same result, whole or in pieces, sync or async."""
    whole, pieces = (CitingSynthesizer(ScriptedLLM([reply], chunk_size=chunk)) for chunk in (None, size))
    expected = timeless(grounded(whole.synthesize(QUESTION, SOURCES)))
    assert timeless(grounded(pieces.synthesize(QUESTION, SOURCES))) == expected
    assert timeless(grounded(asyncio.run(pieces.asynthesize(QUESTION, SOURCES)))) == expected


class _Listener(BaseEventHandler):
    """Keeps every event, and asks a response for its text as many log handlers do."""

    seen: list[BaseEvent] = Field(default_factory=list)
    fails: bool = False

    def handle(self, event: BaseEvent, **kwargs: Any) -> Any:
        self.seen.append(event)
        if isinstance(event, SynthesizeEndEvent):
            str(event.response)
        if self.fails:
            raise RuntimeError("a broken handler")


@pytest.fixture
def listener() -> Iterator[_Listener]:
    """A handler at the root of LlamaIndex's dispatchers, removed again at the end."""
    handler = _Listener()
    root = get_dispatcher()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


@pytest.mark.parametrize("in_async", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_events_tell_the_course_and_change_nothing(listener: _Listener, in_async: bool, fails: bool) -> None:
    """Stages, start, our end and LlamaIndex's end are reported; a handler that reads or fails changes no result."""
    listener.fails = fails
    query, synthesizer = QueryBundle(QUESTION), CitingSynthesizer(ScriptedLLM([OK]))
    nodes = ScoreGate(min_score=0.5).postprocess_nodes(SOURCES, query)
    response = await synthesizer.asynthesize(query, nodes) if in_async else synthesizer.synthesize(query, nodes)
    own = (SelectionEvent, SynthesizeStartEvent, GroundedEndEvent, SynthesizeEndEvent)
    assert [type(event) for event in listener.seen if isinstance(event, own)] == list(own)
    selection = next(event for event in listener.seen if isinstance(event, SelectionEvent))
    assert (selection.stage, selection.received, selection.returned) == ("ScoreGate", 2, 2)
    assert [decision["reason"] for decision in selection.decisions] == ["best_score"]
    end = next(event for event in listener.seen if isinstance(event, SynthesizeEndEvent))
    assert end.response is response
    mine = next(event for event in listener.seen if isinstance(event, GroundedEndEvent))
    assert mine.audit == grounded(response).audit()
    assert grounded(response).answer == OK["answer"]


def test_a_refusal_without_a_call_is_reported_too(listener: _Listener) -> None:
    """Also where no model is called, start and end are events, and the log record has the reason."""
    CitingSynthesizer(ScriptedLLM([OK])).synthesize(QUESTION, [])
    audits = [event.audit for event in listener.seen if isinstance(event, GroundedEndEvent)]
    assert [audit["refusal"] for audit in audits] == ["no_evidence"]
    assert sum(isinstance(event, SynthesizeEndEvent) for event in listener.seen) == 1


@pytest.mark.parametrize("in_async", [False, True])
async def test_the_callback_event_frames_the_query(in_async: bool) -> None:
    """LlamaIndex's older callbacks get SYNTHESIZE with the question at its start and the response at its end."""
    debug = LlamaDebugHandler(print_trace_on_end=False)
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]), callback_manager=CallbackManager([debug]))
    if in_async:
        response: object = await synthesizer.asynthesize(QUESTION, SOURCES)
    else:
        response = synthesizer.synthesize(QUESTION, SOURCES)
    ((start, end),) = debug.get_event_pairs(CBEventType.SYNTHESIZE)
    assert (start.payload or {})[EventPayload.QUERY_STR] == QUESTION
    assert (end.payload or {})[EventPayload.RESPONSE] is response


def test_a_callback_manager_is_not_forced_on_the_model() -> None:
    """Setting a manager on the synthesizer leaves an LLM that other engines share as it is."""
    llm = ScriptedLLM([OK])
    before = llm.callback_manager
    synthesizer = CitingSynthesizer(llm, callback_manager=CallbackManager([]))
    synthesizer.callback_manager = CallbackManager([])
    assert llm.callback_manager is before


def test_the_model_is_looked_up_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `llm` the model of Settings counts, also one that is set after construction."""
    synthesizer = CitingSynthesizer()
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM([OK]))
    assert grounded(synthesizer.synthesize(QUESTION, SOURCES)).answerable


def test_no_model_is_needed_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without evidence nothing looks for a model, so a missing one is no error."""

    def missing() -> None:
        raise ImportError("no model here")

    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr("llama_index.core.settings.resolve_llm", lambda _: missing())
    assert not grounded(CitingSynthesizer().synthesize(QUESTION, [])).answerable


async def test_bare_texts_can_be_answered_from() -> None:
    """LlamaIndex's `get_response` over text chunks returns the text of the answer, sync and async."""
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]))
    assert synthesizer.get_response(QUESTION, ["Within 21 days."]) == OK["answer"]
    assert await synthesizer.aget_response(QUESTION, ["Within 21 days."]) == OK["answer"]
    assert synthesizer.get_response(QUESTION, []) == "I found nothing about this in the documents."


@pytest.mark.parametrize("question", ["", " \n", "\u200b\ufeff", QueryBundle("")])
async def test_a_blank_question_is_an_error(question: str | QueryBundle) -> None:
    """A blank question is a ValueError of the caller, sync and async, and calls no model."""
    llm = ScriptedLLM([OK])
    with pytest.raises(ValueError, match="blank"):
        CitingSynthesizer(llm).synthesize(question, SOURCES)
    with pytest.raises(ValueError, match="blank"):
        await CitingSynthesizer(llm).asynthesize(question, SOURCES)
    assert llm.prompts == []


def test_the_same_node_twice_is_two_sources() -> None:
    """Without a stage that removes repetitions, a node that comes twice is shown and citable twice."""
    reply = {**OK, "sources": ["S1", "S2"]}
    nodes = [SOURCES[0], SOURCES[0]]
    result = grounded(CitingSynthesizer(ScriptedLLM([reply])).synthesize(QUESTION, nodes))
    assert [(citation.key, citation.node_id) for citation in result.citations] == [("S1", "n0"), ("S2", "n0")]


def test_nodes_whose_metadata_can_not_be_compared_are_fine() -> None:
    """Arrays in metadata beside a blank node are no error."""
    import numpy as np

    metadata = [{"vector": np.arange(3)}, {"vector": np.arange(3)}]
    nodes = make_nodes(["Within 21 days.", ""], metadata=metadata)
    result = grounded(CitingSynthesizer(ScriptedLLM([OK])).synthesize(QUESTION, nodes))
    assert [source.node_id for source in result.sources] == ["n0"]


def test_a_reused_query_bundle_carries_nothing_over() -> None:
    """Two queries with one bundle see their own decisions, and the bundle stays what it was."""
    query, synthesizer = QueryBundle(QUESTION), CitingSynthesizer(ScriptedLLM([OK]))
    results: list[GroundedResult] = []
    for texts in (["One.", "word " * 200], ["Two."], []):
        packed = TokenBudget(max_tokens=60).postprocess_nodes(make_nodes(texts), query)
        results.append(grounded(synthesizer.synthesize(query, packed)))
    assert [[decision.reason for decision in result.decisions] for result in results] == [["over_budget"], [], []]
    assert results[2].refusal is not None
    assert results[2].refusal.reason == "no_evidence"
    assert query == QueryBundle(QUESTION)


def test_a_gift_card_can_not_be_turned_into_cash() -> None:
    """A "no" with a valid source is an answer with a citation, not a refusal."""
    reply = {"verdict": "no", "sources": ["S1"], "answer": "No, a gift card can not be turned into cash [S1]."}
    nodes: list[NodeWithScore] = make_nodes(
        ["Gift cards cannot be turned into cash."], metadata={"document_id": "gift-cards"}
    )
    response = CitingSynthesizer(ScriptedLLM([reply])).synthesize("Can I turn my gift card into cash?", nodes)
    result = grounded(response)
    assert (result.answerable, result.verdict, result.refusal) == (True, "no", None)
    assert [citation.document_id for citation in result.citations] == ["gift-cards"]
    assert str(response) == reply["answer"]
