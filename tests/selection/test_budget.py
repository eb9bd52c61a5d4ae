"""What fits is counted as it will be sent, to the token, and a limit that can not work is an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from tiktoken import Encoding

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.selection import AttentionReorder, TokenBudget
from llama_index_grounded.testing import ScriptedLLM, check_postprocessor, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.selection.parts import LONG, ids, node_lists, seen

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
