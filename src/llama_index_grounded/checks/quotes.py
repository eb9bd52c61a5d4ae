r"""Find quotes in the sources, verbatim up to how a text is set.

What may differ is listed in `folding`: white space, quote marks, dashes, ligatures and the like. Beyond that only the
first letter may, where the model made it a capital. An ellipsis is text like any other, so a quote that leaves words
out passes only where the source has the ellipsis too. A cut may not change what the source says:

- no cut inside a word, a grapheme, a number or a hyphened compound, between the sign, currency or percent sign and its
  number, or at an apostrophe within a word ("1 day" is not in "21 days", "5" not in "-5", "able" not in "unable");
- no cut next to a negation: "Books may" is no quote from "Books may not be returned", "refundable" none from "not
  refundable". Known are the negations that are words of their own in English, Turkish, Arabic and Chinese; Turkish
  suffixes are part of their word. A quote that ends with punctuation may stand before a negation.

A quote must hold two letters or digits; less would stand everywhere and prove nothing.

Place: a check of `CitingSynthesizer`, for answers that come in claims. It finds where words stand, not whether they
support the claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from llama_index_grounded.checks.folding import Folded, agree, fold, joined
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering.escaping import unescape
from llama_index_grounded.schema import AnswerClaim, CheckResult, QuoteMatch, Span
from llama_index_grounded.synthesis.checking import CheckContext, OnFail

__all__ = ["MAX_QUOTE", "QuoteCheck", "find_quote"]

MAX_QUOTE = 10_000
"""Characters of the longest quote that is looked for."""
_SHOWN = 80
_LEAST = 2
_START = 64
_MARKS = "\"'"
_BESIDE = 24
# The NUL stands where the quote begins or ends; folded texts hold none.
_BROKEN = re.compile(
    r"""
      \d[.,:/'\u066b\u066c]\x00\d | \d\x00[.,:/'\u066b\u066c]\d   # 1.5, 1,000, 12:30, 1/2
    | \w[-']\x00\w | \w\x00[-']\w                                 # non-refundable, don't, 50-199
    | (?:[-+%±~≈$¢£¥₤₹₺€]|(?:[±~≈<>]|[<>]=)[ ]?)\x00\d            # -5, %20, $20, >= 18
    | [<>]\x00=
    | \d\x00[ ]?(?:[%‰°٪]|[$¢£¥₤₹₺€](?![ ]?\w)) | \d\x00["'+](?!\w)  # 20 %, 20 €, 5', 18+
    """,
    re.VERBOSE,
)
_AFTER_NEGATION = re.compile(
    r"""(?:(?<!\w)(?:not|no|never|cannot|without|nor|neither|لا|لم|لن|ليس|ليست|غير|بدون)|n't)[ *_"(]{1,4}\x00
    | [不没未勿非无]\x00""",
    re.VERBOSE | re.IGNORECASE,
)
_BEFORE_NEGATION = re.compile(
    r"""\w["*_)]*\x00[ *_"]{0,4}
    (?:(?:not|no|never|cannot|n't|değil\w*|yok(?:tu|tur|muş|sa)?|لا|لم|لن|ليس|ليست|غير)(?!\w)|[不没未勿])""",
    re.VERBOSE | re.IGNORECASE,
)


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
    return _find(fold(quote), fold(text))


def _find(quote: Folded, source: Folded) -> tuple[int, int] | None:
    quote, source = agree(quote, source)
    for words in _readings(quote.text.strip()):
        for first in _occurrences(words, source):
            last = first + len(words)
            if _may_begin(source, first) and _may_end(source, last):
                return source.span(first, last)
    return None


def _readings(words: str) -> Iterator[str]:
    """Yield the quote as it is, then without a capital that only begins the quote."""
    if sum(map(str.isalnum, words)) < _LEAST:
        return
    yield words
    first, rest = words[0], words[1:]
    if first.isupper():
        # A Turkish capital of ı looks like the capital of i; İ in lower case is two characters.
        yield from (small + rest for small in {"İ": "i", "I": "iı"}.get(first, first.lower()))


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


def _may_begin(source: Folded, at: int) -> bool:
    return at == 0 or (_may_cut(source, at) and not _AFTER_NEGATION.search(_around(source, at)))


def _may_end(source: Folded, at: int) -> bool:
    return at == len(source.text) or (_may_cut(source, at) and not _BEFORE_NEGATION.search(_around(source, at)))


def _may_cut(source: Folded, at: int) -> bool:
    """Say whether a passage may begin or end between two characters."""
    return (
        source.parts(at)
        and not joined(source.text[at - 1], source.text[at])
        and not _BROKEN.search(_around(source, at))
        and not _grouped(source, at)
    )


def _around(source: Folded, at: int) -> str:
    """Return what stands on both sides, with the dashes that part words as they were."""
    start = max(0, at - _BESIDE)
    near = source.text[start : at + _BESIDE]
    if "-" in near:
        near = "".join(_dash(source, start + place) if char == "-" else char for place, char in enumerate(near))
    return f"{near[: at - start]}\0{near[at - start :]}"


def _dash(source: Folded, at: int) -> str:
    """Return an em dash, or an en dash between letters, as it was: it parts two words, where a hyphen joins them."""
    start, end = source.came_from(at)
    written = source.original[start:end]
    numbers = any(map(str.isnumeric, source.text[max(0, at - 1) : at + 2]))
    return written if written in {"—", "―"} or (written == "–" and not numbers) else "-"


def _grouped(source: Folded, at: int) -> bool:
    """Say whether a number with a no-break space between its groups, as in "1 000", would be cut."""
    for space in (at - 1, at):
        if source.text[space] == " " and 0 < space < len(source.text) - 1:
            beside = source.text[space - 1] + source.text[space + 1]
            written = source.original[slice(*source.came_from(space))]
            if beside.isdecimal() and written in {"\u00a0", "\u2007", "\u2009", "\u202f"}:
                return True
    return False


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

    on_fail: OnFail = "flag"
    require: bool = False

    def __post_init__(self) -> None:
        if self.on_fail not in get_args(OnFail):
            raise ConfigurationError(f"on_fail is {self.on_fail!r}; it must be one of {get_args(OnFail)}")
        if type(self.require) is not bool:
            raise ConfigurationError(f"require is {self.require!r}; it must be True or False")

    @property
    def name(self) -> str:
        """The name in results."""
        return "quotes"

    def check(self, context: CheckContext) -> CheckResult:
        """Judge one answer; see the class."""
        if not context.claims:
            return CheckResult(name=self.name, status="skipped", detail="the answer does not come in claims")
        shelf = _Shelf(context)
        quoted = [claim for claim in context.claims if claim.quote.strip()]
        matches = [shelf.look_up(claim) for claim in quoted]
        wrong = [claim for claim, match in zip(quoted, matches, strict=True) if match.key is None]
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
        self._folded: dict[str, Folded] = {}

    def look_up(self, claim: AnswerClaim) -> QuoteMatch:
        """Find the quote of a claim, nearest source first."""
        if len(claim.quote) <= MAX_QUOTE:
            written = [fold(text) for text in _wordings(claim.quote)]
            # A dict keeps the order and drops what comes twice.
            for key in dict.fromkeys([*claim.keys, *self._context.cited, *self._context.sources]):
                for found in (_find(quote, source) for source in self._source(key) for quote in written):
                    if found:
                        return self._match(claim, key, *found)
        return QuoteMatch(quote=claim.quote, keys=claim.keys)

    def _source(self, key: str) -> Iterator[Folded]:
        if key in self._context.sources:
            if key not in self._folded:
                self._folded[key] = fold(self._context.sources[key].text)
            yield self._folded[key]

    def _match(self, claim: AnswerClaim, key: str, start: int, end: int) -> QuoteMatch:
        text = self._context.sources[key].text[start:end]
        moved = key not in claim.keys
        return QuoteMatch(quote=claim.quote, keys=claim.keys, key=key, start=start, end=end, text=text, moved=moved)


def _wordings(quote: str) -> Iterator[str]:
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
