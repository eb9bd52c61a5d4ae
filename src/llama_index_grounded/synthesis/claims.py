"""Claims of an answer: which of them stand, and the text that they make."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import AnswerClaim
from llama_index_grounded.synthesis.answer import Claim
from llama_index_grounded.synthesis.blank import has_words
from llama_index_grounded.synthesis.cleaner import AnswerCleaner, clean_answer
from llama_index_grounded.synthesis.keys import resolve_ids
from llama_index_grounded.synthesis.shapes import check_claim
from llama_index_grounded.synthesis.unescaping import Escapes

__all__ = ["Claims", "join_claims", "read_claim"]

_GAPS = (" ", "\n\n")
"""What stands between two claims: the second where the first would make one marker of the two, or other code."""


@dataclass(slots=True, kw_only=True)
class Claims:
    """The claims that stand, one after the other, as one text.

    A claim stands where it names a source that was shown and says something; markers of other sources are taken out.
    Of the whole text nothing would be taken out either: a claim that no gap keeps apart from open code before it, and
    that would show there what is taken out of text, does not stand.
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
    _joined: AnswerCleaner = field(init=False)
    """Reads the whole text as far as it goes."""
    _uncertain: str = field(default="", init=False)
    """The end of the text, which it holds back."""
    _seen: set[str] = field(default_factory=set[str], init=False)
    """The keys that it found."""

    def __post_init__(self) -> None:
        """Begin the text. Its claims are cleaned one by one before, and copied escapes stand in them as they are."""
        self._joined = AnswerCleaner(self.keys, inline_citations=self.inline_citations, escapes="none")

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
        text = cleaned.text.strip()
        joined = self._join(text)
        if joined is None:
            return ""
        piece, found = joined
        end = (self.kept[-1].end if self.kept else 0) + len(piece)
        self.kept.append(
            AnswerClaim(
                text=text,
                start=end - len(text),
                end=end,
                keys=tuple(dict.fromkeys([*valid, *cleaned.keys, *found])),
                quote=clean(claim.quote or "").strip(),
            )
        )
        return piece

    def _join(self, text: str) -> tuple[str, list[str]] | None:
        """Put a claim behind the others; None where nothing keeps them apart.

        Two halves of a marker, each of them plain text, would make one.

        Returns:
            The claim with what stands in front, and the keys of markers that the text has only now.
        """
        for gap in _GAPS if self.kept else ("",):
            piece, reader = gap + text, copy.deepcopy(self._joined)
            whole, certain = self._uncertain + piece, reader.feed(piece)
            ended = copy.deepcopy(reader)
            if certain + ended.finish() == whole:
                self._joined, self._uncertain = reader, whole[len(certain) :]
                found = [key for key in ended.keys if key not in self._seen]
                self._seen.update(found)
                return piece, found
        return None


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
