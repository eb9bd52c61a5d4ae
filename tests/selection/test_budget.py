"""What fits is counted as it will be sent, to the token, and a limit that can not work is an error."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from pydantic import ValidationError
from tiktoken import Encoding

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.selection import AttentionReorder, TokenBudget
from llama_index_grounded.selection.allowance import safety_margin
from llama_index_grounded.testing import ScriptedLLM, check_postprocessor, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.selection.parts import LONG, bodies, ids, node_lists, repickled, seen

QUERY = QueryBundle("How many days do I have to return a book?")
REPLY = {"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}
COUNTERS = st.sampled_from(
    [
        TokenCounter(),
        TokenCounter(margin=1.3, overhead=7),
        TokenCounter(encoding="cl100k_base"),
        TokenCounter(tokenizer=list),
    ]
)


def size(nodes: list[NodeWithScore], counter: TokenCounter) -> int:
    """Count the sources as one rendered text."""
    return counter.count(XmlRenderer().render(nodes).text)


def why(selection: Any) -> list[tuple[str, str, str]]:
    """Return action, reason and node of each decision."""
    return [(d.action, d.reason, d.node_id) for d in selection.decisions]


# Laws


@given(nodes=node_lists(), limit=st.integers(1, 300), top_n=st.none() | st.integers(1, 4), counter=COUNTERS)
def test_the_pack_is_the_greedy_one(
    nodes: list[NodeWithScore], limit: int, top_n: int | None, counter: TokenCounter
) -> None:
    """A node is admitted exactly if it fits after the better-ranked ones, counted as one rendered text."""
    expected: list[NodeWithScore] = []
    for scored in nodes:
        fits = size([*expected, scored], counter) <= limit and (top_n is None or len(expected) < top_n)
        if fits and scored.node.get_content().strip() and counter.estimate(1) <= limit:
            expected.append(scored)
    selection = TokenBudget(max_tokens=limit, top_n=top_n, counter=counter).select(nodes)
    assert seen(selection.nodes) == seen(expected)
    gone = [d.node_id for d in selection.decisions if d.action in ("dropped", "refused")]
    assert sorted(ids(selection.nodes) + gone) == sorted(ids(nodes))


@given(nodes=node_lists(), limit=st.integers(1, 200), more=st.integers(1, 200))
def test_a_budget_that_stops_only_grows_with_its_limit(nodes: list[NodeWithScore], limit: int, more: int) -> None:
    """With ``on_oversize="stop"`` a larger limit admits the same nodes and perhaps further ones."""
    small = TokenBudget(max_tokens=limit, on_oversize="stop").postprocess_nodes(nodes)
    large = TokenBudget(max_tokens=limit + more, on_oversize="stop").postprocess_nodes(nodes)
    assert seen(large)[: len(small)] == seen(small)


def test_a_budget_that_skips_is_not_monotone() -> None:
    """Room for a large node can cost two small ones behind it: that is the price of rank order, not a fault."""
    nodes = make_nodes(["word " * 60, "one", "two"])
    small, large = size(nodes[1:], TokenCounter()), size(nodes[:1], TokenCounter())
    assert ids(TokenBudget(max_tokens=small).postprocess_nodes(nodes)) == ["n1", "n2"]
    assert ids(TokenBudget(max_tokens=large).postprocess_nodes(nodes)) == ["n0"]


@given(nodes=node_lists(), counter=COUNTERS)
def test_exactly_at_the_limit_fits_and_one_token_over_does_not(
    nodes: list[NodeWithScore], counter: TokenCounter
) -> None:
    """A limit of just the rendered size admits every node; one token less costs one."""
    nodes = [scored for scored in nodes if scored.node.get_content().strip()]
    if nodes:
        exact = size(nodes, counter)
        assert len(TokenBudget(max_tokens=exact, counter=counter).postprocess_nodes(nodes)) == len(nodes)
        assert len(TokenBudget(max_tokens=exact - 1, counter=counter).postprocess_nodes(nodes)) < len(nodes)


@pytest.mark.parametrize(
    "options", [{"max_tokens": 60}, {"top_n": 2}, {"max_tokens": 60, "on_oversize": "stop"}], ids=str
)
def test_the_laws_of_a_rewrite(options: dict[str, Any]) -> None:
    """The stage keeps the laws of its kind."""
    check_postprocessor(lambda: TokenBudget(**options))


# Cases


def test_skipping_and_stopping() -> None:
    """What does not fit is skipped and a later node may fit, or ends the packing; numbers are in prompt tokens."""
    nodes = make_nodes(["one", "word " * 90, "two"])
    counter = TokenCounter(margin=1.5, overhead=10)
    both, large = size([nodes[0], nodes[2]], counter), size(nodes[:2], counter)
    skipped = TokenBudget(max_tokens=both, counter=counter).select(nodes)
    assert ids(skipped.nodes) == ["n0", "n2"]
    (decision,) = skipped.decisions
    assert (decision.action, decision.reason, decision.node_id) == ("dropped", "over_budget", "n1")
    assert decision.value == large - size(nodes[:1], counter)
    assert decision.limit == both - size(nodes[:1], counter)
    stopped = TokenBudget(max_tokens=both, counter=counter, on_oversize="stop").select(nodes)
    assert ids(stopped.nodes) == ["n0"]
    assert why(stopped) == [("dropped", "over_budget", "n1"), ("dropped", "over_budget", "n2")]


def test_top_n_counts_admitted_nodes() -> None:
    """``top_n`` limits what is admitted, not what is looked at."""
    selection = TokenBudget(max_tokens=60, top_n=2).select(make_nodes(["word " * 90, "one", "", "two", "three"]))
    assert ids(selection.nodes) == ["n1", "n3"]
    assert why(selection)[1:] == [("dropped", "empty_text", "n2"), ("dropped", "top_n", "n4")]


def test_nodes_without_text_take_no_place() -> None:
    """Images and texts of white space or invisible characters are left out and reported."""
    image = NodeWithScore(node=ImageNode(id_="image", text=""))
    selection = TokenBudget(top_n=1).select([image, *make_nodes([" \n", "\u200b", "text"])])
    assert ids(selection.nodes) == ["n2"]
    assert why(selection) == [("dropped", "empty_text", name) for name in ("image", "n0", "n1")]


def test_attributes_count_as_they_are_rendered() -> None:
    """A title takes room, and metadata that the user keeps away from the model does not."""
    nodes = make_nodes(["text"], metadata={"title": "A long title of many words", "secret": "word " * 500})
    exact = size(nodes, TokenCounter())
    assert TokenBudget(max_tokens=exact).postprocess_nodes(nodes)
    assert not TokenBudget(max_tokens=exact - 1).postprocess_nodes(nodes)
    nodes[0].node.excluded_llm_metadata_keys = ["title"]
    assert TokenBudget(max_tokens=exact - 1).postprocess_nodes(nodes)


def test_a_text_like_a_special_token_is_counted_as_text() -> None:
    """Special tokens have no special size, offline and with the bundled encoding."""
    nodes = make_nodes(["see <|endoftext|> here"])
    assert size(nodes, TokenCounter()) == TokenCounter().count(
        '<source id="S1">\nsee &lt;|endoftext|> here\n</source>\n'
    )
    assert TokenBudget(max_tokens=size(nodes, TokenCounter())).postprocess_nodes(nodes)


def test_a_limit_under_the_overhead_refuses_for_the_prompt() -> None:
    """Where the overhead alone is over the limit, nothing could ever fit: that is said, with both numbers."""
    selection = TokenBudget(max_tokens=50, counter=TokenCounter(overhead=60)).select(make_nodes(["text"]))
    assert selection.nodes == []
    (decision,) = selection.decisions
    assert (decision.action, decision.reason) == ("refused", "prompt_too_long")
    assert (decision.value, decision.limit) == (61, 50)


def test_the_tokenizer_of_the_settings_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer that the user set in LlamaIndex counts, unless a counter is given."""
    nodes = make_nodes(["word " * 20])
    monkeypatch.setattr("llama_index.core.global_tokenizer", list)
    assert not TokenBudget(max_tokens=60).postprocess_nodes(nodes)
    assert TokenBudget(max_tokens=60, counter=TokenCounter()).postprocess_nodes(nodes)


# Each token is encoded once


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the texts that tiktoken encodes."""
    texts: Counter[str] = Counter()
    encode: Callable[[Encoding, str], list[int]] = Encoding.encode_ordinary

    def counting(encoding: Encoding, text: str) -> list[int]:
        texts[text] += 1
        return encode(encoding, text)

    monkeypatch.setattr(Encoding, "encode_ordinary", counting)
    return texts


def test_no_text_is_encoded_twice_in_a_query(encoded: Counter[str]) -> None:
    """Budget, order and synthesizer share the counts: each block and each part of the prompt is encoded once."""
    synthesizer = CitingSynthesizer(ScriptedLLM(replies=[REPLY]), counter=TokenCounter())
    stages = [TokenBudget.for_synthesizer(synthesizer, max_tokens=120), TokenBudget(top_n=3), AttentionReorder()]
    nodes = [*make_nodes([*LONG, "word " * 90]), *make_nodes(["last"], ids=["last"])]
    bundle = QueryBundle("How many days?")
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, bundle)
    synthesizer.synthesize(bundle, nodes)
    assert len(encoded) > len(nodes)
    assert max(encoded.values()) == 1


def test_a_tokenizer_of_ones_own_sees_every_block_with_its_true_key() -> None:
    """Where keys may differ in size, blocks are counted under the key that they would get, each text once."""
    texts: list[str] = []

    def characters(text: str) -> list[str]:
        texts.append(text)
        return list(text)

    counter = TokenCounter(tokenizer=characters)
    kept = TokenBudget(max_tokens=150, counter=counter).postprocess_nodes(make_nodes(["one", "word " * 90, "two"]))
    assert ids(kept) == ["n0", "n2"]
    assert [text[:16] for text in texts] == ['<source id="S1">', '<source id="S2">', '<source id="S2">']
    assert len(set(texts)) == 3


# The whole prompt


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
    exact = size(nodes[:2], TokenCounter())
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
    [
        {},
        {"max_tokens": 0},
        {"max_tokens": -1200},
        {"max_tokens": 12.5},
        {"max_tokens": "1200"},
        {"max_tokens": True},
        {"top_n": 0},
        {"max_token": 1200},
        {"max_tokens": 10, "on_oversize": "cut"},
        {"max_tokens": 10, "history_tokens": 5},
        {"max_tokens": 10, "context_window": 500},
        {"max_tokens": 10, "safety_margin": 5},
    ],
    ids=str,
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """A missing, negative, misspelt or misplaced limit is an error at construction, and a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each option has its own message
        TokenBudget(**options)


@pytest.mark.parametrize(
    "options",
    [{"counter": TokenCounter()}, {"renderer": XmlRenderer()}, {"safety_margin": -1}, {"context_window": 0}],
    ids=str,
)
def test_what_a_synthesizer_brings_can_not_be_overruled(options: dict[str, Any]) -> None:
    """Counter and renderer are the synthesizer's: giving others, or an impossible window, is an error."""
    with pytest.raises(ValidationError):
        TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM(replies=[REPLY])), **options)
