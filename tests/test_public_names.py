"""The names that users import from single modules stay; those of the package's top stand in test_public_api."""

from __future__ import annotations

import importlib

import pytest

NAMES = {
    "errors": {
        *("AccessViolationError", "ConfigurationError", "GenerationError", "GroundedError", "MissingScoreError"),
    },
    "events": {"GroundedEndEvent", "SelectionEvent", "emit"},
    "evidence": {
        *("DEFAULT_KEYS", "STAMP", "FieldName", "Identity", "MetadataKeys", "Stamp"),
        *("copied", "field", "field_for_llm", "fields", "fields_for_llm", "identity", "identity_under"),
        *("included_text", "mark_of", "once", "stamp", "stamp_of", "strip", "with_stamp", "with_text"),
    },
    "rendering": {
        *("AnyRenderer", "JsonRenderer", "KeyValueRenderer", "MarkdownRenderer", "TableRenderer", "XmlRenderer"),
        *("BlockRenderer", "Removed", "Rendered", "Renderer", "clean", "escape", "slug", "unescape"),
    },
    "schema": {
        *("Action", "AnswerClaim", "CheckResult", "Citation", "ClaimVerdict", "Conflict", "Decision", "GroundedResult"),
        *("QuoteMatch", "Record", "Refusal", "RefusalReason", "ResultEvent", "SourceRef", "SourcesEvent", "Span"),
        *("StreamEvent", "TextEvent", "Usage", "Verdict"),
    },
    "tokens": {"TokenCounter"},
    "history": {"ChatQuery", "from_memory", "history_of", "recent_turns", "relevant_turns"},
    "selection": {
        *("AccessGuard", "AttentionReorder", "CombinedGate", "ConflictFlagger", "Evidence", "EvidenceGate"),
        *(
            "Kind",
            "MetadataKeys",
            "MetadataScore",
            "NearDuplicateFilter",
            "Notes",
            "Outcome",
            "PassageMerger",
            "RecordScore",
            "ScopedDedup",
        ),
        *("ScoreGate", "Selection", "SourceOrder", "Stage", "SufficiencyGate", "TokenBudget", "VectorSimilarity"),
        *("default_postprocessors", "origin_of"),
    },
    "synthesis": {
        *("AnswerModel", "AsyncGroundedStreamingResponse", "CitingSynthesizer", "Claim", "ClaimedAnswer"),
        *("GroundedAnswer", "GroundedQueryEngine", "GroundedResponse", "GroundedStreamingResponse", "Plan"),
        "system_prompt",
    },
    "testing": {"FixedRetriever", "LawError", "ScriptedLLM", "check_postprocessor", "make_nodes"},
    "checks": {
        *("AnswerCheck", "CheckContext", "OnFail", "ShownSource"),
        *("EvaluatorCheck", "GroundednessCheck", "NumberCheck", "OverlapCheck", "QuoteCheck"),
    },
}
"""A name that appears or disappears here is a change for users: it belongs in CHANGELOG.md."""

FIELDS = {
    "Decision": "stage action node_id document_id reason value limit twin",
    "SourceRef": (
        "key node_id document_id chunk_id revision version section title page url score tokens cited synthetic also_in"
    ),
    "Citation": ("key node_id document_id chunk_id revision version section title page url score quote start end"),
    "Usage": "prompt_tokens completion_tokens estimated_prompt_tokens",
    "Refusal": "reason detail",
    "CheckResult": "name status detail spans quotes claims score llm_calls usage",
    "AnswerClaim": "text start end keys quote",
    "QuoteMatch": "quote keys key start end text moved claim",
    "ClaimVerdict": "start end label reason keys",
    "GroundedResult": (
        "answerable verdict answer citations claims sources invalid_source_ids refusal checks decisions conflicts"
        " warnings top_score usage elapsed_ms llm_calls raw_output fingerprint"
    ),
}
"""Stored results and logs are read by these names."""


@pytest.mark.parametrize("module", NAMES)
def test_the_names_of_a_module(module: str) -> None:
    """A module exports exactly the names that are written down, and each can be had."""
    found = importlib.import_module(f"llama_index_grounded.{module}")
    assert set(found.__all__) == NAMES[module]
    assert all(hasattr(found, name) for name in NAMES[module])


@pytest.mark.parametrize("folder, home", [("selection", "passages.origin_of"), ("synthesis", "prompts.system_prompt")])
def test_a_function_of_a_folder_is_that_of_its_file(folder: str, home: str) -> None:
    """The shorter import gives the very function."""
    file, name = home.split(".")
    found = importlib.import_module(f"llama_index_grounded.{folder}")
    assert getattr(found, name) is getattr(importlib.import_module(f"llama_index_grounded.{folder}.{file}"), name)


@pytest.mark.parametrize("record", FIELDS)
def test_the_fields_of_a_record(record: str) -> None:
    """A record has exactly the fields that are written down, in this order."""
    cls = getattr(importlib.import_module("llama_index_grounded.schema"), record)
    fields = getattr(cls, "model_fields", None) or cls.__dataclass_fields__
    assert list(fields) == FIELDS[record].split()
