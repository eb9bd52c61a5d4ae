"""Any evaluator of LlamaIndex as an answer check."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.evaluation import BaseEvaluator

from llama_index_grounded._allowed import need_one_of, need_part
from llama_index_grounded.checks.loop import arun_here, run_here
from llama_index_grounded.schema import CheckResult
from llama_index_grounded.synthesis.checking import OnFail

if TYPE_CHECKING:
    from llama_index.core.evaluation import EvaluationResult

    from llama_index_grounded.synthesis.checking import CheckContext

__all__ = ["Contexts", "EvaluatorCheck"]

Contexts = Literal["cited", "all"]
"""Which sources an evaluator is given."""


@dataclass(frozen=True)
class EvaluatorCheck:
    """Pass question, answer and source texts to an evaluator, such as LlamaIndex's ``FaithfulnessEvaluator``.

    What the evaluator itself asks of a model is not counted in the query's usage: it does not say.

    Args:
        evaluator: Any ``BaseEvaluator``. One without a clear result is reported as skipped.
        on_fail: What becomes of an answer that fails.
        contexts: Give it the ``"cited"`` sources or ``"all"`` of the prompt.
        name: Name under which the check reports; by default the evaluator's class.

    Raises:
        ConfigurationError: When an option has another value.

    Example:
        >>> from llama_index.core.evaluation import FaithfulnessEvaluator
        >>> from llama_index_grounded.testing import ScriptedLLM
        >>> EvaluatorCheck(FaithfulnessEvaluator(llm=ScriptedLLM(["YES"]))).name
        'FaithfulnessEvaluator'
    """

    evaluator: BaseEvaluator
    _: KW_ONLY
    on_fail: OnFail = "flag"
    contexts: Contexts = "cited"
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no evaluator, and what an option can not be."""
        need_part("evaluator", self.evaluator, BaseEvaluator, "a BaseEvaluator")
        need_one_of("on_fail", self.on_fail, OnFail)
        need_one_of("contexts", self.contexts, Contexts)
        object.__setattr__(self, "name", self.name or type(self.evaluator).__name__)

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        return self._result(run_here(lambda: self._evaluate(context), context.seconds))

    async def acheck(self, context: CheckContext) -> CheckResult:
        """Judge one answer."""
        return self._result(await arun_here(lambda: self._evaluate(context)))

    async def _evaluate(self, context: CheckContext) -> EvaluationResult:
        sources = context.cited_sources if self.contexts == "cited" else tuple(context.sources.values())
        return await self.evaluator.aevaluate(
            query=context.question, response=context.answer, contexts=[source.text for source in sources]
        )

    def _result(self, found: EvaluationResult) -> CheckResult:
        said: dict[str, Any] = {"name": self.name, "detail": found.feedback or found.invalid_reason or ""}
        if found.score is not None and 0 <= found.score <= 1:
            said["score"] = float(found.score)
        if found.invalid_result or found.passing is None:
            said["detail"] = said["detail"] or "the evaluator gave no clear result"
            return CheckResult(status="skipped", **said)
        return CheckResult(status="passed" if found.passing else "failed", **said)
