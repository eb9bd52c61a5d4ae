"""Claims of an answer: which of them stand, and the text that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import AnswerClaim
from llama_index_grounded.synthesis.answer import Claim
from llama_index_grounded.synthesis.blank import has_words
from llama_index_grounded.synthesis.cleaner import clean_answer
from llama_index_grounded.synthesis.keys import resolve_ids
from llama_index_grounded.synthesis.shapes import check_claim
from llama_index_grounded.synthesis.unescaping import Escapes

__all__ = ["Claims", "join_claims", "read_claim"]

_GAP = " "


@dataclass(slots=True, kw_only=True)
class Claims:
    """The claims that stand, one after the other, as one text.

    A claim stands where it names a source that was shown and says something; markers of other sources are taken out.
    """

    keys: Sequence[str]
    """The keys that were in the prompt."""
    inline_citations: bool
    escapes: Escapes = "xml"
    """How the prompt was escaped."""
    kept: list[AnswerClaim] = field(default_factory=list[AnswerClaim])
    unknown: dict[str, None] = field(default_factory=dict[str, None])
    """Ids that name no source, in order."""
    without_source: int = 0
    """Claims that were left out since they name no source that was shown."""

    def add(self, claim: Claim) -> str:
        """Take the next claim and return what it adds to the text; nothing where it does not stand."""
        # A class of the user's own may leave out any of the three.
        valid, unknown = resolve_ids(claim.sources or (), self.keys)
        written = clean(claim.text or "")
        cleaned = clean_answer(written, self.keys, inline_citations=self.inline_citations, escapes=self.escapes)
        bare = clean_answer(written, self.keys, inline_citations=False, escapes=self.escapes).text
        self.unknown.update(dict.fromkeys([*unknown, *cleaned.unknown]))
        if not valid:
            self.without_source += 1
        if not valid or not has_words(bare, self.keys):
            return ""
        text, start = cleaned.text.strip(), self.kept[-1].end + len(_GAP) if self.kept else 0
        cited = tuple(dict.fromkeys([*valid, *cleaned.keys]))
        self.kept.append(
            AnswerClaim(
                text=text, start=start, end=start + len(text), keys=cited, quote=clean(claim.quote or "").strip()
            )
        )
        return f"{_GAP}{text}" if start else text


def join_claims(
    claims: Iterable[Claim], keys: Sequence[str], *, inline_citations: bool, escapes: Escapes = "xml"
) -> tuple[str, Claims]:
    """Put claims together."""
    found = Claims(keys=keys, inline_citations=inline_citations, escapes=escapes)
    return "".join([found.add(claim) for claim in claims]), found


def read_claim(item: Mapping[str, Any], claim_cls: type[Claim]) -> Claim | None:
    """Read one claim of a reply in progress; None where it is none, which ends in a refusal of the whole reply."""
    try:
        claim = claim_cls.model_validate(item)
        check_claim(claim)
    except Exception:  # noqa: BLE001 - a validator of the user's class may raise anything
        return None
    return claim
