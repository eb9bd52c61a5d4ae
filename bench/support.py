"""Measure how well OverlapCheck tells unsupported answers from supported ones.

    python -m bench.support --data FOLDER

Each answer is checked against its own evidence, all of which counts as cited. FaithBench's "benign" answers (true, but
not in the source) count as supported; its "questionable" ones, WiCE's "partial" and BEGIN's "generic" are left out.

The first table ranks: AUROC of the score, of the mean over the sentences instead of the weakest one, and of two things
that look at no evidence or at little: shortness alone, and whether NumberCheck passes. In HaluEval the right answers
are short and cut from the evidence, the invented ones whole sentences, so a high figure there says little. "swapped"
takes the supported answers of FaithBench with three or more sentences, and the same with one sentence from another
answer.

The second table decides. "Chosen on the other folds" is the greatest threshold at which at most a fifth of the
supported answers fail, as a mean over the sets, on four fifths of the groups; it is judged on the last fifth. The
default was chosen in the same way on all rows, so the other line says what such a choice is worth on new answers.

FOLDER holds ``faithbench``, ``halueval_qa``, ``begin_wow`` and ``wice`` as ``NAME.dev.jsonl`` (``question``,
``context``, ``answer`` or ``claim``, ``label``, ``group``).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bench.sets import answer_of, as_cited, parse_with_data, rows_of
from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.checks.overlap import DEFAULT_THRESHOLD, OverlapCheck, support
from llama_index_grounded.checks.sentences import Part, claims_something, sentences
from llama_index_grounded.synthesis.checking import CheckContext

SETS = ("faithbench", "halueval_qa", "begin_wow", "wice")
LABELS = {"supported": True, "benign": True, "unsupported": False}
FOLDS = 5
THRESHOLDS = [step / 20 for step in range(20)]
MOST_FAILING = 0.2
LEAST_SENTENCES = 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """One labelled answer."""

    group: str
    question: str
    context: tuple[str, ...]
    answer: str
    supported: bool

    @property
    def fold(self) -> int:
        """The fold, the same for all answers of a group."""
        return int(hashlib.sha256(self.group.encode()).hexdigest(), 16) % FOLDS

    @property
    def given(self) -> CheckContext:
        """What a check is given."""
        return as_cited(self.question, self.answer, self.context)

    @cached_property
    def score(self) -> float:
        """What OverlapCheck says; an answer that it skips passes."""
        score = OverlapCheck().check(self.given).score
        return 1.0 if score is None else score

    @cached_property
    def mean(self) -> float:
        """The mean over the sentences."""
        parts = claims(self.answer)
        values = [support(part.text, self.context, self.question) for part in parts]
        return sum(values) / len(values) if values else 1.0

    @cached_property
    def numbers(self) -> float:
        """1 unless NumberCheck fails."""
        return float(NumberCheck().check(self.given).status != "failed")

    @property
    def shortness(self) -> float:
        """Higher for shorter answers."""
        return -float(len(self.answer.split()))


def main() -> int:
    """Print the tables."""
    folder = _parse().data
    sets = {name: cases(folder / f"{name}.dev.jsonl") for name in SETS}
    measured = {**sets, "swapped": swapped(sets["faithbench"])}
    measures: dict[str, Callable[[Case], float]] = {
        "weakest sentence": lambda case: case.score,
        "mean": lambda case: case.mean,
        "shortness": lambda case: case.shortness,
        "NumberCheck": lambda case: case.numbers,
    }
    table(
        ("AUROC", "supported", "unsupported", *measures),
        (
            [name, str(sum(case.supported for case in rows)), str(sum(not case.supported for case in rows))]
            + [f"{auroc(rows, measure):.3f}" for measure in measures.values()]
            for name, rows in measured.items()
        ),
    )
    print()
    table(
        ("decision", "unsupported that pass", "supported that fail", "balanced accuracy"),
        [[f"{name}, {rule}", *errors(judged)] for name, rows in sets.items() for rule, judged in rules(rows, sets)],
    )
    return 0


Judged = list[tuple[bool, bool]]


def rules(rows: Sequence[Case], sets: dict[str, list[Case]]) -> Iterable[tuple[str, Judged]]:
    """Yield each way to decide, and for each answer whether it is supported and whether it passes."""
    yield f"at {DEFAULT_THRESHOLD}", [(case.supported, case.score >= DEFAULT_THRESHOLD) for case in rows]
    chosen = [chosen_threshold(sets, without=fold) for fold in range(FOLDS)]
    shown = "/".join(map(str, chosen))
    yield f"chosen on the other folds ({shown})", [(case.supported, case.score >= chosen[case.fold]) for case in rows]
    yield "NumberCheck", [(case.supported, case.numbers > 0) for case in rows]
    both = [(case.supported, case.score >= DEFAULT_THRESHOLD and case.numbers > 0) for case in rows]
    yield "both", both


def chosen_threshold(sets: dict[str, list[Case]], *, without: int) -> float:
    """Return the greatest threshold at which few supported answers fail on all folds but one."""

    def failing(threshold: float) -> float:
        kept = [[case for case in rows if case.fold != without and case.supported] for rows in sets.values()]
        return sum(_share([case.score < threshold for case in rows]) for rows in kept) / len(kept)

    return max(threshold for threshold in THRESHOLDS if failing(threshold) <= MOST_FAILING)


def error_rates(judged: Judged) -> tuple[float, float]:
    """Return the share of unsupported answers that pass and of supported ones that fail."""
    passed = {truth: [passes for supported, passes in judged if supported is truth] for truth in (True, False)}
    return _share(passed[False]), 1 - _share(passed[True])


def errors(judged: Judged) -> list[str]:
    """Return both error rates and the balanced accuracy."""
    false_pass, false_fail = error_rates(judged)
    return [f"{false_pass:.2f}", f"{false_fail:.2f}", f"{1 - (false_pass + false_fail) / 2:.2f}"]


def auroc(rows: Iterable[Case], measure: Callable[[Case], float]) -> float:
    """Return how often a supported answer has the higher value, ties counted half."""
    values = [(case.supported, measure(case)) for case in rows]
    good = [value for supported, value in values if supported]
    bad = [value for supported, value in values if not supported]
    return sum((one > other) + (one == other) / 2 for one in good for other in bad) / (len(good) * len(bad))


def swapped(rows: Sequence[Case]) -> list[Case]:
    """Return supported answers of some length, and each with one sentence from the answer of another group."""
    good = [case for case in rows if case.supported]
    found: list[Case] = []
    for at, case in enumerate(good):
        parts = claims(case.answer)
        if len(parts) >= LEAST_SENTENCES:
            other = next(other for other in good[at + 1 :] + good if other.group != case.group)
            out, into = parts[at % len(parts)], claims(other.answer)
            answer = case.answer[: out.start] + into[at % len(into)].text + case.answer[out.end :]
            found += [case, replace(case, answer=answer, supported=False)]
    return found


def claims(answer: str) -> list[Part]:
    """Return the sentences that claim something."""
    return [part for part in sentences(answer) if claims_something(part.text)]


def cases(path: Path) -> list[Case]:
    """Read the answers that people call supported or unsupported."""
    return [
        Case(
            group=row["group"],
            question=row["question"] or "",
            context=tuple(row["context"]),
            answer=answer_of(row),
            supported=LABELS[row["label"]],
        )
        for row in rows_of(path)
        if row["label"] in LABELS
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table."""
    for cells in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(cells)} |")


def _share(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure OverlapCheck on labelled answers.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the labelled answers")
    return parse_with_data(parser, [f"{name}.dev.jsonl" for name in SETS])


if __name__ == "__main__":
    sys.exit(main())
