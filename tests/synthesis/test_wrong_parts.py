"""A part of another kind is refused where it is given, by the name of the argument, with what was expected and came."""

from __future__ import annotations

import re
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine, ScopedDedup
from llama_index_grounded.checks import NumberCheck
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.synthesis.test_query_engine import OK, make_index

LLM = ScriptedLLM([OK])
INDEX = make_index()
RETRIEVER = INDEX.as_retriever()
TEXT = "{context_str} {query_str}"
SYNTHESIZER = [
    ("text_qa_template", TEXT, "a prompt template of LlamaIndex, not str"),
    ("callback_manager", [], "a CallbackManager, not list"),
    ("checks", NumberCheck(), "a list of checks, not NumberCheck"),
    ("checks", "numbers", "a list of checks, not str"),
    ("checks", {"numbers": NumberCheck()}, "a list of checks, not dict"),
    ("keys", {"title": "name"}, "a MetadataKeys, not dict"),
    ("counter", len, "a TokenCounter, not builtin_function_or_method"),
    ("system_prompt", 3, "a text, not int"),
    ("callback_manager", CallbackManager, "a CallbackManager, not the class CallbackManager"),
]
ENGINE = [
    ("retriever", INDEX, "a retriever of LlamaIndex, not VectorStoreIndex"),
    ("retriever", type(RETRIEVER), "a retriever of LlamaIndex, not the class VectorIndexRetriever"),
    ("response_synthesizer", LLM, "a CitingSynthesizer, not ScriptedLLM"),
    ("node_postprocessors", ScopedDedup(), "a list of node postprocessors, not ScopedDedup"),
    ("node_postprocessors", {}, "a list of node postprocessors, not dict"),
    ("node_postprocessors", 3, "a list of node postprocessors, not int"),
    ("node_postprocessors[1]", [ScopedDedup(), None], "a node postprocessor of LlamaIndex, not NoneType"),
    ("node_postprocessors[0]", (ScopedDedup,), "a node postprocessor of LlamaIndex, not the class ScopedDedup"),
    ("node_postprocessors[0]", "dedup", "a node postprocessor of LlamaIndex, not str"),
    ("callback_manager", "x", "a CallbackManager, not str"),
]


def refused(name: str, wanted: str) -> Any:
    """Expect an error with exactly these words."""
    return pytest.raises(ConfigurationError, match=f"^{re.escape(f'{name} must be {wanted}')}$")


@pytest.mark.parametrize("name, value, wanted", SYNTHESIZER)
def test_a_synthesizer_refuses_it(name: str, value: Any, wanted: str) -> None:
    """At construction, whether the synthesizer is made alone or by the engine."""
    with refused(name, wanted):
        CitingSynthesizer(LLM, **{name: value})
    with refused(name, wanted):
        GroundedQueryEngine.from_args(INDEX, LLM, **{name: value})


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("other", [TextNode(text="bare"), "text", None], ids=["node", "text", "nothing"])
def test_nodes_come_with_their_scores(other: Any, place: int) -> None:
    """Stages and synthesizers take what retrievers hand out, and say so of anything else."""
    nodes: list[Any] = make_nodes(["Within 21 days."])
    nodes.insert(place, other)
    wanted = f"a NodeWithScore, not {type(other).__name__}"
    with refused("each of the nodes", wanted):
        CitingSynthesizer(LLM).synthesize("How long?", nodes)
    with refused("each of the nodes", wanted):
        CitingSynthesizer(LLM).preview("How long?", nodes)
    with refused("each of the nodes", wanted):
        ScopedDedup().select(nodes)


def test_a_text_can_not_take_the_place_of_the_template() -> None:
    """A template that is replaced later is looked at in the same way, and the one before stays."""
    synthesizer = CitingSynthesizer(LLM)
    before = synthesizer.get_prompts()
    texts: Any = {"text_qa_template": TEXT}
    with refused("text_qa_template", "a prompt template of LlamaIndex, not str"):
        synthesizer.update_prompts(texts)
    assert synthesizer.get_prompts() == before


@pytest.mark.parametrize("name, value, wanted", ENGINE)
def test_an_engine_refuses_it(name: str, value: Any, wanted: str) -> None:
    """At construction, whether its parts are given ready-made or by `from_args`."""
    parts: dict[str, Any] = {"retriever": RETRIEVER, "response_synthesizer": CitingSynthesizer(LLM)}
    parts[name.partition("[")[0]] = value
    with refused(name, wanted):
        GroundedQueryEngine(**parts)
    if name != "callback_manager":  # there it is one of the synthesizer's options
        with refused(name, wanted):
            GroundedQueryEngine.from_args(**parts)


def test_an_engine_needs_a_retriever() -> None:
    """None is no retriever, and an engine that retrieves elsewhere needs one too."""
    nothing: Any = None
    with refused("retriever", "a retriever of LlamaIndex, not NoneType"):
        GroundedQueryEngine(nothing, CitingSynthesizer(LLM))
    with refused("retriever", "a retriever of LlamaIndex, not NoneType"):
        GroundedQueryEngine.from_args(INDEX, LLM).with_retriever(nothing)


def test_a_retriever_is_no_index() -> None:
    """LlamaIndex's own `from_args` takes a retriever first; ours takes an index, and says so."""
    retriever: Any = RETRIEVER
    with refused("index", "an index of LlamaIndex, not VectorIndexRetriever"):
        GroundedQueryEngine.from_args(retriever, LLM)


@pytest.mark.parametrize(
    "stages", [None, [], (), [ScopedDedup()], (ScopedDedup(),)], ids=["none", "[]", "()", "list", "tuple"]
)
def test_any_list_of_stages_is_taken(stages: Any) -> None:
    """None, lists and tuples of stages build an engine that answers."""
    engine = GroundedQueryEngine(RETRIEVER, CitingSynthesizer(LLM), stages, CallbackManager())
    assert engine.query("How long?").answerable


class Shelf:
    """Retrieves and selects without being a class of LlamaIndex, as doubles in tests do."""

    def retrieve(self, _: Any) -> list[NodeWithScore]:
        """Return one page."""
        return make_nodes(["Books can be returned within 21 days."])

    def postprocess_nodes(self, nodes: list[NodeWithScore], **_: Any) -> list[NodeWithScore]:
        """Change nothing."""
        return nodes

    def as_retriever(self) -> Shelf:
        """Retrieve without a detour."""
        return self


def test_what_llamaindex_takes_is_taken() -> None:
    """LlamaIndex's engine asks for the methods of its parts, not for their classes, and goes through a list once."""
    shelf: Any = Shelf()
    engines = [
        GroundedQueryEngine(shelf, CitingSynthesizer(LLM), iter([shelf])),  # type: ignore[arg-type]
        GroundedQueryEngine.from_args(shelf, LLM, node_postprocessors=[shelf]),
    ]
    assert [engine.query("How long?").answerable for engine in engines] == [True, True]
