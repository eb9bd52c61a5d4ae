"""What an answer can be held against: quotes, numbers, words, judges, and evaluators of your own."""

from typing import TYPE_CHECKING

from llama_index_grounded._lazy import lazy
from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext, OnFail, ShownSource

if TYPE_CHECKING:
    from llama_index_grounded.checks.evaluator import EvaluatorCheck
    from llama_index_grounded.checks.groundedness import GroundednessCheck
    from llama_index_grounded.checks.numbers import NumberCheck
    from llama_index_grounded.checks.overlap import OverlapCheck
    from llama_index_grounded.checks.quotes import QuoteCheck

__all__ = [
    "AnswerCheck",
    "CheckContext",
    "EvaluatorCheck",
    "GroundednessCheck",
    "NumberCheck",
    "OnFail",
    "OverlapCheck",
    "QuoteCheck",
    "ShownSource",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "evaluator": "EvaluatorCheck",
        "groundedness": "GroundednessCheck",
        "numbers": "NumberCheck",
        "overlap": "OverlapCheck",
        "quotes": "QuoteCheck",
    },
)
