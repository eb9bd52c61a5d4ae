"""Read the data sets of the measurements, and hand a labelled answer to a check."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from llama_index_grounded.schema import SourceRef
from llama_index_grounded.synthesis.checking import CheckContext, ShownSource

__all__ = ["answer_of", "as_cited", "parse_with_data", "rows_of"]


def parse_with_data(parser: argparse.ArgumentParser, files: Iterable[str]) -> argparse.Namespace:
    """Read the command line of a measurement, and end it with 2 before any output where its data is not there.

    Args:
        parser: It has the option ``--data``.
        files: What is read from that folder; an option of the command may stand in a name, as in ``xquad_{lang}``.
    """
    options = parser.parse_args()
    folder: Path = options.data
    if not folder.is_dir():
        parser.error(f"--data {folder}: {'this is no folder' if folder.exists() else 'there is no such folder'}")
    names = [name.format_map(vars(options)) for name in files]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        parser.error(f"--data {folder}: this folder has no {', no '.join(missing)}")
    return options


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Read a file of one JSON object per line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answer_of(row: dict[str, Any]) -> str:
    """Return what is judged in a labelled row: an answer, or a claim."""
    return str(row["answer"] if "answer" in row else row["claim"])


def as_cited(question: str, answer: str, context: Sequence[str]) -> CheckContext:
    """Return what a check is given when an answer cites all of its evidence."""
    sources = {
        key: ShownSource(ref=SourceRef(key=key, node_id=key, document_id=key, chunk_id=key), text=text)
        for key, text in ((f"S{at}", text) for at, text in enumerate(context, 1))
    }
    return CheckContext(question=question, answer=answer, sources=sources, cited=tuple(sources))
