"""The engine: a one-line swap for CitationQueryEngine, strict about its options, and at home in other engines."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from llama_index.core import MockEmbedding, PromptTemplate, Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

from llama_index_grounded import (
    CitingSynthesizer,
    GroundedQueryEngine,
    GroundedResponse,
    ScopedDedup,
    ScoreGate,
    default_postprocessors,
)
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.testing import ScriptedLLM

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
QUESTION = "How many days do I have to return a book?"
TEXTS = {
    "returns": "Return a book within 21 days.",
    "gifts": "Gift cards cannot be turned into cash.",
    "shipping": "Shipping takes two to four days.",
    "points": "Points are valid for 24 months.",
}


class WordEmbedding(MockEmbedding):
    """Counts a few words, so that texts that share them are close; it notes what it was asked."""

    embed_dim: int = 5
    _asked: list[str] = PrivateAttr(default_factory=list[str])

    def __init__(self) -> None:
        super().__init__(embed_dim=5)

    @property
    def asked(self) -> list[str]:
        """The queries that were embedded."""
        return self._asked

    def _get_text_embedding(self, text: str) -> list[float]:
        found = text.lower()
        return [0.1, *(float(found.count(word)) for word in ("return", "gift", "shipping", "point"))]

    def _get_query_embedding(self, query: str) -> list[float]:
        self._asked.append(query)
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def make_index(embedding: WordEmbedding | None = None) -> VectorStoreIndex:
    """Index four short texts."""
    nodes = [
        TextNode(id_=name, text=text, metadata={"topic": name, "doc": f"doc-{name}"}) for name, text in TEXTS.items()
    ]
    return VectorStoreIndex(nodes, embed_model=embedding or WordEmbedding())


def answer(engine: Any, question: str = QUESTION) -> GroundedResponse:
    """Ask an engine and return its response."""
    response = engine.query(question)
    assert isinstance(response, GroundedResponse)
    return response


def snippet(engine_class: Any, index: VectorStoreIndex, llm: ScriptedLLM) -> tuple[RESPONSE_TYPE, list[str]]:
    """Code that a team may have around CitationQueryEngine, word for word."""
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value="returns")])
    query_engine = engine_class.from_args(index, llm=llm, similarity_top_k=2, filters=filters)
    response = query_engine.query(QUESTION)
    lines = [
        f"{source.score:.2f} {source.node.get_content()} {source.node.metadata['topic']}"
        for source in response.source_nodes
    ]
    return response, [str(response), *lines, response.get_formatted_sources()]


def test_the_same_snippet_runs_with_both_classes() -> None:
    """What ran with CitationQueryEngine runs unchanged with ours, and then has citations."""
    index = make_index()
    before, their_lines = snippet(CitationQueryEngine, index, ScriptedLLM(["Within 21 days [1]."]))
    after, our_lines = snippet(GroundedQueryEngine, index, ScriptedLLM([OK]))
    assert not hasattr(before, "citations")
    assert isinstance(after, GroundedResponse)
    assert [citation.node_id for citation in after.citations] == ["returns"]
    assert len(their_lines) == len(our_lines)
    assert "Return a book" in their_lines[1]
    assert our_lines[1].endswith("Return a book within 21 days. returns")


@pytest.mark.parametrize(
    "name, value", [("citation_chunk_size", 512), ("citation_chunk_overlap", 20), ("use_async", True)]
)
def test_options_that_mean_nothing_here_are_named(name: str, value: Any) -> None:
    """An option of CitationQueryEngine without a meaning here is accepted with a warning that says why."""
    with pytest.warns(UserWarning, match=f"{name} has no effect"):
        engine = GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK]), **{name: value})
    assert answer(engine).answerable


THEIRS = {
    name: each.default
    for name, each in inspect.signature(CitationQueryEngine.from_args).parameters.items()
    if each.kind is not each.VAR_KEYWORD and name not in ("index", "llm")
}


@pytest.mark.filterwarnings("ignore:.* has no effect")
@pytest.mark.parametrize("name", sorted(THEIRS))
def test_every_option_of_the_other_class_is_known(name: str) -> None:
    """Each keyword of CitationQueryEngine.from_args, with its own default, builds an engine that answers."""
    engine = GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK]), **{name: THEIRS[name]})
    assert answer(engine).answerable


@pytest.mark.parametrize(
    "misspelt, meant",
    [
        ("similarity_topk", "similarity_top_k"),
        ("filter", "filters"),
        ("minscore", "min_score"),
        ("on_eror", "on_error"),
    ],
)
def test_a_misspelt_option_is_refused(misspelt: str, meant: str) -> None:
    """An option that neither engine, synthesizer nor retriever knows is a TypeError that names it and its neighbour."""
    options: dict[str, Any] = {misspelt: 1}
    with pytest.raises(TypeError, match=rf"unknown options: {misspelt} \(did you mean {meant}\?\);"):
        GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK]), **options)


@pytest.mark.parametrize("name", ["xyzzy", "option", "options", "retriever_mode"])
def test_an_option_like_no_other_is_refused(name: str) -> None:
    """Without a neighbour it is named alone, and nothing is offered that the index sets itself."""
    options: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=f"unknown options: {name}; VectorIndexRetriever takes ") as caught:
        GroundedQueryEngine.from_args(make_index(), ScriptedLLM([OK]), **options)
    assert "node_ids" not in str(caught.value)


def test_an_index_may_take_what_others_set_themselves() -> None:
    """An index that declares ``node_ids`` gets them."""

    class Mine(VectorStoreIndex):
        def as_retriever(self, node_ids: list[str] | None = None, **options: Any) -> VectorIndexRetriever:
            return VectorIndexRetriever(self, node_ids=node_ids, **options)

    nodes = [TextNode(id_=name, text=f"Text of {name}.") for name in "ab"]
    index = Mine(nodes, embed_model=MockEmbedding(embed_dim=4))
    response = GroundedQueryEngine.from_args(index, ScriptedLLM([OK]), node_ids=["b"]).query("Which?")
    assert [source.node_id for source in response.grounded.sources] == ["b"]


def test_options_reach_their_parts() -> None:
    """Top k, filters, gate, budget and the synthesizer's options all have their effect in one call."""
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value="returns")])
    engine = GroundedQueryEngine.from_args(
        make_index(), ScriptedLLM([OK]), similarity_top_k=4, filters=filters, url_for="/{node_id}", min_score=0.5
    )
    response = answer(engine)
    assert [source.url for source in response.grounded.sources] == ["/returns"]
    assert response.grounded.decisions[0].stage == "ScoreGate"
    assert response.citations[0].score == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("limits, kept", [({}, 4), ({"top_n": 2}, 2), ({"max_tokens": 40}, 2), ({"max_tokens": 20}, 1)])
def test_limits_bound_what_is_shown(limits: dict[str, Any], kept: int) -> None:
    """Source nodes are what fitted; the others are decisions, and nobody is lost."""
    llm = ScriptedLLM([OK])
    response = answer(GroundedQueryEngine.from_args(make_index(), llm, similarity_top_k=4, **limits))
    assert len(response.source_nodes) == llm.prompts[0].count("<source id=") == kept
    gone = {decision.node_id for decision in response.grounded.decisions if decision.action == "dropped"}
    assert gone | {scored.node.node_id for scored in response.source_nodes} == set(TEXTS)


def test_a_question_below_the_threshold_calls_no_model() -> None:
    """A gate above the best score refuses before the model is asked."""
    llm = ScriptedLLM([OK])
    response = answer(GroundedQueryEngine.from_args(make_index(), llm, min_score=0.9), "Is there a café?")
    assert (response.refusal and response.refusal.reason, llm.prompts) == ("low_score", [])


async def test_an_empty_corpus_is_no_evidence() -> None:
    """An index without nodes gives the refusal no_evidence, sync and async, and calls no model."""
    llm = ScriptedLLM([OK])
    engine = GroundedQueryEngine.from_args(VectorStoreIndex([], embed_model=WordEmbedding()), llm, min_score=0.1)
    for response in (engine.query(QUESTION), await engine.aquery(QUESTION)):
        assert isinstance(response, GroundedResponse)
        assert (response.refusal and response.refusal.reason, response.source_nodes) == ("no_evidence", [])
    assert llm.prompts == []


async def test_a_blank_question_is_refused_before_it_is_embedded() -> None:
    """The engine raises ValueError, and neither embedding nor model is asked."""
    embedding, llm = WordEmbedding(), ScriptedLLM([OK])
    engine = GroundedQueryEngine.from_args(make_index(embedding), llm)
    with pytest.raises(ValueError, match="blank"):
        engine.query("  ")
    with pytest.raises(ValueError, match="blank"):
        await engine.aquery("")
    assert (embedding.asked, llm.prompts) == ([], [])


def test_custom_field_names_reach_the_usual_chain() -> None:
    """`keys` given to the engine, or on a synthesizer that is given to it, name the fields for all stages."""
    keys, llm = MetadataKeys(document_id="doc"), ScriptedLLM([OK])
    for engine in (
        GroundedQueryEngine.from_args(make_index(), llm, keys=keys),
        GroundedQueryEngine.from_args(make_index(), response_synthesizer=CitingSynthesizer(llm, keys=keys)),
    ):
        assert answer(engine).citations[0].document_id == "doc-returns"


def test_options_of_an_indexs_own_retriever_are_known() -> None:
    """An index whose retriever is chosen by an option, such as SummaryIndex, takes that option."""
    index = SummaryIndex([TextNode(text="Return a book within 21 days.")])
    assert answer(GroundedQueryEngine.from_args(index, ScriptedLLM([OK]), retriever_mode="default")).answerable


def test_parts_can_be_given_ready_made() -> None:
    """A retriever, a synthesizer and postprocessors of one's own take the places of the built ones."""
    index, llm = make_index(), ScriptedLLM([OK])
    engine = GroundedQueryEngine.from_args(
        retriever=index.as_retriever(similarity_top_k=3),
        response_synthesizer=CitingSynthesizer(llm, language="tr"),
        node_postprocessors=[ScopedDedup(), ScoreGate(min_score=2.0)],
    )
    assert str(answer(engine)) == "Belgelerde soruya yeterince uyan bir şey bulamadım."


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"index": "i", "response_synthesizer": "s", "llm": "l"},
        {"index": "i", "response_synthesizer": "s", "language": "tr"},
        {"index": "i", "node_postprocessors": [], "min_score": 0.5},
        {"index": "i", "node_postprocessors": [], "top_n": 2},
        {"index": "i", "response_synthesizer": "core"},
        {"retriever": "r", "llm": "l", "similarity_top_k": 3},
    ],
    ids=lambda options: ",".join(options) or "nothing",
)
def test_a_combination_that_can_not_work_is_refused(options: dict[str, Any]) -> None:
    """Missing parts, parts given twice and a synthesizer that is not ours fail at construction."""
    llm, index = ScriptedLLM([OK]), make_index()
    parts: dict[str, Any] = {"i": index, "l": llm, "r": index.as_retriever()}
    parts |= {"s": CitingSynthesizer(llm), "core": get_response_synthesizer(llm=llm)}
    ready = {name: parts.get(value, value) if isinstance(value, str) else value for name, value in options.items()}
    with pytest.raises((ConfigurationError, TypeError)):
        GroundedQueryEngine.from_args(**ready)


@pytest.fixture
def default_llm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default model, which LlamaIndex's own engines look up though they have a synthesizer. It answers nothing."""
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM([RuntimeError("not to be called")]))


def engines() -> dict[str, Any]:
    """The ways in which a query engine with our synthesizer can be built or wrapped."""
    index, llm = make_index(), ScriptedLLM([OK])
    stages: list[Any] = list(default_postprocessors(min_score=0.3, max_tokens=500))
    synthesizer = CitingSynthesizer(llm)
    plain = index.as_query_engine(similarity_top_k=2, node_postprocessors=stages, response_synthesizer=synthesizer)
    chooser = ScriptedLLM(['[{"choice": 1, "reason": "It is about returns."}]'])
    tool = QueryEngineTool.from_defaults(plain, name="help", description="Help pages.")
    return {
        "as_query_engine": plain,
        "RetrieverQueryEngine": RetrieverQueryEngine(
            index.as_retriever(), response_synthesizer=synthesizer, node_postprocessors=stages
        ),
        "from_args": RetrieverQueryEngine.from_args(
            index.as_retriever(), response_synthesizer=synthesizer, node_postprocessors=stages
        ),
        "TransformQueryEngine": TransformQueryEngine(
            plain, HyDEQueryTransform(llm=ScriptedLLM(["Return it within days."]), include_original=True)
        ),
        "RouterQueryEngine": RouterQueryEngine(LLMSingleSelector.from_defaults(llm=chooser), [tool], llm=llm),
    }


@pytest.mark.parametrize(
    "name", ["as_query_engine", "RetrieverQueryEngine", "from_args", "TransformQueryEngine", "RouterQueryEngine"]
)
@pytest.mark.usefixtures("default_llm")
async def test_every_engine_hands_the_result_on(name: str) -> None:
    """Built or wrapped by LlamaIndex's own engines, sync and async, the response is ours with its citation."""
    engine = engines()[name]
    for response in (engine.query(QUESTION), await engine.aquery(QUESTION)):
        assert isinstance(response, GroundedResponse)
        assert [citation.node_id for citation in response.citations] == ["returns"]
        assert response.metadata is not None
        assert response.metadata["grounded"]["answerable"]


@pytest.mark.usefixtures("default_llm")
def test_a_tool_keeps_the_result_beside_its_text() -> None:
    """An agent's tool gives the model the text, and the caller the response with its citations."""
    tool = QueryEngineTool.from_defaults(engines()["as_query_engine"], name="help", description="Help pages.")
    output = tool.call(QUESTION)
    assert output.content == OK["answer"]
    assert isinstance(output.raw_output, GroundedResponse)
    assert output.raw_output.citations[0].key == "S1"


@pytest.mark.usefixtures("default_llm")
def test_our_synthesizer_works_inside_citation_query_engine() -> None:
    """Inside CitationQueryEngine, which cuts nodes again, the citations are of what was shown."""
    engine = CitationQueryEngine.from_args(make_index(), response_synthesizer=CitingSynthesizer(ScriptedLLM([OK])))
    response = answer(engine)
    assert response.citations[0].node_id == response.source_nodes[0].node.node_id


def test_the_prompt_is_reached_through_the_engine() -> None:
    """The template is listed and replaced under the engine's usual name."""
    llm = ScriptedLLM([OK])
    engine = GroundedQueryEngine.from_args(make_index(), llm)
    name = "response_synthesizer:text_qa_template"
    assert "{context_str}" in engine.get_prompts()[name].get_template()
    engine.update_prompts({name: PromptTemplate("New rules. {context_str} {query_str}")})
    answer(engine)
    assert "New rules." in llm.prompts[0]
