"""A budget for a synthesizer counts the whole prompt, and knows when it can not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import ValidationError

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.selection import TokenBudget
from llama_index_grounded.selection.allowance import safety_margin
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.selection.parts import LONG, bodies, ids, repickled, room_for

QUERY = QueryBundle("How many days do I have to return a book?")
REPLY = {"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}


def planned(synthesizer: CitingSynthesizer, nodes: list[NodeWithScore]) -> int:
    """Return the tokens of the whole prompt over these nodes."""
    return synthesizer.preview(QUERY.query_str, nodes).tokens


@pytest.mark.parametrize("counter", [TokenCounter(), TokenCounter(margin=1.2, overhead=30)], ids=str)
@pytest.mark.parametrize("question_position", ["before", "after", "both"])
def test_a_prompt_exactly_at_the_window_fits(counter: TokenCounter, question_position: Any) -> None:
    """With no reserve, a window of prompt plus reply admits every node, and one token less costs the last one."""
    llm = ScriptedLLM(replies=[REPLY], context_window=100_000)
    synthesizer = CitingSynthesizer(llm, counter=counter, num_output=300, question_position=question_position)
    nodes = make_nodes(LONG)
    exact = planned(synthesizer, nodes) + 300
    for window, count in ((exact, 4), (exact - 1, 3)):
        budget = TokenBudget.for_synthesizer(synthesizer, context_window=window, safety_margin=0)
        kept = budget.postprocess_nodes(nodes, QUERY)
        assert ids(kept) == ["n0", "n1", "n2", "n3"][:count]
        assert planned(synthesizer, kept) + 300 <= window


def test_the_model_s_own_window_and_the_default_reserve() -> None:
    """Without a window the LLM is asked; the reserve is the larger of 256 tokens and 5 %; history takes room."""
    assert (safety_margin(2_000), safety_margin(8_192), safety_margin(100_000)) == (256, 409, 5_000)
    llm = ScriptedLLM(replies=[REPLY], context_window=4_000)
    synthesizer = CitingSynthesizer(llm, counter=TokenCounter(), num_output=300)
    nodes = make_nodes(LONG)
    room = 4_000 - 300 - 256 - planned(synthesizer, nodes)
    for history, count in ((room, 4), (room + 1, 3)):
        budget = TokenBudget.for_synthesizer(synthesizer, history_tokens=history)
        assert len(budget.postprocess_nodes(nodes, QUERY)) == count


def test_a_window_without_room_for_evidence_is_a_refusal() -> None:
    """The question is never cut: nothing is admitted, and the decision tells what is needed and what there is."""
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=[REPLY]), counter=TokenCounter(), num_output=256)
    budget = TokenBudget.for_synthesizer(synthesizer, context_window=300, safety_margin=0)
    selection = budget.select(make_nodes(LONG), QUERY)
    assert selection.nodes == []
    assert {(d.action, d.reason, d.limit) for d in selection.decisions} == {("refused", "prompt_too_long", 44)}
    assert all(d.value is not None and d.value > 44 for d in selection.decisions)
    response = synthesizer.synthesize(QUERY, selection.nodes)
    assert (str(response.refusal and response.refusal.reason), response.grounded.llm_calls) == ("prompt_too_long", 0)


def test_both_limits_hold() -> None:
    """A budget for a synthesizer may have a limit of its own for the sources; the tighter one decides."""
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=[REPLY]), counter=TokenCounter())
    nodes = make_nodes(LONG)
    exact = room_for(*LONG[:2])
    budget = TokenBudget.for_synthesizer(synthesizer, max_tokens=exact, top_n=3)
    assert ids(budget.postprocess_nodes(nodes, QUERY)) == ["n0", "n1"]


@pytest.mark.parametrize(
    "lose",
    [
        repickled,
        lambda b: TokenBudget.from_dict(b.to_dict()),
        lambda b: TokenBudget.from_json(b.to_json()),
    ],
    ids=["pickle", "dict", "json"],
)
def test_a_lost_synthesizer_is_an_error_on_use(lose: Callable[[TokenBudget], TokenBudget]) -> None:
    """A budget whose synthesizer was lost on the way counts nothing silently."""
    budget = lose(TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM(replies=[REPLY]))))
    with pytest.raises(ConfigurationError, match="lost its synthesizer"):
        budget.postprocess_nodes(make_nodes(["text"]), QUERY)
    assert budget.postprocess_nodes([], QUERY) == []


@pytest.mark.parametrize(
    "share", [copy.copy, copy.deepcopy, lambda b: b.model_copy(update={"top_n": 1})], ids=["copy", "deepcopy", "update"]
)
def test_copies_share_the_synthesizer(share: Callable[[TokenBudget], TokenBudget]) -> None:
    """A copy within the process packs for the same synthesizer."""
    budget = share(TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM(replies=[REPLY])), top_n=1))
    assert bodies(budget.postprocess_nodes(make_nodes(["text", "more"]), QUERY)) == ["text"]


def test_a_prompt_can_not_be_counted_without_its_question() -> None:
    """A budget for a synthesizer says that it needs the query."""
    budget = TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM(replies=[REPLY])))
    with pytest.raises(ConfigurationError, match="query_bundle"):
        budget.postprocess_nodes(make_nodes(["text"]))


@pytest.mark.parametrize(
    "options",
    [{"counter": TokenCounter()}, {"renderer": XmlRenderer()}, {"safety_margin": -1}, {"context_window": 0}],
    ids=str,
)
def test_what_a_synthesizer_brings_can_not_be_overruled(options: dict[str, Any]) -> None:
    """Counter and renderer are the synthesizer's: giving others, or an impossible window, is an error."""
    with pytest.raises(ValidationError):
        TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM(replies=[REPLY])), **options)
