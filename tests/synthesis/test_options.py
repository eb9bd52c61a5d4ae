"""Options are checked at construction, and equal options have equal fingerprints."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import QueryBundle
from pydantic import BaseModel

from llama_index_grounded import (
    AccessGuard,
    CitingSynthesizer,
    GroundedAnswer,
    GroundedResponse,
    RefusalReason,
    ScopedDedup,
    TokenBudget,
    Verdict,
)
from llama_index_grounded.errors import ConfigurationError, GroundedError
from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}


class OtherAnswer(GroundedAnswer):
    """An answer class of a user."""


class NoAnswer(BaseModel):
    """A model that is no answer."""


def fingerprint(*stages: BaseNodePostprocessor, question: str = "How long?", **options: Any) -> str:
    """Answer once under these options and return the fingerprint."""
    query = QueryBundle(question)
    nodes = make_nodes(["Within 21 days."])
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query)
    response = CitingSynthesizer(ScriptedLLM([OK]), **options).synthesize(query, nodes)
    assert isinstance(response, GroundedResponse)
    return response.grounded.fingerprint


@pytest.mark.parametrize(
    "name, value",
    [
        ("output_cls", NoAnswer),
        ("output_cls", OtherAnswer(verdict=Verdict.no, sources=[], answer="x")),
        ("question_position", "middle"),
        ("on_invalid_ids", "ignore"),
        ("on_invalid_ids", None),
        ("on_error", "log"),
        ("structured_output", "tools"),
        ("language", "de"),
        ("max_retries", -1),
        ("max_retries", True),
        ("max_retries", 1.0),
        ("num_output", 0),
        ("num_output", "1024"),
        ("max_answer_chars", 0),
        ("max_answer_chars", 1.5),
        ("timeout", 0),
        ("timeout", -1.0),
        ("timeout", float("nan")),
        ("timeout", float("inf")),
        ("timeout", True),
        ("timeout", "60"),
        ("refusal_text", {"not_found": "Nothing."}),
        ("refusal_text", {"no_evidence": None}),
        ("refusal_text", 3),
        ("refusal_text", ""),
        ("url_for", "/{nope}"),
        ("renderer", XmlRenderer),
        ("keys", {"document_id": "doc"}),
        ("counter", len),
    ],
)
def test_an_impossible_option_is_refused_by_its_name(name: str, value: Any) -> None:
    """What can not work raises a ConfigurationError, which is a ValueError, and names the option."""
    with pytest.raises(ConfigurationError, match=name.replace("_", ".")) as caught:
        CitingSynthesizer(**{name: value})
    assert isinstance(caught.value, GroundedError)
    assert isinstance(caught.value, ValueError)


def test_a_misspelt_option_is_refused() -> None:
    """An option that does not exist is a TypeError, as for any Python function."""
    options: dict[str, Any] = {"on_invalid_id": "drop"}
    with pytest.raises(TypeError, match="on_invalid_id"):
        CitingSynthesizer(**options)


def test_the_defaults_are_those_of_the_contract() -> None:
    """A synthesizer without options equals one that spells the documented defaults out."""
    spelt_out: dict[str, Any] = {
        "output_cls": GroundedAnswer,
        "renderer": XmlRenderer(attributes=("title", "section", "updated")),
        "question_position": "after",
        "on_invalid_ids": "drop",
        "max_retries": 1,
        "refusal_text": None,
        "language": "en",
        "on_error": "refuse",
        "timeout": 60.0,
        "num_output": 1024,
        "detect_truncation": True,
        "max_answer_chars": 16_000,
        "url_for": None,
        "keys": MetadataKeys(),
        "structured_output": "auto",
        "inline_citations": True,
    }
    assert fingerprint(**spelt_out) == fingerprint()


@pytest.mark.parametrize(
    "options",
    [
        {"output_cls": OtherAnswer},
        {"renderer": XmlRenderer(show_relevance=True)},
        {"system_prompt": "Answer."},
        {"question_position": "both"},
        {"text_qa_template": PromptTemplate("{context_str} {query_str}")},
        {"on_invalid_ids": "refuse"},
        {"max_retries": 0},
        {"refusal_text": "No."},
        {"language": "tr"},
        {"on_error": "raise"},
        {"timeout": None},
        {"num_output": 512},
        {"detect_truncation": False},
        {"max_answer_chars": 100},
        {"url_for": "/{document_id}"},
        {"keys": MetadataKeys(document_id="doc")},
        {"counter": TokenCounter(margin=1.1)},
        {"structured_output": "prompt"},
        {"inline_citations": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_another_option_is_another_fingerprint(options: dict[str, Any]) -> None:
    """Each option that shapes an answer changes the fingerprint."""
    assert fingerprint(**options) != fingerprint()
    assert fingerprint(**options) == fingerprint(**options)


def test_the_stages_belong_to_the_fingerprint() -> None:
    """Another stage, another option of a stage or another order is another configuration."""
    dedup, budget = ScopedDedup(), TokenBudget(max_tokens=100)
    chains: list[tuple[BaseNodePostprocessor, ...]] = [
        (),
        (dedup,),
        (ScopedDedup(scope="global"),),
        (budget,),
        (dedup, budget),
        (budget, dedup),
    ]
    assert len({fingerprint(*chain) for chain in chains}) == len(chains)


def test_the_question_does_not_belong_to_the_fingerprint() -> None:
    """Two questions under one configuration have one fingerprint."""
    assert fingerprint(question="How long?") == fingerprint(question="How much?")


def test_other_rules_of_a_guard_are_another_fingerprint() -> None:
    """Options that are lists of names count by their names."""

    def under(*fields: str) -> str:
        nodes = make_nodes(["Within 21 days."], metadata={"tenant": "a", "audience": "b"})
        query = QueryBundle("How long?")
        guarded = AccessGuard(require=fields).postprocess_nodes(nodes, query)
        response = CitingSynthesizer(ScriptedLLM([OK])).synthesize(query, guarded)
        assert isinstance(response, GroundedResponse)
        return response.grounded.fingerprint

    assert under("tenant") != under("audience")
    assert under("tenant") == under("tenant")


def test_an_unknown_reason_is_named() -> None:
    """A mapping of refusal texts with a reason that does not exist is refused, and the reason named."""
    with pytest.raises(ConfigurationError, match="not_found"):
        CitingSynthesizer(refusal_text={RefusalReason.no_evidence: "x", "not_found": "y"})


async def test_an_option_for_a_single_query_is_refused() -> None:
    """Options belong to the synthesizer; one that is given with a query is no silent nothing."""
    synthesizer = CitingSynthesizer(ScriptedLLM([OK]))
    with pytest.raises(TypeError, match="temperature"):
        synthesizer.synthesize("How long?", make_nodes(["x"]), temperature=0.1)
    with pytest.raises(TypeError, match="temperature"):
        await synthesizer.asynthesize("How long?", make_nodes(["x"]), temperature=0.1)
