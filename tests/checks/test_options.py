"""The options of all checks are refused at construction, in the same words, and None is no limit of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.evaluation import FaithfulnessEvaluator

from llama_index_grounded.checks import EvaluatorCheck, GroundednessCheck, NumberCheck, OverlapCheck, QuoteCheck
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.schema import CheckResult, SourceRef
from llama_index_grounded.synthesis.checking import CheckContext, ShownSource
from llama_index_grounded.testing import ScriptedLLM


def evaluator(**options: Any) -> EvaluatorCheck:
    """Make a check out of an evaluator."""
    return EvaluatorCheck(evaluator=FaithfulnessEvaluator(llm=ScriptedLLM(["YES"])), **options)


@pytest.mark.parametrize("make", [QuoteCheck, OverlapCheck, NumberCheck, GroundednessCheck, evaluator])
@pytest.mark.parametrize("value", ["ignore", "", None, True, ["flag"]], ids=repr)
def test_an_unknown_policy_is_refused(make: Callable[..., Any], value: Any) -> None:
    """Each check says at construction what becomes of a failed answer, in one of three words."""
    with pytest.raises(ConfigurationError, match="on_fail must be one of flag, refuse, retry, not"):
        make(on_fail=value)


@pytest.mark.parametrize(
    "make, options, told",
    [
        (QuoteCheck, {"require": 1}, "require must be True or False, not 1"),
        (NumberCheck, {"allow_derived": "yes"}, "allow_derived must be True or False, not 'yes'"),
        (NumberCheck, {"scope": "none"}, "scope must be one of cited, all, not 'none'"),
        (evaluator, {"contexts": "some"}, "contexts must be one of cited, all, not 'some'"),
        (OverlapCheck, {"threshold": 2}, "threshold must be a number from 0 to 1, not 2"),
        (GroundednessCheck, {"llm": "gemma3"}, "llm must be an LLM of LlamaIndex, not str"),
        (GroundednessCheck, {"timeout": "5"}, "timeout must be a positive number of seconds or None, not '5'"),
        (GroundednessCheck, {"timeout": True}, "timeout must be a positive number of seconds or None, not True"),
    ],
)
def test_what_an_option_can_not_be_is_told(make: Callable[..., Any], options: dict[str, Any], told: str) -> None:
    """The message names the option, what it may be and what it was."""
    with pytest.raises(ConfigurationError) as caught:
        make(**options)
    assert str(caught.value) == told


@pytest.mark.parametrize("seconds", [None, 5.0])
def test_a_judge_may_have_no_limit_of_its_own(seconds: float | None) -> None:
    """With None the judge has whatever is left of the query's time, which may be unlimited too."""
    judge = ScriptedLLM([{"judgements": [{"number": 1, "reason": "r", "verdict": "supported"}]}])
    ref = SourceRef(key="S1", node_id="n", document_id="d", chunk_id="c")
    context = CheckContext(
        question="How long?",
        answer="Books go back within 21 days.",
        sources={"S1": ShownSource(ref=ref, text="Within 21 days.")},
        cited=("S1",),
        seconds=seconds,
    )
    found: CheckResult = GroundednessCheck(llm=judge, timeout=None).check(context)
    assert found.status == "passed"
