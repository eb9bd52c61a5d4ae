"""The window's own limit keeps the promises of a budget, and says where the tokens go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded import AttentionReorder, CitingSynthesizer, ScopedDedup, TokenBudget
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.evidence import included_text
from llama_index_grounded.history import ChatQuery
from llama_index_grounded.rendering import KeyValueRenderer, Renderer, XmlRenderer
from llama_index_grounded.selection import NearDuplicateFilter, PassageMerger, Stage
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.selection.parts import node_lists

QUESTION = "How long can I return a book?"
OK = {"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}
SHARED = "Unread printed books can be returned within twenty-one days of delivery to us."


def _synthesizer(window: int, num_output: int = 100) -> CitingSynthesizer:
    return CitingSynthesizer(ScriptedLLM([OK], context_window=window), num_output=num_output)


def _window_for(nodes: list[NodeWithScore]) -> int:
    """Return the smallest window into which these nodes fit."""
    return _synthesizer(100_000).preview(QUESTION, nodes).tokens + 100


def _long_and_short() -> list[NodeWithScore]:
    """Make a long node and a short one that share a paragraph."""
    fields = {"document_id": "returns", "section": "window"}
    return make_nodes([f"{SHARED}\n\n{'word ' * 400}", f"{SHARED}\n\nUnless the seal is broken."], metadata=fields)


def test_what_was_removed_for_a_node_that_does_not_fit_comes_back() -> None:
    """Without a budget, too, the paragraph that only the left-out node would have held is in the prompt."""
    nodes = _long_and_short()
    query = QueryBundle(QUESTION)
    deduplicated = ScopedDedup().postprocess_nodes(nodes, query)
    assert [SHARED in scored.text for scored in deduplicated] == [True, False]
    # A reranker puts the short one first, so that the long one goes.
    turned = AttentionReorder(placement="start").postprocess_nodes([deduplicated[1], deduplicated[0]], query)
    plan = _synthesizer(_window_for([nodes[1]])).preview(query, turned)
    assert [scored.node.node_id for scored in plan.nodes] == ["n1"]
    assert SHARED in plan.text
    decisions = [(each.node_id, each.action, each.reason) for each in plan.decisions if "Citing" in each.stage]
    assert decisions == [("n0", "dropped", "over_window"), ("n1", "restored", "twin_rejected")]
    assert plan.allowance is not None
    assert plan.tokens <= plan.allowance


CHAINS: list[list[Stage]] = [
    [ScopedDedup()],
    [PassageMerger()],
    [PassageMerger(), ScopedDedup(scope="document"), AttentionReorder()],
    [ScopedDedup(scope="global"), NearDuplicateFilter(), TokenBudget(max_tokens=150), AttentionReorder()],
]


@pytest.mark.parametrize("stages", CHAINS, ids=lambda stages: "+".join(type(stage).__name__ for stage in stages))
@pytest.mark.parametrize("renderer", [XmlRenderer(), KeyValueRenderer()], ids=lambda one: type(one).__name__)
@settings(max_examples=60)
@given(nodes=node_lists(same_section=True), share=st.floats(0.2, 1.0))
def test_the_source_nodes_hold_what_the_model_sees(
    stages: list[Stage], renderer: Renderer, nodes: list[NodeWithScore], share: float
) -> None:
    """However small the window, whatever comes back or is taken apart: citations refer to the text in the prompt."""

    def synthesizer(window: int) -> CitingSynthesizer:
        return CitingSynthesizer(ScriptedLLM([OK], context_window=window), renderer=renderer, num_output=100)

    at = 0
    for scored in nodes:
        node: Any = scored.node
        node.start_char_idx, node.end_char_idx = at, at + len(node.text)
        at += len(node.text)
    query = QueryBundle(QUESTION)
    chosen = nodes
    for stage in stages:
        chosen = stage.postprocess_nodes(chosen, query)
    whole = synthesizer(100_000).preview(QUESTION, nodes)
    sources = whole.shares.get("sources", 0)
    plan = synthesizer(100 + whole.tokens - sources + round(share * sources)).preview(query, chosen)
    shown = [text for _, text in renderer.recover(plan.text)]
    assert shown == [included_text(scored.node) for scored in plan.nodes]
    assert plan.allowance is None or plan.tokens <= plan.allowance


def test_a_node_that_dedup_dropped_comes_back_alone() -> None:
    """The only holder of a text does not fit, and the chunk that was dropped for it is answered from."""
    nodes = make_nodes([f"{SHARED}\n\n{'word ' * 400}", SHARED], metadata={"document_id": "returns"})
    for stages in ([ScopedDedup()], [ScopedDedup(), TokenBudget(max_tokens=900)]):
        query, chosen = QueryBundle(QUESTION), nodes
        for stage in stages:
            chosen = stage.postprocess_nodes(chosen, query)
        response: Any = _synthesizer(_window_for([nodes[1]])).synthesize(query, chosen)
        assert [scored.node.text for scored in response.source_nodes] == [SHARED]


@pytest.mark.parametrize("quote,status", [(SHARED, "passed"), ("word word word word", "failed")])
def test_a_quote_of_what_was_never_shown_fails(quote: str, status: str) -> None:
    """Checks look at the text in the prompt: the chunks of a passage that was taken apart are not in it."""
    nodes = make_nodes([f"{SHARED} ", "word " * 400], metadata={"document_id": "returns"})
    for scored, start in zip(nodes, (0, len(SHARED) + 1), strict=True):
        node: Any = scored.node
        node.start_char_idx, node.end_char_idx = start, start + len(node.text)
    reply = {"verdict": "answered", "sources": ["S1"], "claims": [{"sources": ["S1"], "quote": quote, "text": "So."}]}
    options: dict[str, Any] = {"output_cls": ClaimedAnswer, "checks": [QuoteCheck()], "num_output": 100}
    wide = CitingSynthesizer(ScriptedLLM([reply], context_window=100_000), **options)
    llm = ScriptedLLM([reply], context_window=wide.preview(QUESTION, nodes[:1]).tokens + 100)
    passages = PassageMerger().postprocess_nodes(nodes, query := QueryBundle(QUESTION))
    response: Any = CitingSynthesizer(llm, **options).synthesize(query, passages)
    assert (quote in llm.prompts[0]) == (status == "passed")
    assert [(check.name, check.status) for check in response.grounded.checks] == [("quotes", status)]


def test_a_window_that_is_full_without_sources_says_what_fills_it() -> None:
    """Nothing is sent, and the refusal names window, reply, what is kept free and the largest part of the prompt."""
    talk = [ChatMessage(role="user", content="long " * 3000)]
    for query, largest in (
        (QueryBundle("why? " * 2000), "rules and question"),
        (ChatQuery("Why?", history=talk), "history"),
    ):
        synthesizer = _synthesizer(2000, 500)
        packed = TokenBudget.for_synthesizer(synthesizer).postprocess_nodes(make_nodes(["text"]), query)
        plan = synthesizer.preview(query, packed)
        assert plan.refusal is not None
        assert plan.refusal.reason == "prompt_too_long"
        told = (
            "no room for a source: of a window of 2000 tokens the reply takes 500, 256 are kept free, and the rest of "
        )
        assert plan.refusal.detail.startswith(f"{told}the prompt needs ")
        assert f"({largest} " in plan.refusal.detail
        assert plan.shares[largest] > 2000
        assert (plan.window, plan.allowance, plan.kept_free, plan.tokens) == (2000, 1500, 256, 0)
        response: Any = synthesizer.synthesize(query, packed)
        assert response.grounded.refusal == plan.refusal
        assert response.grounded.llm_calls == 0


@pytest.mark.parametrize("options", [{"max_tokens": 20}, {"max_tokens": 20, "top_n": 1}], ids=["tokens", "both"])
def test_sources_that_are_all_too_large_say_how_large(options: dict[str, int]) -> None:
    """Where a budget has room but not for one source, the refusal names the smallest and what there was."""
    query = QueryBundle(QUESTION)
    nodes = make_nodes(["word " * 60, "word " * 40])
    packed = TokenBudget(**options).postprocess_nodes(nodes, query)  # type: ignore[arg-type]
    plan = _synthesizer(4000).preview(query, packed)
    assert plan.refusal is not None
    assert plan.refusal.reason == "prompt_too_long"
    assert plan.refusal.detail.startswith("not one source fits: the smallest takes 5")
    assert plan.refusal.detail.endswith(" tokens, and there are 20")


def test_a_preview_names_the_window_and_what_is_kept_free() -> None:
    """Window, reply, what the budget keeps free and the prompt add up to no more than the window."""
    synthesizer = _synthesizer(2000, 500)
    budget = TokenBudget.for_synthesizer(synthesizer, safety_margin=100, note_tokens=40, history_tokens=7)
    query = QueryBundle(QUESTION)
    plan = synthesizer.preview(query, budget.postprocess_nodes(make_nodes(["word " * 900, "word " * 90]), query))
    assert (plan.window, plan.kept_free, plan.shares["reply"]) == (2000, 147, 500)
    assert plan.allowance == 1500
    assert plan.tokens <= plan.allowance - plan.kept_free
    assert plan.tokens == TokenCounter().estimate(sum(plan.shares.values()) - plan.shares["reply"])
    assert synthesizer.preview(query, make_nodes(["word"])).kept_free == 0


def test_thousands_of_nodes_fit_in_a_moment() -> None:
    """Time grows with the number of nodes and not with its square: a second for four thousand on a busy machine."""
    nodes = make_nodes([f"Shelf {place}. " + "word " * 20 for place in range(4000)])
    plan = _synthesizer(4000).preview(QUESTION, nodes)
    assert 0 < len(plan.nodes) < 150
    assert sum(each.reason == "over_window" for each in plan.decisions) == 4000 - len(plan.nodes)


def test_a_best_node_that_is_too_large_makes_room_for_a_smaller_one() -> None:
    """Where not even the best node fits, smaller ones behind it are shown, and both are reported."""
    nodes = make_nodes(["big " * 900, "small text that fits well", "big " * 800])
    plan = _synthesizer(_window_for([nodes[1]])).preview(QUESTION, nodes)
    assert [scored.node.node_id for scored in plan.nodes] == ["n1"]
    assert {(each.node_id, each.reason) for each in plan.decisions} == {("n0", "over_window"), ("n2", "over_window")}


def test_a_window_with_room_but_not_for_one_source_says_so() -> None:
    """The refusal names the smallest source, and not the rest of the prompt, which is not at fault."""
    nodes = make_nodes(["big " * 900, "big " * 800])
    plan = _synthesizer(_window_for(make_nodes(["small text"]))).preview(QUESTION, nodes)
    assert plan.refusal is not None
    assert plan.refusal.detail.startswith("not one source fits: the smallest takes 81")


class _Counting(CitingSynthesizer):
    """Counts how often it is asked for the window."""

    asked = 0

    def context_window(self) -> int:
        """Count, and say what the model says."""
        self.asked += 1
        return super().context_window()


@pytest.mark.parametrize("text", ["text", "word " * 9000], ids=["fits", "too large"])
def test_a_budget_asks_for_the_window_once(text: str) -> None:
    """The window may have to come from a server: one look serves the limit and what the plan is told of it."""
    synthesizer = _Counting(ScriptedLLM([OK], context_window=2000), num_output=100)
    TokenBudget.for_synthesizer(synthesizer).postprocess_nodes(make_nodes([text]), QueryBundle(QUESTION))
    assert synthesizer.asked == 1
