"""Measure how well NumberCheck tells unsupported answers from supported ones.

    python -m bench.number_check --data FOLDER

Each answer is checked against its own evidence, all of which counts as cited. "Unsupported" is what people marked as
unsupported; FaithBench's "benign" and "questionable" answers are left out. An answer without a number can not fail, so
the second row of each set counts only answers that have one.

FOLDER holds ``faithbench.dev.jsonl`` and ``halueval_qa.dev.jsonl`` (``question``, ``context``, ``answer`` or ``claim``,
``label``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.sets import answer_of, as_cited, parse_with_data, rows_of
from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.schema import CheckResult

SETS = ("faithbench", "halueval_qa")
NO_NUMBERS = "the answer has no numbers"
HEAD = (
    *("set", "answers", "rows", "base rate", "precision", "recall", "flagged, unsupported", "false fail"),
    *("false pass", "passed, supported"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What people and the check say of one answer."""

    unsupported: bool
    result: CheckResult
    answer: str

    @property
    def flagged(self) -> bool:
        """Whether the check fails."""
        return self.result.status == "failed"

    @property
    def has_number(self) -> bool:
        """Whether there was something to check."""
        return self.result.detail != NO_NUMBERS


def main() -> int:
    """Print the table, and with ``--show`` each wrong judgement."""
    options = _parse()
    check = NumberCheck(allow_derived=options.allow_derived)
    print(_line(HEAD))
    print(_line(["---"] * len(HEAD)))
    for name in SETS:
        outcomes = judge(check, rows_of(options.data / f"{name}.dev.jsonl"))
        print(_line([name, "all", *figures(outcomes)]))
        print(_line([name, "with a number", *figures([outcome for outcome in outcomes if outcome.has_number])]))
        for outcome in outcomes if options.show else ():
            if outcome.flagged is not outcome.unsupported and outcome.has_number:
                kind = "false fail" if outcome.flagged else "false pass"
                print(f"{kind}: {outcome.result.detail} | {outcome.answer.strip()}", file=sys.stderr)
    return 0


def judge(check: NumberCheck, rows: Iterable[dict[str, Any]]) -> list[Outcome]:
    """Check each answer that people call supported or unsupported."""
    return [
        Outcome(
            unsupported=row["label"] == "unsupported",
            result=check.check(as_cited(row["question"] or "", answer_of(row), row["context"])),
            answer=answer_of(row),
        )
        for row in rows
        if row["label"] in {"supported", "unsupported"}
    ]


def figures(outcomes: list[Outcome]) -> list[str]:
    """Return rows, base rate, precision, recall and the four counts."""
    counts = {
        (unsupported, flagged): sum((o.unsupported, o.flagged) == (unsupported, flagged) for o in outcomes)
        for unsupported in (True, False)
        for flagged in (True, False)
    }
    hit, missed = counts[True, True], counts[True, False]
    false, right = counts[False, True], counts[False, False]
    return [
        str(len(outcomes)),
        _share(hit + missed, len(outcomes)),
        _share(hit, hit + false),
        _share(hit, hit + missed),
        *map(str, (hit, false, missed, right)),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "–"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure NumberCheck on labelled answers.")
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the labelled answers")
    add("--allow-derived", action="store_true", help="also allow sums, differences and percentages")
    add("--show", action="store_true", help="print each wrong judgement of an answer with numbers to stderr")
    return parse_with_data(parser, [f"{name}.dev.jsonl" for name in SETS])


if __name__ == "__main__":
    sys.exit(main())
