"""The quickstart's command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

READABLE = {"customer": ["customer"], "staff": ["customer", "staff"]}
"""The audiences whose pages each reader may see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for."""

    question: str
    audience: str
    min_score: float | None
    """Threshold for the best score; None where the user named none."""
    json: bool
    preview: bool
    reingest: bool
    offline: bool
    model: str
    embed_model: str

    @property
    def readable(self) -> list[str]:
        """The audiences whose pages this reader may see."""
        return READABLE[self.audience]


def parse(argv: Sequence[str] | None) -> Options:
    """Read the command line; what makes no sense ends in argparse's usage line and exit code 2."""
    parser = argparse.ArgumentParser(description="Ask the bookstore's help pages a question.")
    add = parser.add_argument
    add("question", nargs="+", type=_question)
    add("--audience", choices=sorted(READABLE), default="customer", help="whose pages may be read")
    add("--min-score", type=_score, help="refuse when the best score is lower; built in for wordllama only")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the whole result as JSON")
    form.add_argument("--preview", action="store_true", help="print what would be sent, and call no model")
    add("--reingest", action="store_true", help="store the pages again")
    add("--offline", action="store_true", help="use the built-in models even where an Ollama answers")
    add("--model", default="gemma3:4b", help="chat model on Ollama")
    add("--embed-model", default="nomic-embed-text", help="embedding model on Ollama")
    found: dict[str, Any] = vars(parser.parse_args(argv))
    # Words that the shell has split are one question.
    found["question"] = " ".join(found["question"])
    return Options(**found)


def _question(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("ask something")
    if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise argparse.ArgumentTypeError("the question is not in the terminal's encoding")
    return text


def _score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise argparse.ArgumentTypeError(f"not a finite number: {text!r}")
    return score
