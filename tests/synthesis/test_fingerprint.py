"""Equal configurations have equal fingerprints, in every process and whatever became of the query."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.evaluation import FaithfulnessEvaluator, SemanticSimilarityEvaluator
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai import OpenAI
from pydantic import ConfigDict, Field

from llama_index_grounded import AccessGuard, CitingSynthesizer, GroundedAnswer, GroundedResponse, ScoreGate
from llama_index_grounded.checks import EvaluatorCheck, GroundednessCheck
from llama_index_grounded.schema import CheckResult
from llama_index_grounded.selection import (
    CombinedGate,
    EvidenceGate,
    MetadataScore,
    SufficiencyGate,
    VectorSimilarity,
)
from llama_index_grounded.selection.stage import Stage
from llama_index_grounded.synthesis.fingerprint import fingerprint, written
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.timing import assert_within

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
_PROGRAM = """
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index_grounded import AccessGuard, CitingSynthesizer, GroundedAnswer, RefusalReason, ScoreGate
from llama_index_grounded.checks import EvaluatorCheck, GroundednessCheck
from llama_index_grounded.selection import CombinedGate, EvidenceGate, SufficiencyGate, VectorSimilarity
from llama_index_grounded.synthesis.fingerprint import fingerprint

def rule(nodes):
    return True

class Ticket(GroundedAnswer):
    topic: str = "other"

class Own:
    on_fail = "flag"

    def __init__(self, limits, model):
        self.limits, self._model, self.lock = limits, model, object()

    def check(self, context):
        return None

judge, model = MockLLM(max_tokens=9), MockEmbedding(embed_dim=4)
gates = [
    ScoreGate(min_score=0.1, signal=VectorSimilarity(embed_model=model)),
    EvidenceGate(predicate=rule),
    EvidenceGate(predicate=lambda nodes: True),
]
gate = CombinedGate(gates=[*gates, CombinedGate(gates=gates)])
stages = [AccessGuard(predicate=rule), SufficiencyGate(llm=judge), gate]
synthesizer = CitingSynthesizer(
    judge,
    checks=[
        GroundednessCheck(llm=judge),
        Own({"a", "b", "c"}, model),
        EvaluatorCheck(evaluator=FaithfulnessEvaluator(llm=judge)),
    ],
    output_cls=Ticket,
    url_for=lambda source: None,
    refusal_text={RefusalReason.no_evidence: "a", "low_score": "b"},
)
print(fingerprint(synthesizer._options, stages, template=[{"a", "b", "c", "d", "e"}], model=judge))
"""


def of_stages(*stages: Stage) -> str:
    """Return the fingerprint of stages under the default options."""
    return fingerprint(CitingSynthesizer(MockLLM())._options, stages, template=(), model=None)


def test_every_process_writes_the_same_fingerprint() -> None:
    """Models in gates, signals and checks, rules and sets count the same under any hash seed and at any address."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.strip()) == 16


def one_rule(_: object) -> bool:
    """Pass everything."""
    return True


def other_rule(_: object) -> bool:
    """Pass everything, too."""
    return True


@pytest.mark.parametrize(
    "stages",
    [
        [SufficiencyGate(), SufficiencyGate(llm=MockLLM()), SufficiencyGate(llm=MockLLM(max_tokens=3))],
        [ScoreGate(min_score=0.1, signal=VectorSimilarity(embed_model=MockEmbedding(embed_dim=n))) for n in (2, 3)],
        [ScoreGate(min_score=0.1, signal=MetadataScore(key)) for key in "ab"],
        [CombinedGate(gates=[ScoreGate(min_score=0.1), ScoreGate(min_score=n)]) for n in (0.2, 0.3)],
        [EvidenceGate(predicate=rule) for rule in (one_rule, other_rule)],
        [EvidenceGate(predicate=functools.partial(one_rule, n)) for n in (1, 2)],
        [AccessGuard(filters=MetadataFilters(filters=[MetadataFilter(key=key, value=1)])) for key in "ab"],
    ],
    ids=["llm", "embed_model", "signal", "gates", "rule", "partial", "filters"],
)
def test_what_a_stage_holds_is_another_fingerprint(stages: list[Stage]) -> None:
    """Another model, another signal, another gate in a gate or a rule of another name is another configuration."""
    assert len({of_stages(stage) for stage in stages}) == len(stages)


def test_two_objects_of_one_configuration_have_one_fingerprint() -> None:
    """Models, gates and rules that are built alike count alike."""

    def build() -> list[Stage]:
        embedding = VectorSimilarity(embed_model=MockEmbedding(embed_dim=4))
        gates: list[Stage] = [ScoreGate(min_score=0.1, signal=embedding), SufficiencyGate(llm=MockLLM())]
        return [CombinedGate(gates=gates), EvidenceGate(predicate=lambda _: True)]

    assert of_stages(*build()) == of_stages(*build())


def test_functions_count_by_name_only() -> None:
    """Two lambdas of one place are the same to the fingerprint; the docstring says so."""
    one, other = (EvidenceGate(predicate=lambda _, n=n: n) for n in (1, 2))
    assert of_stages(one) == of_stages(other)


class Holder:
    """An object without declared fields."""


@dataclass
class Ring:
    """An object that may hold itself."""

    inside: Any = None


def test_an_object_without_a_form_is_its_class() -> None:
    """No address is ever written, and what holds itself ends there."""
    ring = Ring()
    ring.inside = [ring, Holder()]
    assert written(ring)["inside"] == [f"{__name__}.Ring", f"{__name__}.Holder"]


def test_a_key_is_no_part_of_the_configuration() -> None:
    """A model with another key, or other credentials in its headers, is the same model; another address is not."""
    plain, other = (
        OpenAI(model="gpt-4o-mini", api_key=key, default_headers={"Authorization": key})
        for key in ("the-first", "the-second")
    )
    assert written(plain) == written(other)
    assert "the-first" not in str(written(plain))
    assert written(plain) != written(OpenAI(model="gpt-4o-mini", api_key="the-first", api_base="http://localhost:1/v1"))


def test_a_window_that_an_ollama_was_told_by_its_server_does_not_count() -> None:
    """LlamaIndex notes it on the object with the first call; one given as ``num_ctx`` is an option and counts."""
    before, after = Ollama(model="m"), Ollama(model="m", context_window=4096)
    assert written(before) == written(after)
    assert written(before) != written(Ollama(model="m", additional_kwargs={"num_ctx": 4096}))


def answered_and_refused(**options: Any) -> tuple[str, str, str]:
    """Return the fingerprints of an answer, of a query that a gate refused and of one without a node."""
    prints: list[str] = []
    for nodes in (make_nodes(["x"], scores=[0.9]), make_nodes(["x"], scores=[0.1]), []):
        query = QueryBundle("How long?")
        selected = ScoreGate(min_score=0.5).postprocess_nodes(nodes, query)
        response = CitingSynthesizer(**options).synthesize(query, selected)
        assert isinstance(response, GroundedResponse)
        prints.append(response.grounded.fingerprint)
    return prints[0], prints[1], prints[2]


def test_a_refused_query_has_the_fingerprint_of_an_answered_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model from ``Settings`` counts also where it is not called."""
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM([OK]))
    prints = answered_and_refused()
    assert len(set(prints)) == 1
    assert prints == answered_and_refused(llm=ScriptedLLM([OK]))


class Unasked(ScriptedLLM):
    """A model that says nothing of itself without its server."""

    def __init__(self, replies: list[str]) -> None:
        super().__init__(replies)

    @property
    def metadata(self) -> LLMMetadata:
        """Fail."""
        raise ConnectionError


class _Without:
    """``Settings`` where LlamaIndex's default model can not be made."""

    @property
    def llm(self) -> Any:
        raise ImportError


def test_a_refusal_asks_no_model_and_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is looked up, not asked; where ``Settings`` has none, none is written."""
    empty: list[Any] = []
    asked = CitingSynthesizer(Unasked(["never"])).synthesize("How long?", empty)
    monkeypatch.setattr("llama_index_grounded.synthesis.base.Settings", _Without())
    synthesizer = CitingSynthesizer(callback_manager=Settings.callback_manager)
    found = synthesizer.synthesize("How long?", empty)
    assert isinstance(asked, GroundedResponse)
    assert isinstance(found, GroundedResponse)
    assert asked.grounded.fingerprint != found.grounded.fingerprint
    assert found.grounded.fingerprint == fingerprint(
        synthesizer._options,
        [],
        template=[synthesizer.get_prompts()["text_qa_template"].format(context_str="", query_str="")],
        model=None,
    )


def test_the_judge_of_a_check_counts() -> None:
    """A check with another judge is another configuration, one with an equal judge the same."""
    prints = [
        answered_and_refused(llm=ScriptedLLM([OK]), checks=[GroundednessCheck(llm=MockLLM(max_tokens=n))])[2]
        for n in (1, 1, 2)
    ]
    assert prints[0] == prints[1] != prints[2]


def of_options(**options: Any) -> str:
    """Return the fingerprint of an answer under these options."""
    return answered_and_refused(llm=ScriptedLLM([OK]), **options)[2]


def evaluated(evaluator: Any) -> str:
    """Return the fingerprint of an answer that an evaluator of LlamaIndex judges."""
    return of_options(checks=[EvaluatorCheck(evaluator=evaluator)])


def test_the_threshold_of_an_evaluator_counts() -> None:
    """Another threshold, or another embedding model, is another configuration; an equal one is the same."""
    prints = [
        evaluated(
            SemanticSimilarityEvaluator(embed_model=MockEmbedding(embed_dim=size), similarity_threshold=threshold)
        )
        for size, threshold in ((4, 0.9), (4, 0.9), (4, 0.1), (3, 0.9))
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_the_judge_and_the_template_of_an_evaluator_count() -> None:
    """Another judge, or other words to it, is another configuration."""
    prints = [
        evaluated(FaithfulnessEvaluator(llm=MockLLM(max_tokens=most), eval_template=PromptTemplate(template)))
        for most, template in ((1, "a"), (1, "a"), (2, "a"), (1, "b"))
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


class OwnCheck:
    """A check without declared fields, which counts what it has seen."""

    on_fail = "flag"

    def __init__(self, most: int, *, words: frozenset[str] = frozenset(), api_key: str = "", part: Any = None) -> None:
        self.most, self._words, self.api_key, self.part = most, words, api_key, part
        self.seen = 0

    def check(self, _: Any) -> CheckResult:
        """Pass."""
        self.seen += 1
        return CheckResult(name="own", status="passed")


class Stricter(OwnCheck):
    """A check that hands its options on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


class Slotted(OwnCheck):
    """A check with a slot."""

    __slots__ = ("_limit",)

    def __init__(self, limit: int) -> None:
        self._limit = limit


def test_what_an_index_or_a_table_holds_does_not_count() -> None:
    """A check may be given an index: its documents are no configuration, and reading them would take long."""
    index = VectorStoreIndex([TextNode(text="one", id_="1")], embed_model=MockEmbedding(embed_dim=4))
    table = {str(place): "page" for place in range(100_000)}
    for part in (index, table, [*table]):
        check = OwnCheck(1, part=part)
        before = assert_within(1, functools.partial(of_options, checks=[check]))
        index.insert_nodes([TextNode(text="two")])
        table["one more"] = "page"
        assert of_options(checks=[check]) == before


def test_parts_that_are_shared_are_read_in_a_moment() -> None:
    """Each of thirty parts holds the one before twice: two to the thirty ways lead to the first."""
    part = OwnCheck(0)
    for _ in range(30):
        part = OwnCheck(1, part=OwnCheck(1, part=part), words=part)  # type: ignore[arg-type]
    assert_within(1, lambda: of_options(checks=[part]))


@pytest.mark.parametrize(
    "one, other",
    [
        (OwnCheck(1), OwnCheck(2)),
        (OwnCheck(1, words=frozenset("ab")), OwnCheck(1, words=frozenset("bc"))),
        (OwnCheck(1, part=OwnCheck(1)), OwnCheck(1, part=OwnCheck(2))),
        (OwnCheck(1, part=MockLLM(max_tokens=1)), OwnCheck(1, part=MockLLM(max_tokens=2))),
        (Stricter(most=1), Stricter(most=2)),
        (Stricter(most=1), OwnCheck(1)),
        (Slotted(1), Slotted(2)),
    ],
)
def test_what_an_own_check_was_given_counts(one: OwnCheck, other: OwnCheck) -> None:
    """An argument of the constructor counts where the object keeps it by its name, with an underscore or without."""
    assert of_options(checks=[one]) != of_options(checks=[other])


def test_what_an_own_check_has_seen_does_not_count() -> None:
    """A count, a connection or a key is no configuration: before and after a query, the fingerprint is one."""
    used, fresh = OwnCheck(1, api_key="the-first"), OwnCheck(1, api_key="the-second")
    first = of_options(checks=[used])
    assert used.seen > 0
    assert first == of_options(checks=[used]) == of_options(checks=[fresh])
    assert "the-first" not in str(written(used))


def ticket(description: str, *, upper: bool = False) -> type[GroundedAnswer]:
    """Make an answer class; each call makes one of the same name."""

    class Ticket(GroundedAnswer):
        model_config = ConfigDict(str_to_upper=upper)

        topic: str = Field(default="", description=description)

    return Ticket


def test_the_fields_of_an_answer_class_count() -> None:
    """Another description is another prompt, and another setting another reading; an equal class is the same."""
    classes = [ticket("a"), ticket("a"), ticket("b"), ticket("a", upper=True)]
    prints = [of_options(output_cls=output_cls) for output_cls in classes]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
