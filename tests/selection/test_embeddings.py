"""What is sent to an embedding model in a query: each text once, nothing that it fails on, and whose vectors count."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode

from llama_index_grounded import CitingSynthesizer, ScopedDedup, ScoreGate, TokenBudget
from llama_index_grounded.errors import MissingScoreError
from llama_index_grounded.selection import CombinedGate, NearDuplicateFilter, VectorSimilarity
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.selection.parts import Foreign, rewrap, run
from tests.selection.test_engine import answer
from tests.selection.test_signals import Counting

REPLY = {"verdict": "answered", "sources": ["S1"], "answer": "It is [S1]."}
QUESTION = "How many days?"


class Strict(Counting):
    """A model of another size, which fails on what real ones fail on."""

    letters: str = "abcde"

    def _embed(self, text: str) -> list[float]:
        text.encode()
        if not text.strip():
            raise ValueError("a blank text")
        return [1.0 + text.lower().count(letter) for letter in self.letters]


def gate(model: Any, **options: Any) -> ScoreGate:
    """Build a gate that lets everything pass."""
    return ScoreGate(min_score=-1, signal=VectorSimilarity(embed_model=model, **options))


def sizes(model: Counting) -> list[int]:
    """Return the number of texts in each request, a question counted as one."""
    return sorted(map(len, model.calls))


# What is sent


@given(texts=st.lists(st.text(st.characters(codec=None), max_size=8), min_size=1, max_size=6))
def test_any_text_can_be_compared(texts: list[str]) -> None:
    """Half surrogate pairs and blanks reach no model: each text is sent once, and a blank one has no value."""
    model = Strict()
    values = VectorSimilarity(embed_model=model).values(make_nodes(texts), QueryBundle("how \ud83d long"))
    assert all(value is None for value, text in zip(values, texts, strict=True) if not text.strip())
    sent = [text for call in model.calls for text in call]
    assert len(sent) == len(set(sent))
    assert len(model.calls) <= 2


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\ufeff", "\ud83d"])
def test_what_has_no_visible_text_is_not_embedded(blank: str) -> None:
    """Metadata alone makes no text: blank nodes and images without a text are missing scores."""
    model = Strict()
    image = NodeWithScore(node=ImageNode(id_="image", image_path="x.png", metadata={"title": "abc"}), score=0.5)
    nodes = [image, *make_nodes([blank, "abc"], metadata={"title": "a"})]
    values = VectorSimilarity(embed_model=model).values(nodes, QueryBundle(QUESTION))
    assert [value is None for value in values] == [True, True, False]
    assert sizes(model) == [1, 1]
    assert len(gate(model).select(nodes, QUESTION).nodes) == 3
    with pytest.raises(MissingScoreError):
        gate(model).select(nodes[:2], QUESTION)


@pytest.mark.parametrize(
    "count, options, requests",
    [
        (25, {}, [1, 25]),
        (2100, {}, [1, 52, 2048]),
        (70, {"embed_batch_size": 32}, [1, 6, 32, 32]),
        (70, {"embed_batch_size": 2048}, [1, 70]),
    ],
)
def test_a_request_is_never_larger_than_the_model_takes(count: int, options: Any, requests: list[int]) -> None:
    """One request for the list, up to LlamaIndex's limit or the batch size that somebody chose for the model."""
    model = Counting(**options)
    gate(model).select(make_nodes([f"abc {place}" for place in range(count)]), QUESTION)
    assert sizes(model) == requests


# What is not sent twice


@pytest.mark.parametrize("foreign", [False, True])
def test_two_gates_ask_one_model_once(foreign: bool) -> None:
    """Also behind somebody else's postprocessor; another model is asked for itself, and the next query asks anew."""
    model, other = Counting(), Strict()
    between = [Foreign(act=rewrap)] if foreign else []
    stages = [gate(model), *between, gate(model), gate(other)]
    for queries in (1, 2):
        run(stages, make_nodes(["abc", "abd"]), QueryBundle(QUESTION))
        assert sizes(model) == sizes(other) == sorted([1, 2] * queries)


def test_gates_that_are_combined_ask_one_model_once() -> None:
    """The two gates of a CombinedGate, and a gate behind it, share what the model said."""
    model = Counting()
    both = CombinedGate(gates=[gate(model), gate(model)], reject_when="any")
    run([both, gate(model)], make_nodes(["abc", "abd"]), QueryBundle(QUESTION))
    assert sizes(model) == [1, 2]


@pytest.mark.parametrize("filter_first", [False, True])
def test_a_gate_and_a_filter_ask_one_model_once(filter_first: bool) -> None:
    """What a gate was told serves the near-duplicate filter, and the other way round; the budget asks for nothing."""
    model = Counting()
    stages: list[Any] = [gate(model), NearDuplicateFilter(method="embedding", embed_model=model)]
    stages = [*(reversed(stages) if filter_first else stages), TokenBudget(max_tokens=30)]
    run(stages, make_nodes(["abc", "abd", "xyz"]), QueryBundle(QUESTION))
    assert sizes(model) == [1, 3]


def test_a_text_that_a_stage_has_changed_is_embedded_anew() -> None:
    """What the second gate sees of a shortened node is not what the first one has embedded, or the index."""
    model = Counting()
    twice = "The cab of our neighbours stands in the yard all day long."
    nodes = make_nodes([twice, f"{twice}\n\nBacon."], metadata={"document_id": "d"})
    run([gate(model), ScopedDedup(), gate(model)], nodes, QueryBundle(QUESTION))
    assert sizes(model) == [1, 1, 2]
    for scored in nodes:
        scored.node.embedding = [1.0, 0.0, 0.0]
    evidence = run([ScopedDedup()], nodes, QueryBundle(QUESTION))
    similarity = VectorSimilarity(embed_model=model)
    asked = QueryBundle(QUESTION, embedding=[1.0, 0.0, 0.0])
    (bacon,) = similarity.values(make_nodes(["Bacon."], metadata={"document_id": "d"}), asked)
    assert similarity.values(evidence, asked) == [1.0, bacon]


# Whose vectors count


def test_what_is_embedded_already_is_used() -> None:
    """A question and nodes that carry their vectors cost no call."""
    model = Counting()
    nodes = make_nodes(["x"])
    nodes[0].node.embedding = [1.0, 0.0]
    similar = ScoreGate(min_score=0.7, signal=VectorSimilarity(embed_model=model))
    assert similar.select(nodes, QueryBundle("q", embedding=[1.0, 1.0])).nodes
    assert not similar.select(nodes, QueryBundle("q", embedding=[0.0, 1.0])).nodes
    assert model.calls == []


@pytest.mark.parametrize(
    "options, model",
    [({}, Strict()), ({"use_carried": False}, Strict(letters="cde"))],
    ids=["other length", "other model of the same length"],
)
def test_a_model_that_is_not_that_of_the_index_judges_alone(options: Any, model: Counting) -> None:
    """Sync, where LlamaIndex leaves the question's vector on the bundle, and async agree on the best value."""
    texts = ["abc abc", "def def def", "cde"]
    index = VectorStoreIndex([TextNode(text=text) for text in texts], embed_model=Counting())
    llm = ScriptedLLM([REPLY])
    engine = index.as_query_engine(
        llm=llm, response_synthesizer=CitingSynthesizer(llm), node_postprocessors=[gate(model, **options)]
    )
    best = [answer(engine, "e?", in_async=in_async).grounded.top_score for in_async in (False, True)]
    alone = [VectorSimilarity(embed_model=model).values(make_nodes(texts), QueryBundle("e?"))]
    assert best[0] == best[1]
    assert best[0] in alone[0]


def test_nodes_with_vectors_of_another_model_are_embedded() -> None:
    """A list in which some nodes carry vectors of another length is compared in the model's own."""
    model = Strict()
    nodes = make_nodes(["abc", "e"])
    nodes[0].node.embedding = [1.0, 0.0]
    similarity = VectorSimilarity(embed_model=model)
    alone = similarity.values(make_nodes(["abc", "e"]), QueryBundle("e"))
    assert similarity.values(nodes, QueryBundle("e")) == alone
    assert similarity.values(nodes, QueryBundle("e", embedding=[0.0, 1.0])) == alone


def test_the_default_model_is_that_of_the_settings() -> None:
    """Without a model of its own the signal asks the application's."""
    before, Settings.embed_model = Settings._embed_model, Counting()
    try:
        asyncio.run(gate(None).apostprocess_nodes(make_nodes(["abc"]), QueryBundle(QUESTION)))
        model = Settings.embed_model
        assert isinstance(model, Counting)
        assert sizes(model) == [1, 1]
    finally:
        Settings._embed_model = before
