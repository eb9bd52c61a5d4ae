"""The records that pass between the stages: frozen, keyword-only, JSON-ready.

Scores keep the scale of whoever made them; counts are tokens; times are milliseconds; offsets are characters of the
included text. A decision holds ids and numbers, never document text.
"""

from llama_index_grounded.schema.checks import AnswerClaim, CheckResult, ClaimVerdict, Conflict, QuoteMatch, Span
from llama_index_grounded.schema.events import ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.schema.names import RefusalReason, Verdict
from llama_index_grounded.schema.record import Action, Decision, Record
from llama_index_grounded.schema.result import Citation, GroundedResult, Refusal, SourceRef
from llama_index_grounded.schema.usage import Usage

__all__ = [
    "Action",
    "AnswerClaim",
    "CheckResult",
    "Citation",
    "ClaimVerdict",
    "Conflict",
    "Decision",
    "GroundedResult",
    "QuoteMatch",
    "Record",
    "Refusal",
    "RefusalReason",
    "ResultEvent",
    "SourceRef",
    "SourcesEvent",
    "Span",
    "StreamEvent",
    "TextEvent",
    "Usage",
    "Verdict",
]
