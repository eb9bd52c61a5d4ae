"""Find quotes in the sources, verbatim up to how a text is set.

What may differ is listed in `folding`: white space, kinds of quote marks, dashes, ligatures and the like. Beyond that:

- the first letter, where the model made it a capital, or made the capital of a sentence small;
- an ellipsis at the front or the end of the quote, which says that the source goes on. Inside, an ellipsis is text like
  any other, so a quote that leaves words out passes only where the source has the ellipsis too;
- single for double quote marks, though not behind a digit: 5' is not 5";
- pairs of Markdown's emphasis marks around words, and spaces around a dash between letters.

A cut may not change what the source says; `cuts` tells where a quote may begin and end. A quote must hold two letters
or digits; less would stand everywhere and prove nothing.

Place: a check of `CitingSynthesizer`, for answers that come in claims. It finds where words stand, not whether they
support the claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from llama_index_grounded._allowed import need_flag, need_one_of
from llama_index_grounded.checks.cuts import begins_sentence, joined, may_begin, may_end
from llama_index_grounded.checks.folding import Folded, agree, fold
from llama_index_grounded.schema import AnswerClaim, CheckResult, QuoteMatch, Span
from llama_index_grounded.synthesis.checking import CheckContext, OnFail

__all__ = ["MAX_QUOTE", "QuoteCheck", "find_quote"]

MAX_QUOTE = 10_000
"""Characters of the longest quote that is looked for."""
_SHOWN = 80
_LEAST = 2
# Of a quote that stands more often, the first places decide; it keeps the time of a hostile source within bounds.
_MOST_PLACES = 1000
_START = 64
_MARKS = "\"'"
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
    return _find([fold(quote)], _Source(text))


class _Source:
    """A text that is folded once, and once more without its emphasis when that is needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.folded = fold(text)
        self._loose: Folded | None = None

    @property
    def loose(self) -> Folded:
        """The text as `_loosened` folds it."""
        if self._loose is None:
            self._loose = _loosened(self.folded)
        return self._loose


def _find(wordings: list[Folded], source: _Source) -> tuple[int, int] | None:
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
        if sum(map(str.isalnum, text)) < _LEAST:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteCheck:
    """Look for each quote of an answer in claims: in the sources that the claim names, then in the others.

    A quote that stands in another source than named passes, is marked as moved and named in the detail. Without a
    claim or a quote there is nothing to check, and the check is skipped.

    Args:
        on_fail: What becomes of an answer with a quote that stands nowhere: ``"flag"``, ``"refuse"`` or ``"retry"``.
        require: Whether a claim without a quote fails too.

    Raises:
        ConfigurationError: When an option has another value.

    Example:
        >>> QuoteCheck(on_fail="refuse").name
        'quotes'
    """

    local: ClassVar[bool] = True
    """It asks nobody, so it runs though the time of the query is over."""

    on_fail: OnFail = "flag"
    require: bool = False

    def __post_init__(self) -> None:
        """Refuse what an option can not be."""
        need_one_of("on_fail", self.on_fail, OnFail)
        need_flag("require", self.require)

    @property
    def name(self) -> str:
        """The name in results."""
        return "quotes"

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer; see the class."""
        if not context.claims:
            return CheckResult(name=self.name, status="skipped", detail="the answer does not come in claims")
        shelf = _Shelf(context)
        quoted = [(place, claim) for place, claim in enumerate(context.claims) if claim.quote.strip()]
        matches = [shelf.look_up(claim, place) for place, claim in quoted]
        wrong = [claim for (_, claim), match in zip(quoted, matches, strict=True) if match.key is None]
        bare = [claim for claim in context.claims if not claim.quote.strip()] if self.require else []
        if not quoted and not bare:
            return CheckResult(name=self.name, status="skipped", detail="no claim has a quote")
        failed = sorted([*wrong, *bare], key=lambda claim: claim.start)
        return CheckResult(
            name=self.name,
            status="failed" if failed else "passed",
            detail="; ".join([*map(_remark, filter(_remarkable, matches)), *(["a claim has no quote"] * len(bare))]),
            spans=tuple(Span(start=claim.start, end=claim.end) for claim in failed),
            quotes=tuple(matches),
        )


class _Shelf:
    """The sources of one answer, each folded once, when it is first needed."""

    def __init__(self, context: CheckContext) -> None:
        self._context = context
        self._folded: dict[str, _Source] = {}

    def look_up(self, claim: AnswerClaim, place: int) -> QuoteMatch:
        """Find the quote of a claim, nearest source first."""
        if len(claim.quote) <= MAX_QUOTE:
            written = [fold(text) for text in _wordings(claim.quote, self._context.unescape)]
            # A dict keeps the order and drops what comes twice.
            for key in dict.fromkeys([*claim.keys, *self._context.cited, *self._context.sources]):
                if key in self._context.sources and (found := _find(written, self._source(key))):
                    return self._match(claim, place, key, *found)
        return QuoteMatch(quote=claim.quote, keys=claim.keys, claim=place)

    def _source(self, key: str) -> _Source:
        if key not in self._folded:
            self._folded[key] = _Source(self._context.sources[key].text)
        return self._folded[key]

    def _match(self, claim: AnswerClaim, place: int, key: str, start: int, end: int) -> QuoteMatch:
        return QuoteMatch(
            quote=claim.quote,
            keys=claim.keys,
            key=key,
            start=start,
            end=end,
            text=self._context.sources[key].text[start:end],
            moved=key not in claim.keys,
            claim=place,
        )


def _wordings(quote: str, unescape: Callable[[str], str]) -> Iterator[str]:
    """Yield what a model may mean by a quote: with the escaping of the prompt or without, in quote marks or not."""
    for text in dict.fromkeys([unescape(quote), quote]):
        yield text
        marked = fold(text).text.strip()
        if len(marked) > _LEAST and marked[0] == marked[-1] and marked[0] in _MARKS:
            yield text.strip()[1:-1]


def _remarkable(match: QuoteMatch) -> bool:
    return match.key is None or match.moved


def _remark(match: QuoteMatch) -> str:
    shown = match.quote if len(match.quote) <= _SHOWN else f"{match.quote[:_SHOWN]}…"
    named = ", ".join(match.keys) or "no source"
    if match.key is not None:
        return f"{shown!r} stands in {match.key}, named was {named}"
    if len(match.quote) > MAX_QUOTE:
        return f"{shown!r} is longer than {MAX_QUOTE} characters"
    if sum(map(str.isalnum, match.quote)) < _LEAST:
        return f"{shown!r} is too short to prove anything"
    return f"{shown!r} stands in no source, named was {named}"
