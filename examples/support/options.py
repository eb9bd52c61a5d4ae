"""The quickstart's command line."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

READABLE = {"customer": ["customer"], "staff": ["customer", "staff"]}
"""The audiences whose pages each reader may see."""
MODEL, EMBED_MODEL = "gemma3:4b", "nomic-embed-text"
"""Models of an Ollama server, where the user names none."""


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
    model: str | None
    embed_model: str | None
    """Models of an Ollama server; None where the user named none."""

    @property
    def readable(self) -> list[str]:
        """The audiences whose pages this reader may see."""
        return READABLE[self.audience]

    @property
    def models(self) -> tuple[str, str]:
        """The chat model and the embedding model that an Ollama server must have."""
        return (
            MODEL if self.model is None else self.model,
            EMBED_MODEL if self.embed_model is None else self.embed_model,
        )

    @property
    def named(self) -> str | None:
        """The first option that names a model of a server, as the user wrote it."""
        given = {"--model": self.model, "--embed-model": self.embed_model}
        return next((f"{option} {model}" for option, model in given.items() if model is not None), None)


def parse(argv: Sequence[str] | None, about: str | None) -> Options:
    """Read the command line; what makes no sense ends in argparse's usage line and exit code 2.

    Args:
        argv: The arguments; None for those of this process.
        about: What ``--help`` says in front of the options.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("question", nargs="+", type=_question, help="in English or Turkish")
    add(
        "--audience",
        choices=sorted(READABLE),
        default="customer",
        help="whose pages may be read (default: %(default)s)",
    )
    # 0.35 is WORDLLAMA_MIN_SCORE, whose module takes seconds to import.
    add(
        "--min-score",
        type=_score,
        help="refuse when the best score is lower. The scale depends on the embedding model: 0.35 by default with the "
        "built-in one, no bar with an Ollama's, which nobody has measured",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the whole result as JSON")
    form.add_argument("--preview", action="store_true", help="print what would be sent, and call no model")
    add("--reingest", action="store_true", help="store the pages again")
    add("--offline", action="store_true", help="use the built-in models even where an Ollama answers")
    add("--model", help=f"chat model on Ollama, which must answer (default: {MODEL} where one does)")
    add("--embed-model", help=f"embedding model on Ollama, likewise (default: {EMBED_MODEL})")
    found: dict[str, Any] = vars(parser.parse_args(argv))
    # Words that the shell has split are one question.
    found["question"] = " ".join(found["question"])
    options = Options(**found)
    if options.offline and options.named:
        parser.error(f"{options.named} is a model of an Ollama server, and --offline uses none")
    return options


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
