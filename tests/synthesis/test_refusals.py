"""A refusal has a reason, a text in the user's language, no citation, and nothing that a provider or model said."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx
import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded import CitingSynthesizer, GroundedResponse, RefusalReason, ScoreGate, TokenBudget
from llama_index_grounded.errors import GenerationError, GroundedError, MissingScoreError
from llama_index_grounded.schema import Refusal
from llama_index_grounded.synthesis.prompts import REFUSAL_TEXTS
from llama_index_grounded.testing import ScriptedLLM, make_nodes

QUESTION = "Is there a café in the store?"
OK = {"verdict": "answered", "sources": ["S1"], "answer": "Yes, on the first floor [S1]."}
SECRET = "upstream said: api key sk-12345 is invalid"


class Case(NamedTuple):
    """How to bring a refusal about."""

    reply: str | Mapping[str, Any] | BaseException = OK
    texts: tuple[str, ...] = ("The store has two floors.",)
    stages: tuple[BaseNodePostprocessor, ...] = ()
    options: Mapping[str, Any] = {}
    usage: dict[str, int] | None = None
    calls: int = 1
    english: str = ""
    turkish: str = ""


CASES = {
    "no_evidence": Case(
        texts=(),
        calls=0,
        english="I found nothing about this in the documents.",
        turkish="Belgelerde bu konuda bir şey bulamadım.",
    ),
    "low_score": Case(
        stages=(ScoreGate(min_score=0.95),),
        calls=0,
        english="I found nothing in the documents that fits the question closely enough.",
        turkish="Belgelerde soruya yeterince uyan bir şey bulamadım.",
    ),
    "not_in_sources": Case(
        {"verdict": "not_in_sources", "sources": ["S1"], "answer": "They do not say [S1]."},
        english="The documents that I found do not answer this.",
        turkish="Bulduğum belgelerde bunun yanıtı yok.",
    ),
    "no_valid_citation": Case(
        {**OK, "sources": ["S9"]},
        english="I could not back an answer with a source, so I give none.",
        turkish="Yanıtı bir kaynağa dayandıramadım; bu yüzden yanıt vermiyorum.",
    ),
    "invalid_citation": Case(
        {**OK, "sources": ["S1", "S9"]},
        options={"on_invalid_ids": "refuse"},
        english="The answer cited a source that does not exist, so I do not give it.",
        turkish="Yanıt var olmayan bir kaynağı gösterdi; bu yüzden onu vermiyorum.",
    ),
    "invalid_output": Case(
        "no object",
        calls=2,
        english="The model's reply could not be read. Please ask again.",
        turkish="Modelin yanıtı okunamadı. Lütfen yeniden sorun.",
    ),
    "answer_too_long": Case(
        options={"max_answer_chars": 5},
        english="The answer was too long to be shown.",
        turkish="Yanıt gösterilemeyecek kadar uzundu.",
    ),
    "prompt_too_long": Case(
        options={"num_output": 8000},
        calls=0,
        english="The question and its sources do not fit into the room that they have.",
        turkish="Soru ve kaynakları, onlara ayrılan yere sığmıyor.",
    ),
    "prompt_truncated": Case(
        usage={"prompt_tokens": 50},
        english="The model did not see the whole of the sources, so I do not trust its answer.",
        turkish="Model kaynakların tamamını görmedi; bu yüzden yanıtına güvenmiyorum.",
    ),
    "provider_error": Case(
        RuntimeError(SECRET),
        english="The answering service is not available right now. Please try again later.",
        turkish="Yanıt hizmetine şu anda ulaşılamıyor. Lütfen daha sonra yeniden deneyin.",
    ),
    "deadline_exceeded": Case(
        options={"timeout": 1e-9},
        calls=0,
        english="The answer took too long. Please try again later.",
        turkish="Yanıt çok uzun sürdü. Lütfen daha sonra yeniden deneyin.",
    ),
}


def run(case: Case, **options: Any) -> tuple[GroundedResponse, ScriptedLLM]:
    """Bring a refusal about."""
    query, nodes = QueryBundle(QUESTION), make_nodes(case.texts)
    for stage in case.stages:
        nodes = stage.postprocess_nodes(nodes, query)
    llm = ScriptedLLM([case.reply], usage=case.usage)
    response = CitingSynthesizer(llm, **{**case.options, **options}).synthesize(query, nodes)
    assert isinstance(response, GroundedResponse)
    return response, llm


@pytest.mark.parametrize("name", CASES)
def test_each_refusal_says_why_in_both_languages(name: str) -> None:
    """The reason fits the cause, the text comes in English and Turkish, and there is never a citation."""
    case = CASES[name]
    for language, words in (("en", case.english), ("tr", case.turkish)):
        response, llm = run(case, language=language)
        assert response.refusal is not None
        assert response.refusal.reason == name
        assert response.refusal.detail
        assert (str(response), response.answerable, response.citations) == (words, False, ())
        assert len(llm.prompts) == case.calls == response.grounded.llm_calls
        assert not any(source.cited for source in response.grounded.sources)
        assert response.verdict == ("not_in_sources" if name == "not_in_sources" else None)
        assert response.parsed is None


def test_every_reason_has_a_text_in_every_language() -> None:
    """No reason is without a built-in text, and no two reasons share one."""
    for texts in REFUSAL_TEXTS.values():
        assert set(texts) == set(RefusalReason)
        assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("language", ["en", "tr"])
def test_an_outage_does_not_read_like_not_found(language: Any) -> None:
    """Who reads of an outage is told to try later, and reads nothing of documents that hold no answer."""
    texts = REFUSAL_TEXTS[language]
    for reason in (RefusalReason.provider_error, RefusalReason.deadline_exceeded):
        assert "later" in texts[reason] or "daha sonra" in texts[reason]
        assert not any(word in texts[reason].lower() for word in ("document", "found", "belge", "bulama"))


def test_one_own_text_stands_for_all_reasons() -> None:
    """A string is the text of every refusal."""
    assert {str(run(case, refusal_text="Ask the desk.")[0]) for case in CASES.values()} == {"Ask the desk."}


def test_own_texts_by_reason() -> None:
    """A mapping may name reasons by text or by member; what it leaves out keeps the built-in text."""
    own = {"no_evidence": "Nothing.", RefusalReason.low_score: "Too weak."}
    said = [str(run(CASES[name], refusal_text=own)[0]) for name in ("no_evidence", "low_score", "provider_error")]
    assert said == ["Nothing.", "Too weak.", CASES["provider_error"].english]


def test_own_texts_by_callable() -> None:
    """A callable gets the refusal with its reason and detail."""

    def words(refusal: Refusal) -> str:
        return f"No ({refusal.reason}): {refusal.detail}"

    assert (
        str(run(CASES["no_evidence"], refusal_text=words)[0]) == "No (no_evidence): no source was left to answer from"
    )


def test_a_gate_above_the_best_score_calls_no_model() -> None:
    """A question about a café, below the threshold, costs nothing, and says what was compared with what."""
    query, llm = QueryBundle(QUESTION), ScriptedLLM([OK])
    nodes = make_nodes(["Two floors.", "Gift cards."], scores=[0.3, 0.1])
    response = CitingSynthesizer(llm).synthesize(query, ScoreGate(min_score=0.35).postprocess_nodes(nodes, query))
    assert isinstance(response, GroundedResponse)
    assert llm.prompts == []
    assert response.refusal is not None
    assert response.refusal.reason == "low_score"
    assert "0.3 " in response.refusal.detail
    assert "0.35" in response.refusal.detail
    assert response.grounded.top_score == 0.3
    assert [(d.stage, d.action, d.value) for d in response.grounded.decisions] == [
        ("ScoreGate", "refused", 0.3),
        ("ScoreGate", "refused", 0.1),
    ]


@pytest.mark.parametrize(
    "options, scores, reason, top",
    [
        ({"min_score": 0.1, "min_margin": 0.2}, [0.5, 0.45], "low_score", 0.5),
        ({"min_score": 0.1, "drop_below": 0.5}, [0.4, 0.35], "low_score", 0.4),
        ({"min_score": 0.1, "on_missing_score": "refuse"}, [None, None], "low_score", None),
        ({"min_score": 0.1, "on_missing_score": "pass"}, [None, None], None, None),
        ({"min_score": 0.1}, [None, 0.2], None, 0.2),
        ({"min_score": -5.0}, [-1.0, -4.7], None, -1.0),
    ],
)
def test_top_score_is_the_gates_best_signal(
    options: dict[str, Any], scores: list[float | None], reason: str | None, top: float | None
) -> None:
    """It is there for an answer and for each refusal of a gate, also with negative and missing scores."""
    query = QueryBundle(QUESTION)
    nodes = ScoreGate(**options).postprocess_nodes(make_nodes(["One.", "Two."], scores=scores), query)
    response = CitingSynthesizer(ScriptedLLM([OK])).synthesize(query, nodes)
    assert (response.refusal and response.refusal.reason) == reason
    assert response.grounded.top_score == top


def test_a_missing_score_is_a_clear_error_of_the_gate() -> None:
    """A gate that finds no score at all says what to do about it, and is a ValueError."""
    with pytest.raises(MissingScoreError, match="on_missing_score"):
        ScoreGate(min_score=0.1).postprocess_nodes(make_nodes(["One."], scores=[None]), QueryBundle(QUESTION))


class _DropAll(BaseNodePostprocessor):
    """A foreign postprocessor that leaves nothing."""

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> list[NodeWithScore]:
        return []


@pytest.mark.parametrize(
    "texts, stages, reason",
    [
        (["word " * 200], [TokenBudget(max_tokens=60)], "prompt_too_long"),
        (["word " * 200, "short"], [TokenBudget(max_tokens=60), _DropAll()], "no_evidence"),
        (["short"], [_DropAll(), TokenBudget(max_tokens=60)], "no_evidence"),
        (["short"], [ScoreGate(min_score=0.1), _DropAll()], "no_evidence"),
        (["short"], [ScoreGate(min_score=0.95), _DropAll()], "low_score"),
        (["", " "], [TokenBudget(max_tokens=60)], "no_evidence"),
    ],
)
def test_the_reason_is_that_of_the_stage_that_left_nothing(
    texts: list[str], stages: list[BaseNodePostprocessor], reason: str
) -> None:
    """A full budget, a weak score and a list that somebody else emptied are told apart."""
    query, nodes = QueryBundle(QUESTION), make_nodes(texts)
    for stage in stages:
        nodes = stage.postprocess_nodes(nodes, query)
    response = CitingSynthesizer(ScriptedLLM([OK])).synthesize(query, nodes)
    assert response.refusal is not None
    assert response.refusal.reason == reason


@pytest.mark.parametrize("error", [RuntimeError(SECRET), httpx.ReadTimeout(SECRET), KeyError(SECRET), OSError(SECRET)])
def test_the_providers_words_stay_in_the_log(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """An error of the provider is logged with its text, and the response holds only its kind."""
    with caplog.at_level(logging.ERROR):
        response, _ = run(Case(error))
    assert SECRET not in json.dumps(response.metadata)
    assert SECRET not in str(response)
    assert response.refusal is not None
    assert response.refusal.reason == "provider_error"
    assert type(error).__name__ in response.refusal.detail
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert SECRET in (record.exc_text or "")


@pytest.mark.parametrize("name", ["no_evidence", "low_score", "not_in_sources", "no_valid_citation"])
def test_an_honest_refusal_is_no_error(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Missing evidence is a result: nothing is logged as an error, and `on_error="raise"` raises nothing."""
    response, _ = run(CASES[name], on_error="raise")
    assert response.refusal is not None
    assert caplog.records == []


async def ask(synthesizer: CitingSynthesizer, nodes: list[NodeWithScore], *, in_async: bool) -> object:
    """Ask the question sync or async."""
    if in_async:
        return await synthesizer.asynthesize(QUESTION, nodes)
    return synthesizer.synthesize(QUESTION, nodes)


@pytest.mark.parametrize(
    "name, retryable", [("provider_error", True), ("deadline_exceeded", True), ("invalid_output", False)]
)
async def test_errors_can_be_raised(name: str, retryable: bool, caplog: pytest.LogCaptureFixture) -> None:
    """With `on_error="raise"` an outage is a GenerationError with its reason, and the provider's error is the cause."""
    case = CASES[name]
    synthesizer = CitingSynthesizer(ScriptedLLM([case.reply]), on_error="raise", **case.options)
    for in_async in (False, True):
        with pytest.raises(GenerationError) as caught:
            await ask(synthesizer, make_nodes(case.texts), in_async=in_async)
        error = caught.value
        assert isinstance(error, GroundedError)
        assert (error.reason, error.retryable) == (name, retryable)
        assert SECRET not in str(error)
        assert (error.__cause__ is case.reply) is (name == "provider_error")
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert name in caplog.text


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_a_program_that_is_being_stopped_is_stopped(fatal: Callable[[], BaseException]) -> None:
    """What is no ordinary error is never turned into a refusal."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - neither of the two is an Exception
        run(Case(fatal()))
    assert type(caught.value) is fatal
