"""Check that every number of the answer stands in a cited source or in the question.

`quantities` says what is a number and how notations compare, `number_support` when one stands in a text. On top:

* A claim with sources of its own is looked up in these and in the source in which its quote was found, everything else
  in all cited sources; ``scope="all"`` looks in every source of the prompt. A source is its included text and what else
  the model saw of it: its title, section, date. Both ends of a range, and both parts of a date, must stand in one of
  them (or in the question).
* What `not_said` names (citations, keys, numbers of lists and headings) is no number of the answer; nor are digits
  between letters (``B2B``) and words that are often no number ("one", "bir", "first", "half"). In a source these count.
* Numbers in code are checked, and count, like all others; numbers in URLs do neither.
* No number in the answer: ``passed``, and the detail says so, for there is nothing that could be wrong. No source in
  the prompt: ``skipped``. An answer that cites nothing has its numbers looked up in the question only.

What it can not see: a number that stands in the source for something else. Where a source says "50–199 copies: 15 %;
200 and more: 22 %", an answer that promises 22 % for 120 copies passes. Nor does it know names, most units (of time,
length and weight it does), or that "-5 %" is "fell by 5 %". The value alone counts: ``3.10`` is ``3.1`` unless one of
them is called a version. "Two books" passes where the source has three of them. A weekday or month without a day,
"twice a week", "half price", "millions of" and "Chapter IV" are no numbers to it: what a source leaves open about them,
by a range, a season or other words, can not be told from a fault.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar, Literal

from llama_index_grounded._allowed import need_flag, need_one_of
from llama_index_grounded.checks.claim_sources import claim_sources
from llama_index_grounded.checks.not_said import not_said
from llama_index_grounded.checks.number_sums import Sums
from llama_index_grounded.checks.number_support import Facts, stands
from llama_index_grounded.schema import CheckResult, Span
from llama_index_grounded.synthesis.checking import CheckContext, OnFail
from llama_index_grounded.text.composed import composed
from llama_index_grounded.text.number_forms import Quantity
from llama_index_grounded.text.quantities import quantities

__all__ = ["NumberCheck", "Scope"]

Scope = Literal["cited", "all"]
"""Where a number may stand: in what is cited for it, or in any source of the prompt."""

_NAMED = 20
_SHOWN = 40
_MOST_DERIVED = 50


@dataclass(frozen=True, kw_only=True)
class NumberCheck:
    """Every number, percentage, amount, date, time and version of the answer stands in a cited source or the question.

    Args:
        on_fail: What becomes of an answer that fails: ``"flag"``, ``"refuse"`` or ``"retry"``.
        allow_derived: Also allow the sum or difference of two numbers of one cited source (or the question), and a
            percentage of a number by a percentage of the source, and the percentage that one number is of another. The
            detail names each. Only the first 50 numbers that stand nowhere are tried.
        scope: ``"cited"`` looks in the cited sources, ``"all"`` in all sources of the prompt.

    Raises:
        ConfigurationError: When an option has another value.

    Example:
        >>> from llama_index_grounded.schema import SourceRef
        >>> from llama_index_grounded.synthesis.checking import ShownSource
        >>> ref = SourceRef(key="S1", node_id="n", document_id="d", chunk_id="c")
        >>> context = CheckContext(
        ...     question="How long?",
        ...     answer="Within 30 days [S1].",
        ...     sources={"S1": ShownSource(ref=ref, text="Return it within 14 days.")},
        ...     cited=("S1",),
        ... )
        >>> NumberCheck().check(context).detail
        '"30" stands in no cited source'
    """

    local: ClassVar[bool] = True
    """It asks nobody, so it runs though the time of the query is over."""

    on_fail: OnFail = "flag"
    allow_derived: bool = False
    scope: Scope = "cited"

    def __post_init__(self) -> None:
        """Refuse what an option can not be."""
        need_one_of("on_fail", self.on_fail, OnFail)
        need_one_of("scope", self.scope, Scope)
        need_flag("allow_derived", self.allow_derived)

    @property
    def name(self) -> str:
        """The name in results."""
        return "numbers"

    def check(self, context: CheckContext) -> CheckResult:
        """Look up every number of the answer."""
        if not context.sources:
            return CheckResult(name=self.name, status="skipped", detail="there is no source to look in")
        found = list(_numbers_of(context))
        if not found:
            return CheckResult(name=self.name, status="passed", detail="the answer has no numbers")
        lookup = _Lookup(context, everywhere=self.scope == "all")
        missing = [quantity for quantity in found if not lookup.supported(quantity)]
        ways = lookup.derivations(missing[:_MOST_DERIVED]) if self.allow_derived else {}
        missing = [quantity for quantity in missing if quantity.start not in ways]
        derived = _listed(list(ways.values()))
        if missing:
            detail = _listed([lookup.fault(quantity) for quantity in missing])
            spans = tuple(Span(start=quantity.start, end=quantity.end) for quantity in missing)
            detail = f"{detail}; derived: {derived}" if derived else detail
            return CheckResult(name=self.name, status="failed", detail=detail, spans=spans)
        detail = f"derived: {derived}" if derived else f"numbers found: {len(found)} of {len(found)}"
        return CheckResult(name=self.name, status="passed", detail=detail)


class _Lookup:
    """The texts in which the numbers of one answer may stand."""

    def __init__(self, context: CheckContext, *, everywhere: bool) -> None:
        self._context = context
        self._everywhere = everywhere
        self._asked = Facts.of(context.question)
        self._read: dict[str, Facts] = {}
        self._claims = sorted(context.claims, key=lambda claim: claim.start)
        self._starts = [claim.start for claim in self._claims]

    def supported(self, quantity: Quantity) -> bool:
        """Return whether a quantity stands in one of its sources, or in the question."""
        keys = self._keys(quantity)
        return self._stands_in(quantity, keys) is not None or stands(quantity, (self._asked,))

    def derivations(self, missing: Sequence[Quantity]) -> dict[int, str]:
        """Return how quantities follow from others, by their first character."""
        ways: dict[int, str] = {}
        sums: dict[str, Sums] = {}
        for quantity in missing:
            written = self._written(quantity)
            for key in self._keys(quantity):
                if key not in sums:
                    sums[key] = Sums(self._facts(key), self._asked)
                way = sums[key].derive(quantity, written)
                if way is not None:
                    ways[quantity.start] = way
                    break
        return ways

    def fault(self, quantity: Quantity) -> str:
        """Return one sentence on where a quantity was looked for and where else it stands."""
        other = None if self._everywhere else self._stands_in(quantity, tuple(self._context.sources))
        where = (
            "source" if self._everywhere else "cited source" if self._claim(quantity) is None else "source of its claim"
        )
        elsewhere = f", but in {other}" if other is not None else ""
        bare = replace(quantity, measure="")
        measured = bool(quantity.measure) and not elsewhere and self.supported(bare)
        unit = f" as a number of {quantity.measure}s, only without that unit" if measured else ""
        return f'"{self._written(quantity)}" stands in no {where}{elsewhere}{unit}'

    def _written(self, quantity: Quantity) -> str:
        text = " ".join(self._context.answer[quantity.start : quantity.end].split())
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

    def _stands_in(self, quantity: Quantity, keys: Sequence[str]) -> str | None:
        return next((key for key in keys if stands(quantity, (self._facts(key), self._asked))), None)

    def _claim(self, quantity: Quantity) -> tuple[str, ...] | None:
        """Return the sources of the claim in which a quantity stands."""
        place = bisect_right(self._starts, quantity.start) - 1
        claim = self._claims[place] if place >= 0 else None
        if claim is None or quantity.start >= claim.end:
            return None
        return claim_sources(claim, self._context)

    def _keys(self, quantity: Quantity) -> tuple[str, ...]:
        if self._everywhere:
            return tuple(self._context.sources)
        own = self._claim(quantity)
        return self._context.cited if own is None else own

    def _facts(self, key: str) -> Facts:
        if key not in self._read:
            source = self._context.sources[key]
            self._read[key] = Facts.of(source.text, *source.shown.values())
        return self._read[key]


def _numbers_of(context: CheckContext) -> Iterator[Quantity]:
    """Yield the quantities of the answer that are to be found in a source."""
    regions = sorted(not_said(context.answer, context.sources))
    starts = [start for start, _ in regions]
    # One region may lie in another; what counts is how far those that have begun reach.
    reaches = list(accumulate((end for _, end in regions), max))
    for quantity in _read(context.answer):
        place = bisect_right(starts, quantity.start) - 1
        if quantity.certain and (place < 0 or quantity.end > reaches[place]):
            yield quantity


def _read(answer: str) -> list[Quantity]:
    """Return the quantities of an answer, read as sources are: a letter and its mark may stand there as one."""
    text, places = composed(answer)
    return [replace(one, start=places[one.start], end=places[one.end]) for one in quantities(text)]


def _listed(sentences: Sequence[str]) -> str:
    """Return each sentence once, and how many there are more."""
    different = list(dict.fromkeys(sentences))
    more = f"; and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return "; ".join(different[:_NAMED]) + more
