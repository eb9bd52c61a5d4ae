"""Read a reply while it is still being written: verdict and sources first, then the answer, character by character.

The reader finds the same object as `structured.read_reply` and the same text as `validate.judge`, whatever the size of
the pieces; those two judge the whole reply in the end. What it adds is when a character may be shown: not before a
verdict that answers and a valid source are known, and not while it may still become part of a tag or a marker. A model
that writes its fields in another order makes the text wait.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from llama_index_grounded.llm.object_reader import ObjectReader, Part
from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import Verdict
from llama_index_grounded.synthesis.answer import Claim
from llama_index_grounded.synthesis.blank import WordFinder
from llama_index_grounded.synthesis.claims import Claims, read_claim
from llama_index_grounded.synthesis.cleaner import AnswerCleaner
from llama_index_grounded.synthesis.keys import normalise_ids, resolve_ids
from llama_index_grounded.synthesis.unescaping import Escapes

__all__ = ["ReplyReader"]


class ReplyReader:
    """Takes the pieces of one reply and returns what may be shown.

    Args:
        keys: The keys that were in the prompt.
        fields: Names that the object may have; None for any.
        inline_citations: Keep ``[S1]`` markers.
        most_chars: Stop after that many shown characters.
        claim_cls: What a claim is, for an answer that comes in claims: each is shown when it is whole.
        escapes: How the prompt was escaped.
    """

    def __init__(
        self,
        keys: Sequence[str],
        *,
        fields: Container[str] | None,
        inline_citations: bool,
        most_chars: int,
        claim_cls: type[Claim] | None = None,
        escapes: Escapes = "xml",
    ) -> None:
        self._keys = keys
        self._most_chars = most_chars
        self._claim_cls = claim_cls
        self._claims = Claims(keys=keys, inline_citations=inline_citations, escapes=escapes)
        self._object = ObjectReader(fields, "answer" if claim_cls is None else "claims")
        self._cleaner = AnswerCleaner(keys, inline_citations=inline_citations, escapes=escapes)
        self._held: list[str] = []
        self._sound = True
        """False from a claim on that is none: the reply will be refused."""
        self._open = False
        """True once a verdict that answers and a valid source are known."""
        self._waiting = ""
        """White space, and whatever comes before the first word: shown only if something follows."""
        self._begun = False
        self._bare = AnswerCleaner(keys, inline_citations=False, escapes=escapes)
        self._words = WordFinder(keys)
        """Tell whether there is a word besides the markers."""
        self.shown = 0
        """Characters that were handed out."""

    @property
    def stuck(self) -> bool:
        """True once the model writes nothing but white space."""
        return self._object.stuck

    @property
    def taken(self) -> int:
        """Characters of the reply that were read; what follows them does not count."""
        return self._object.taken

    @property
    def too_long(self) -> bool:
        """True once more than ``most_chars`` characters were to be shown."""
        return self.shown > self._most_chars

    def feed(self, piece: str) -> str:
        """Take the next piece and return what may be shown now."""
        text = "".join(map(self._take, self._object.feed(piece)))
        room = self._most_chars - self.shown
        self.shown += len(text)
        return text[: max(room, 0)]

    def _take(self, part: Part) -> str:
        if isinstance(part, str):
            return self._show(part) if self._claim_cls is None else ""
        if self._claim_cls is None:
            return ""
        claim = read_claim(part, self._claim_cls)
        self._sound = self._sound and claim is not None
        if claim is not None and self._sound:
            self._held.append(self._claims.add(claim))
        self._open = self._open or (self._answers() and self._named() is not None)
        if not self._open:
            return ""
        text, self._held = "".join(self._held), []
        return text

    def _show(self, text: str) -> str:
        """Pass on what is cleaned and certain, without white space at either end."""
        self._held.append(text)
        self._open = self._open or self._may_show()
        if not self._open:
            return ""
        held, self._held = clean("".join(self._held)), []
        cleaned = self._waiting + self._cleaner.feed(held)
        if not self._begun:
            cleaned = cleaned.lstrip()
            self._begun = self._words.feed(self._bare.feed(held))
        body = cleaned.rstrip() if self._begun else ""
        self._waiting = cleaned[len(body) :]
        return body

    def _may_show(self) -> bool:
        """Tell whether a verdict that answers and a valid source are known."""
        return self._answers() and bool(self._named())

    def _named(self) -> list[str] | None:
        """Return the valid keys of the list at the top; None while it is unknown or is none."""
        if "sources" not in self._object.seen:
            return None
        try:
            return resolve_ids(normalise_ids(self._object.seen["sources"]), self._keys)[0]
        except ValueError:
            return None

    def _answers(self) -> bool:
        """Tell whether a verdict that answers is known."""
        try:
            verdict = Verdict(str(self._object.seen.get("verdict")).strip().lower())
        except ValueError:
            return False
        return verdict is not Verdict.not_in_sources
