"""Measure the cheap filter for disagreeing sources, alone: nobody confirms what it finds.

    python -m bench.conflicts --data FOLDER

Two documents of a question truly conflict if both say what the answer is and they share no answer (``says`` of the
version sets, ``answer`` of ramdocs, "unknown" apart). Precision and recall of pairs count every such pair; those of
questions count whether anything is found where anything is. The base rate is the share of pairs, or questions, that
conflict: the precision of a filter that flags all of them. FOLDER holds ``NAME.dev.jsonl``, and ``NAME.corpus.jsonl``
where the texts stand apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.sets import parse_with_data, rows_of
from llama_index_grounded.selection.disagreement import Disagreement, disagreements

SETS = ("ramdocs", "etcd_versions", "site_policy_versions")
WITH_PAGES = SETS[1:]
"""Sets whose texts stand in a file of their own."""
FILES = [*(f"{name}.dev.jsonl" for name in SETS), *(f"{name}.corpus.jsonl" for name in WITH_PAGES)]


@dataclass(frozen=True)
class Question:
    """A question, its documents, and which pairs of them conflict."""

    text: str
    texts: list[str]
    documents: list[str]
    conflicts: set[tuple[int, int]]


@dataclass
class Score:
    """How often what was flagged is right, and what is right was flagged."""

    right: int = 0
    flagged: int = 0
    real: int = 0
    all: int = 0

    def add(self, *, flagged: bool, real: bool) -> None:
        """Count one case."""
        self.right += flagged and real
        self.flagged += flagged
        self.real += real
        self.all += 1

    def cells(self) -> str:
        """Return base rate, precision and recall as cells of a table."""
        pairs = ((self.real, self.all), (self.right, self.flagged), (self.right, self.real))
        return " | ".join(f"{some / of:.0%} ({some}/{of})" if of else "–" for some, of in pairs)


@dataclass
class Result:
    """What was measured on one set."""

    pairs: Score = field(default_factory=Score)
    questions: Score = field(default_factory=Score)
    first: Score = field(default_factory=Score)
    seconds: float = 0.0

    def add(self, question: Question, found: list[Disagreement]) -> None:
        """Count one question."""
        flagged = {(one.first, one.second) for one in found}
        count = len(question.texts)
        for pair in ((one, other) for one in range(count) for other in range(one + 1, count)):
            self.pairs.add(flagged=pair in flagged, real=pair in question.conflicts)
        self.questions.add(flagged=bool(found), real=bool(question.conflicts))
        if found:
            self.first.add(flagged=True, real=(found[0].first, found[0].second) in question.conflicts)


def questions(data: Path, name: str) -> list[Question]:
    """Read one set."""
    pages = rows_of(data / f"{name}.corpus.jsonl") if name in WITH_PAGES else []
    corpus = {row["doc_id"]: row["text"] for row in pages}
    found: list[Question] = []
    for row in rows_of(data / f"{name}.dev.jsonl"):
        docs = row["docs"]
        says = [_says(doc) for doc in docs]
        conflicts = {
            (one, other)
            for one in range(len(docs))
            for other in range(one + 1, len(docs))
            if says[one] and says[other] and not says[one] & says[other]
        }
        texts = [str(doc.get("text") or corpus[doc["doc_id"]]) for doc in docs]
        if docs:
            found.append(Question(row["question"], texts, [doc["doc_id"] for doc in docs], conflicts))
    return found


def _says(doc: dict[str, Any]) -> set[str]:
    answers = doc["says"] if "says" in doc else [doc.get("answer")]
    return {str(answer).casefold() for answer in answers if answer not in (None, "", "unknown")}


def measure(asked: list[Question]) -> Result:
    """Run the filter on every question."""
    result = Result()
    for question in asked:
        started = time.process_time()
        found = disagreements(question.texts, question.documents, question.text)
        result.seconds += time.process_time() - started
        result.add(question, found)
    return result


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure the filter for disagreeing sources.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--show", action="store_true", help="print what was wrong to stderr")
    options = parse_with_data(parser, FILES)
    print("| set | of | base rate | precision | recall | first finding right | ms per question |")
    print("|---|---|---|---|---|---|---|")
    for name in SETS:
        asked = questions(options.data, name)
        result = measure(asked)
        first = f"{result.first.real}/{result.first.all}"
        speed = f"{result.seconds / max(len(asked), 1) * 1e3:.1f}"
        print(f"| {name} | pairs | {result.pairs.cells()} | {first} | {speed} |")
        print(f"| {name} | questions | {result.questions.cells()} | | |")
        if options.show:
            _show(asked)
    return 0


def _show(asked: list[Question]) -> None:
    for question in asked:
        for one in disagreements(question.texts, question.documents, question.text):
            if (one.first, one.second) not in question.conflicts:
                print(f"{one.score:.2f} {one.detail!r} for {question.text!r}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
