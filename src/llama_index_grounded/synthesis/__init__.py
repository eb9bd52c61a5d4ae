"""Nodes in, a cited answer or a refusal out."""

from typing import TYPE_CHECKING

from llama_index_grounded._lazy import lazy

if TYPE_CHECKING:
    from llama_index_grounded.synthesis.answer import AnswerModel, Claim, ClaimedAnswer, GroundedAnswer
    from llama_index_grounded.synthesis.plan import Plan
    from llama_index_grounded.synthesis.prompts import system_prompt
    from llama_index_grounded.synthesis.query_engine import GroundedQueryEngine
    from llama_index_grounded.synthesis.respond import GroundedResponse
    from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
    from llama_index_grounded.synthesis.synthesizer import CitingSynthesizer

__all__ = [
    "AnswerModel",
    "AsyncGroundedStreamingResponse",
    "CitingSynthesizer",
    "Claim",
    "ClaimedAnswer",
    "GroundedAnswer",
    "GroundedQueryEngine",
    "GroundedResponse",
    "GroundedStreamingResponse",
    "Plan",
    "system_prompt",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "answer": "AnswerModel Claim ClaimedAnswer GroundedAnswer",
        "plan": "Plan",
        "prompts": "system_prompt",
        "query_engine": "GroundedQueryEngine",
        "respond": "GroundedResponse",
        "streaming": "AsyncGroundedStreamingResponse GroundedStreamingResponse",
        "synthesizer": "CitingSynthesizer",
    },
)
