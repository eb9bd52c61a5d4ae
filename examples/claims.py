"""An answer in claims: each quote is looked for in the sources, and each number.

    sh uvw run --locked --extra demo --no-dev examples/claims.py

A script plays the model: it answers right, with a quote from another source than it names, with a quote that nobody
wrote, and with a number that no source has. See what the checks report, and what becomes of the answer (``on_fail``).
"""

from __future__ import annotations

import sys
from typing import Any

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.checks import AnswerCheck, NumberCheck, QuoteCheck
from llama_index_grounded.schema import GroundedResult
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from support.command import start

QUESTION = "How long can I return a book, and when do I get my money?"
NODES = make_nodes(
    [
        "Printed books can be returned within 21 days of delivery.",
        "The money goes back to you within 5 working days after the book has reached our warehouse.",
    ]
)


def claim(text: str, quote: str, source: str) -> dict[str, Any]:
    """Write a claim as a model does."""
    return {"sources": [source], "quote": quote, "text": text}


WINDOW = claim("You have 21 days.", quote="within 21 days of delivery", source="S1")
RIGHT = [WINDOW, claim("The money comes within 5 working days.", quote="within 5 working days", source="S2")]
MOVED = [WINDOW, claim("The money comes within 5 working days.", quote="within 5 working days", source="S1")]
INVENTED = [WINDOW, claim("The money comes at once.", quote="The money goes back at once", source="S2")]
MISCOUNTED = [WINDOW, claim("The money comes within 3 working days.", quote="The money goes back to you", source="S2")]


def main() -> None:
    """Ask with checks that flag, refuse, and ask again."""
    flag: list[AnswerCheck] = [QuoteCheck(), NumberCheck()]
    again: list[AnswerCheck] = [QuoteCheck(), NumberCheck(on_fail="retry")]
    show("A right answer", ask([RIGHT], flag))
    show("A quote from another source than it names", ask([MOVED], flag))
    show("An invented quote, on_fail='flag'", ask([INVENTED], flag))
    show("An invented quote, on_fail='refuse'", ask([INVENTED], [QuoteCheck(on_fail="refuse"), NumberCheck()]))
    show("A wrong number, on_fail='flag'", ask([MISCOUNTED], flag))
    show("A wrong number, on_fail='retry', then a right one", ask([MISCOUNTED, RIGHT], again))
    show("A wrong number, on_fail='retry', twice", ask([MISCOUNTED, MISCOUNTED], again))


def ask(claims: list[list[dict[str, Any]]], checks: list[AnswerCheck]) -> GroundedResult:
    """Play one reply after the other, and check what comes out."""
    replies = [{"verdict": "answered", "sources": ["S1", "S2"], "claims": each} for each in claims]
    synthesizer = CitingSynthesizer(ScriptedLLM(replies), output_cls=ClaimedAnswer, checks=checks)
    return synthesizer.synthesize(QUESTION, NODES).grounded


def show(title: str, result: GroundedResult) -> None:
    """Print the answer or the refusal, and what each check found."""
    print(f"{title}\n  {result.answer}")
    print(f"  refusal: {result.refusal.reason if result.refusal else 'none'}; model calls: {result.llm_calls}")
    for check in result.checks:
        print(f"  {check.name} {check.status}{': ' * bool(check.detail)}{check.detail}")
        for quote in check.quotes:
            place = f"in {quote.key}, characters {quote.start} to {quote.end}" if quote.key else "nowhere"
            print(f"    {quote.quote!r} stands {place}")
        # Spans count in the answer that was checked; the text of a refusal is another one.
        for span in check.spans if result.answerable else ():
            print(f"    failed: {result.answer[span.start : span.end]!r}")
    print()


if __name__ == "__main__":
    sys.exit(start("claims", main))
