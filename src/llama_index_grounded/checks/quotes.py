"""Check that the quotes of an answer stand in the sources, word for word; `quote_places` says what may differ.

Place: a check of `CitingSynthesizer`, for answers that come in claims. It finds where words stand, not whether they
support the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from llama_index_grounded._allowed import need_flag, need_one_of
from llama_index_grounded.checks.folding import Folded, fold
from llama_index_grounded.checks.quote_places import LEAST_SIGNS, Source, cut_in, find, find_quote
from llama_index_grounded.schema import AnswerClaim, CheckResult, QuoteMatch, Span
from llama_index_grounded.synthesis.checking import CheckContext, OnFail

__all__ = ["MAX_QUOTE", "QuoteCheck", "find_quote"]

MAX_QUOTE = 10_000
"""Characters of the longest quote that is looked for."""
_SHOWN = 80
_MARKS = "\"'"


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
            detail="; ".join(
                [*map(shelf.remark, filter(_remarkable, matches)), *(["a claim has no quote"] * len(bare))]
            ),
            spans=tuple(Span(start=claim.start, end=claim.end) for claim in failed),
            quotes=tuple(matches),
        )


class _Shelf:
    """The sources of one answer, each folded once, when it is first needed."""

    def __init__(self, context: CheckContext) -> None:
        self._context = context
        self._folded: dict[str, Source] = {}
        self._wordings: dict[str, list[Folded]] = {}

    def look_up(self, claim: AnswerClaim, place: int) -> QuoteMatch:
        """Find the quote of a claim, nearest source first."""
        if len(claim.quote) <= MAX_QUOTE:
            written = self._written(claim.quote)
            for key in self._keys(claim.keys):
                if found := find(written, self._source(key)):
                    return self._match(claim, place, key, *found)
        return QuoteMatch(quote=claim.quote, keys=claim.keys, claim=place)

    def remark(self, match: QuoteMatch) -> str:
        """Say where a quote stands that is not where its claim says, or that it stands nowhere."""
        shown, named = _shown(match.quote), ", ".join(match.keys) or "no source"
        if match.key is not None:
            return f"{shown!r} stands in {match.key}, named was {named}"
        if len(match.quote) > MAX_QUOTE:
            return f"{shown!r} is longer than {MAX_QUOTE} characters"
        if sum(map(str.isalnum, match.quote)) < LEAST_SIGNS:
            return f"{shown!r} is too short to prove anything"
        written = self._written(match.quote)
        for key in self._keys(match.keys):
            if part := cut_in(written, self._source(key)):
                return f"{shown!r} stands in {key} only as a part of {_ends(part)!r}: the cut changes what it says"
        return f"{shown!r} stands in no source, named was {named}"

    def _written(self, quote: str) -> list[Folded]:
        if quote not in self._wordings:
            self._wordings[quote] = [fold(text) for text in _wordings(quote, self._context.unescape)]
        return self._wordings[quote]

    def _keys(self, named: tuple[str, ...]) -> list[str]:
        """Return the sources in the order in which they are looked in."""
        # A dict keeps the order and drops what comes twice.
        keys = dict.fromkeys([*named, *self._context.cited, *self._context.sources])
        return [key for key in keys if key in self._context.sources]

    def _source(self, key: str) -> Source:
        if key not in self._folded:
            self._folded[key] = Source(self._context.sources[key].text)
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
        if len(marked) > LEAST_SIGNS and marked[0] == marked[-1] and marked[0] in _MARKS:
            yield text.strip()[1:-1]


def _remarkable(match: QuoteMatch) -> bool:
    return match.key is None or match.moved


def _shown(quote: str) -> str:
    return quote if len(quote) <= _SHOWN else f"{quote[:_SHOWN]}…"


def _ends(passage: str) -> str:
    """Return a long passage without its middle: it is cut at one of its ends."""
    half = _SHOWN // 2
    return passage if len(passage) <= _SHOWN else f"{passage[:half]}…{passage[-half:]}"
