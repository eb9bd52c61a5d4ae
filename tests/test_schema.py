"""Records are frozen, survive JSON, and their log form gives nothing away."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from llama_index_grounded.schema import (
    CheckResult,
    Citation,
    Conflict,
    Decision,
    GroundedResult,
    Refusal,
    RefusalReason,
    SourceRef,
    Span,
    Usage,
    Verdict,
)
from tests.hostile import texts

text = texts(max_pieces=3)
optional = st.none() | text
number = st.none() | st.floats()
names = st.lists(text, max_size=2).map(tuple)
counts = st.integers(0, 10**6)

identities = {"key": text, "node_id": text, "document_id": text, "chunk_id": text}
descriptions = dict.fromkeys(("revision", "version", "section", "title", "page", "url"), optional)

sources = st.builds(SourceRef, **identities, **descriptions, score=number, tokens=st.none() | counts, also_in=names)
citations = st.builds(Citation, **identities, **descriptions, score=number, quote=optional, start=st.none() | counts)
refusals = st.builds(Refusal, reason=st.sampled_from(RefusalReason), detail=text)
usages = st.builds(Usage, prompt_tokens=st.none() | counts, estimated_prompt_tokens=counts)
spans = st.builds(Span, start=counts, end=counts)
checks = st.builds(
    CheckResult,
    name=text,
    status=st.sampled_from(["passed", "failed", "skipped"]),
    detail=text,
    spans=st.lists(spans, max_size=2).map(tuple),
)
conflicts = st.builds(Conflict, keys=names, detail=text, confirmed=st.booleans())
decisions = st.builds(
    Decision,
    stage=st.just("ScoreGate"),
    action=st.sampled_from(["kept", "shortened", "dropped", "restored", "moved", "refused"]),
    node_id=text,
    document_id=text,
    reason=st.just("low_score"),
    value=number,
    limit=number,
    twin=optional,
)
results = st.builds(
    GroundedResult,
    answerable=st.booleans(),
    verdict=st.none() | st.sampled_from(Verdict),
    answer=text,
    citations=st.lists(citations, max_size=2),
    sources=st.lists(sources, max_size=2),
    invalid_source_ids=names,
    refusal=st.none() | refusals,
    checks=st.lists(checks, max_size=1),
    decisions=st.lists(decisions, max_size=2),
    conflicts=st.lists(conflicts, max_size=1),
    warnings=names,
    top_score=number,
    usage=usages,
    elapsed_ms=st.floats(0, 1e9),
    raw_output=optional,
)
records = st.one_of(sources, citations, refusals, usages, spans, checks, conflicts, results)


@given(records)
def test_every_record_round_trips_through_json(record: BaseModel) -> None:
    """JSON text and a JSON-ready mapping give the record back, decisions and all."""
    assert type(record).model_validate_json(record.model_dump_json()) == record
    mapping = record.model_dump(mode="json")
    assert type(record).model_validate(json.loads(json.dumps(mapping, allow_nan=False))) == record


@given(records)
@settings(max_examples=25)
def test_every_record_survives_pickle_and_deep_copy(record: BaseModel) -> None:
    """Copies are equal and of the same type."""
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record  # noqa: S301 - our own bytes


@given(results)
def test_the_audit_is_json(result: GroundedResult) -> None:
    """The log record is plain JSON, without not-a-number, whatever came in."""
    audit = result.audit()
    assert json.loads(json.dumps(audit, allow_nan=False)) == audit


SECRET = "the patient's name"
IDS = {"key": "S1", "node_id": "n1", "document_id": "d1", "chunk_id": "c1"}
TOLD = dict.fromkeys(("section", "title", "page", "url"), SECRET)
FULL = GroundedResult(
    answerable=True,
    verdict=Verdict.answered,
    answer=SECRET,
    citations=(Citation(**IDS, **TOLD, quote=SECRET, start=0, end=3),),  # type: ignore[arg-type]
    sources=(SourceRef(**IDS, **TOLD, tokens=40, score=0.7, cited=True),),  # type: ignore[arg-type]
    invalid_source_ids=("S9", SECRET, "s3", "S1 and the patient", "S"),
    refusal=Refusal(reason=RefusalReason.failed_check, detail=SECRET),
    checks=(CheckResult(name="QuoteCheck", status="failed", detail=SECRET),),
    decisions=(Decision(stage="ScoreGate", action="kept", node_id="n1", document_id="d1", reason="best", value=0.7),),
    conflicts=(Conflict(keys=("S1", "S2"), detail=SECRET),),
    warnings=("prompt_shorter",),
    raw_output=SECRET,
    fingerprint="f" * 16,
    llm_calls=1,
)


def test_the_audit_holds_no_text() -> None:
    """No title, section, page, URL, quote, answer, detail, raw output or invented id reaches the log."""
    logged = json.dumps(FULL.audit())
    assert SECRET in FULL.model_dump_json()
    assert SECRET not in logged
    assert "patient" not in logged


def test_the_audit_holds_what_a_log_needs() -> None:
    """Ids in order, counts, decisions, reasons and the fingerprint are there."""
    audit = FULL.audit()
    assert audit["sources"] == [
        {**IDS, "revision": None, "version": None, "score": 0.7, "tokens": 40, "cited": True},
    ]
    assert audit["cited"] == ["S1"]
    assert audit["invalid_source_ids"] == ["S9", "(no key)", "s3", "(no key)", "(no key)"]
    assert audit["refusal"] == "failed_check"
    assert audit["verdict"] == "answered"
    assert audit["decisions"][0]["node_id"] == "n1"
    assert audit["fingerprint"] == "f" * 16
    assert audit["llm_calls"] == 1


@pytest.mark.parametrize("half, whole", [("a\ud800b", "a\ufffdb"), ("\ud83d\ude00", "😀"), ("é", "é")])
def test_halves_of_characters_never_reach_json(half: str, whole: str) -> None:
    """Lone halves become the replacement character and pairs become one, in records and in decisions."""
    decision = Decision(stage="s", action="kept", node_id=half, document_id=half, reason="r", twin=half)
    result = GroundedResult(answerable=True, answer=half, invalid_source_ids=(half,), decisions=(decision,))
    assert (result.answer, result.invalid_source_ids) == (whole, (whole,))
    [kept] = result.decisions
    assert (kept.node_id, kept.document_id, kept.twin) == (whole, whole, whole)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), np.float32("nan")])
def test_what_is_no_number_is_unknown(score: float) -> None:
    """Not-a-number and infinity, which JSON can not hold, are None in records and decisions."""
    decision = Decision(stage="s", action="kept", node_id="n", document_id="d", reason="r", value=score, limit=score)
    result = GroundedResult(answerable=True, answer="", top_score=score, decisions=(decision,))
    assert (result.top_score, result.decisions[0].value, result.decisions[0].limit) == (None, None, None)


def test_scores_of_other_libraries_become_floats() -> None:
    """A NumPy score is written as the number that it is."""
    score: Any = np.float32(0.5)
    decision = Decision(stage="s", action="kept", node_id="n", document_id="d", reason="r", value=score)
    result = GroundedResult(answerable=True, answer="", decisions=(decision,), top_score=np.float64(0.25))
    assert json.loads(result.model_dump_json())["decisions"][0]["value"] == 0.5
    assert type(result.top_score) is float


def test_a_citation_takes_over_everything_about_its_source() -> None:
    """A citation of a whole source has each field that both records know, and no quote yet."""
    [source] = FULL.sources
    citation = Citation.of(source)
    shared = Citation.model_fields.keys() & SourceRef.model_fields.keys()
    assert {name: getattr(citation, name) for name in shared} == {name: getattr(source, name) for name in shared}
    assert (citation.quote, citation.start, citation.end) == (None, None, None)


@pytest.mark.parametrize("name", [*Verdict, *RefusalReason])
def test_names_read_as_their_value(name: Verdict | RefusalReason) -> None:
    """Verdicts and reasons print, format and compare as plain words on every Python."""
    assert str(name) == f"{name}" == name.value == name.name
    assert name == name.value


@given(refusals)
def test_a_refusal_reads_as_its_reason_and_detail(refusal: Refusal) -> None:
    """Printed and formatted it starts with the reason, ends with the detail, and has no colon without one."""
    assert str(refusal) == f"{refusal}" == ": ".join(part for part in (refusal.reason.value, refusal.detail) if part)
    assert str(refusal.model_copy(update={"detail": ""})) == refusal.reason.value
    assert Refusal.model_validate_json(refusal.model_dump_json()) == refusal


def test_a_refusal_in_a_log_line() -> None:
    """The text is one that a developer can read."""
    refusal = Refusal(reason=RefusalReason.low_score, detail="ScoreGate: low_score, 0.2 against a limit of 0.35")
    assert f"refused: {refusal}" == "refused: low_score: ScoreGate: low_score, 0.2 against a limit of 0.35"


def attempt(change: Callable[[], object]) -> str:
    """Return the name of the error that a change raises."""
    try:
        change()
    except (ValidationError, AttributeError) as error:
        return type(error).__name__
    return "nothing"


def test_records_are_frozen_and_know_their_fields() -> None:
    """A field can neither be changed nor invented, and fields have names, not places."""
    decision: Any = FULL.decisions[0]
    assert attempt(lambda: setattr(FULL, "answer", "")) == "ValidationError"
    assert attempt(lambda: setattr(decision, "reason", "")) == "FrozenInstanceError"
    assert attempt(lambda: Refusal.model_validate({"reason": "low_score", "retry": 1})) == "ValidationError"
    assert attempt(lambda: Refusal.model_validate({"reason": "tired"})) == "ValidationError"
    with pytest.raises(TypeError, match="positional"):
        Decision("ScoreGate", "kept", "n", "d", "r")  # type: ignore[call-arg]
