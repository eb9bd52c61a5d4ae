"""Find where a quote stands in a text, verbatim up to how a text is set.

What may differ is listed in `folding`: white space, kinds of quote marks, dashes, ligatures and the like. Beyond that:

- the first letter, where the model made it a capital, or made the capital of a sentence small;
- an ellipsis at the front or the end of the quote, which says that the source goes on. Inside, an ellipsis is text like
  any other, so a quote that leaves words out passes only where the source has the ellipsis too;
- single for double quote marks, though not behind a digit: 5' is not 5";
- pairs of Markdown's emphasis marks around words, and spaces around a dash between letters.

A cut may not change what the source says; `cuts` tells where a quote may begin and end. A quote must hold two letters
or digits; less would stand everywhere and prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from llama_index_grounded.checks.cuts import begins_sentence, joined, may_begin, may_end
from llama_index_grounded.checks.folding import Folded, agree, fold

__all__ = ["LEAST_SIGNS", "Source", "cut_in", "find", "find_quote"]

LEAST_SIGNS = 2
"""Letters and digits that a quote has at least."""
_MOST_CONTEXT = 80
# Of a quote that stands more often, the first places decide; it keeps the time of a hostile source within bounds.
_MOST_PLACES = 1000
_START = 64
_ELLIPSES = re.compile(r"(?:\.{3,}[ ]?)+")
# A pair of marks around words; `__init__` and 2*3*4 are none. One that holds another is found in the second round.
_EMPHASIS = re.compile(
    r"""(?<![\w*\\])(?P<star>\*{1,3})(?=[\w"'“‘«(\[$€£₺`_-])(?P<bold>[^*]{1,400}?)(?<=[^\s*])(?P=star)(?![\w*])
    | (?<![\w\\])_(?=[^\W_]|["'“‘«(\[$€£₺`*-])(?P<italic>[^_]{1,400})(?<=\S)_(?!\w)
    | (?<![\w`\\])`(?=[^\s`])(?P<code>[^`\n]{1,400})(?<=\S)`(?![\w`])""",
    re.VERBOSE,
)
_ROUNDS = 2
_WIDE_DASH = re.compile(r"(?<=[^\W\d_])(?:[ \u00a0]{1,2}[-‐‑–—―][ \u00a0]{0,2}|[-‐‑–—―][ \u00a0]{1,2})(?=[^\W\d_])")
_SPACE = re.compile(r"[ \u00a0]")
_HIDDEN = "\u200b"
_NO_INCHES = re.compile(r'(?<!\d)"')


def find_quote(quote: str, text: str) -> tuple[int, int] | None:
    """Return start and end in a text of the first passage that a quote renders word for word, or None.

    Args:
        quote: The quote as written, of any length.
        text: The text that it should be from.

    Returns:
        Offsets in characters of ``text``, so that ``text[start:end]`` is the passage as it stands there.

    Example:
        >>> find_quote('within "21 days"', "Return books within “21\u00a0days”.")
        (13, 29)
        >>> find_quote("1 day", "21 days") is None
        True
    """
    return find([fold(quote)], Source(text))


class Source:
    """A text that is folded once, and once more without its emphasis when that is needed."""

    def __init__(self, text: str) -> None:
        self.folded = fold(text)
        self._loose: Folded | None = None

    @property
    def loose(self) -> Folded:
        """The text as `_loosened` folds it."""
        if self._loose is None:
            self._loose = _loosened(self.folded)
        return self._loose


def find(wordings: list[Folded], source: Source) -> tuple[int, int] | None:
    """Return the place of the first wording that is found, as it is if possible."""
    for quote in wordings:
        if found := _find_in(quote, source.folded):
            return found
    for quote in wordings:
        loose = _loosened(quote)
        if (loose.text, source.loose.text) != (quote.text, source.folded.text) and (
            found := _find_in(loose, source.loose)
        ):
            return found
    return None


def _find_in(quote: Folded, source: Folded) -> tuple[int, int] | None:
    quote, source = agree(quote, source)
    for first, last, capital in islice(_places(quote.text.strip(), source), _MOST_PLACES):
        if may_begin(source, first) and may_end(source, last) and (not capital or begins_sentence(source, first)):
            return source.span(first, last)
    return None


def cut_in(wordings: list[Folded], source: Source) -> str:
    """Return the words of a source of which a quote is a part that must not be cut out; empty if they stand nowhere."""
    parts = (_cut_in(quote, source.folded) or _cut_in(_loosened(quote), source.loose) for quote in wordings)
    return next(filter(None, parts), "")


def _cut_in(quote: Folded, source: Folded) -> str:
    quote, source = agree(quote, source)
    for first, last, capital in islice(_places(quote.text.strip(), source), _MOST_PLACES):
        if capital and not begins_sentence(source, first):
            continue
        start = first if may_begin(source, first) else _word_before(source.text, first)
        end = last if may_end(source, last) else _word_behind(source.text, last)
        start, end = source.span(start, end)
        return source.original[start:end].replace(_HIDDEN, "")
    return ""


def _word_before(text: str, at: int) -> int:
    """Return where the word begins that a cut goes through or stands behind."""
    while at > 0 and text[at - 1] == " ":
        at -= 1
    return max(text.rfind(" ", 0, at) + 1, at - _MOST_CONTEXT)


def _word_behind(text: str, at: int) -> int:
    """Return where the word ends that a cut goes through or stands in front of."""
    while at < len(text) and text[at] == " ":
        at += 1
    end = text.find(" ", at)
    return min(len(text) if end < 0 else end, at + _MOST_CONTEXT)


def _places(quote: str, source: Folded) -> Iterator[tuple[int, int, bool]]:
    for words, capital in _readings(quote):
        for first in _occurrences(words, source):
            yield first, first + len(words), capital


def _loosened(folded: Folded) -> Folded:
    """Fold a text again without pairs of emphasis marks and spaces around dashes, with one kind of quote mark."""
    text = folded.original
    for _ in range(_ROUNDS):
        text = _EMPHASIS.sub(_without_marks, text)
    text = _WIDE_DASH.sub(lambda found: _SPACE.sub(_HIDDEN, found[0]), text)
    if text != folded.original:
        # What is left out is hidden, so that each character keeps its place.
        folded = fold(text)
    return replace(folded, original=text, text=_NO_INCHES.sub("'", folded.text))


def _without_marks(found: re.Match[str]) -> str:
    words = found[found.lastgroup or 0]
    width = (len(found[0]) - len(words)) // 2
    return f"{_HIDDEN * width}{words}{_HIDDEN * width}"


def _readings(words: str) -> Iterator[tuple[str, bool]]:
    """Yield the quote as it is and without ellipses around it; then with another first letter.

    The flag says that the first letter became a capital, which only the front of a sentence makes up for.
    """
    inner = words
    if "..." in words:
        lead = _ELLIPSES.match(words)
        inner = words[lead.end() if lead else 0 :]
        inner = (inner.rstrip(".") if inner.endswith("...") else inner).strip()
    for text in dict.fromkeys([words, inner]):
        if sum(map(str.isalnum, text)) < LEAST_SIGNS:
            continue
        yield text, False
        first, rest = text[0], text[1:]
        if first.isupper():
            # A Turkish capital of ı looks like the capital of i; İ in lower case is two characters.
            yield from ((small + rest, False) for small in {"İ": "i", "I": "iı"}.get(first, first.lower()))
        elif first.islower() and len(first.upper()) == 1:
            yield from ((large + rest, True) for large in {"i": "Iİ"}.get(first, first.upper()))


def _occurrences(words: str, source: Folded) -> Iterator[int]:
    """Yield where the words stand; from inside a word on to its end, so that a long run of letters is seen once.

    To find the start and then compare the rest is quick also where a long quote stands at thousands of places.
    """
    text, start = source.text, words[:_START]
    at = text.find(words)
    while at >= 0:
        if text.startswith(words, at):
            yield at
        at += 1
        while at < len(text) and joined(text[at - 1], text[at]):
            at += 1
        at = text.find(start, at)
