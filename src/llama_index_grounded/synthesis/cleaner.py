"""Clean a model's answer, whole or while it streams in: escapes, leaked tags, inline markers.

Three steps, in this order, each without regard to how the text is cut into pieces:

1. **Escapes.** `XmlRenderer` shows ``<`` as ``&lt;``, and ``&`` as ``&amp;`` only in front of ``lt;`` or
   ``amp;…lt;``, and a model copies that. ``&lt;`` becomes ``<`` and such an ``&amp;`` becomes ``&``, once, from left to
   right. Other entities stay, and so does everything where the prompt was not escaped in this way (`unescaping`).
2. **Source tags** that leaked go, whole or cut; `tags` says what is shaped like one. In code (`regions`) tags stay,
   save our own shape, ``<source id="S1"``. A tag alone on its line takes the line with it.
3. **Inline markers** (`markers`): one whose items are all known stays as it is, unknown items are cut out of a group,
   and a marker without a known item goes with the spaces or tabs in front of it, and with brackets that hold nothing
   else (``[[S9]]``). Of a copied heading, ``[S1 | Document: …]``, only its marker is left, and ``[/S1]`` goes; a line
   that held nothing else goes too. With ``inline_citations=False`` every marker goes; its keys are still reported. In
   code, mathematics, links, images and autolinks markers are plain text. Keys of documents (`escaped`) are no markers.

Steps 2 and 3 look at the text as it comes out, so what a removal joins is judged again.

Text is held back only where it is not certain yet: at most ``4 * lookahead.LIMIT`` characters (4,096), except in inline
code and mathematics that have not closed, which end with their block. Text of these is let go up to the first
character that could open a tag or a marker. The cost of a character is constant, however the text is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index_grounded.synthesis.keys import KeyIndex
from llama_index_grounded.synthesis.scanner import Scanner
from llama_index_grounded.synthesis.unescaping import Escapes, Unescaper

__all__ = ["AnswerCleaner", "Cleaned", "clean_answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A cleaned answer, and what its inline markers named."""

    text: str
    """What may be shown."""
    keys: tuple[str, ...]
    """Valid keys in inline markers, in order of first appearance."""
    unknown: tuple[str, ...]
    """Unknown ids in inline markers, as written, in order of first appearance."""


class AnswerCleaner:
    """Cleans an answer that arrives in pieces; the same for every way to cut it.

    Args:
        valid_keys: The keys that the prompt showed, in prompt order.
        inline_citations: False removes the markers of valid keys too; `keys` reports them all the same.
        escapes: How the prompt was escaped; `unescaping.escapes_of` tells it of a renderer.

    Example:
        >>> cleaner = AnswerCleaner(["S1"])
        >>> [cleaner.feed("Return it in 30 days [S"), cleaner.feed("1] [S7]."), cleaner.finish()]
        ['Return it in 30 days', ' [S1].', '']
        >>> cleaner.keys, cleaner.unknown
        (('S1',), ('S7',))
    """

    def __init__(self, valid_keys: Sequence[str], *, inline_citations: bool = True, escapes: Escapes = "xml") -> None:
        """Start in front of the first character."""
        self._unescaper = Unescaper() if escapes == "xml" else None
        self._scanner = Scanner(KeyIndex(valid_keys), inline=inline_citations, escaped=escapes == "brackets")
        self._finished = False

    @property
    def keys(self) -> tuple[str, ...]:
        """Valid keys seen in inline markers so far, in order of first appearance."""
        return tuple(self._scanner.keys)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Unknown ids seen in inline markers so far, as written, in order of first appearance."""
        return tuple(self._scanner.unknown)

    def feed(self, text: str) -> str:
        """Take the next piece and return the text that is now certain.

        Raises:
            RuntimeError: The answer was finished before.
        """
        if self._finished:
            message = "this answer is finished; make a new AnswerCleaner for the next one"
            raise RuntimeError(message)
        return self._scanner.feed(text if self._unescaper is None else self._unescaper.feed(text))

    def finish(self) -> str:
        """Return the rest of the text, and nothing when called again."""
        if self._finished:
            return ""
        self._finished = True
        rest = "" if self._unescaper is None else self._unescaper.feed("", final=True)
        return self._scanner.feed(rest) + self._scanner.finish()


def clean_answer(
    text: str, valid_keys: Sequence[str], *, inline_citations: bool = True, escapes: Escapes = "xml"
) -> Cleaned:
    """Clean a whole answer; see `AnswerCleaner` for the arguments.

    Example:
        >>> clean_answer("Yes [S1, S9].", ["S1", "S2"])
        Cleaned(text='Yes [S1].', keys=('S1',), unknown=('S9',))
    """
    cleaner = AnswerCleaner(valid_keys, inline_citations=inline_citations, escapes=escapes)
    cleaned = cleaner.feed(text) + cleaner.finish()
    return Cleaned(text=cleaned, keys=cleaner.keys, unknown=cleaner.unknown)
