"""What an answer can be held against: quotes, numbers, words, judges, and evaluators of your own."""

from llama_index_grounded.checks.evaluator import EvaluatorCheck
from llama_index_grounded.checks.groundedness import GroundednessCheck
from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.checks.overlap import OverlapCheck
from llama_index_grounded.checks.quotes import QuoteCheck
from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext, OnFail, ShownSource

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
