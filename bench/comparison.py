"""Give the parts of four libraries for cited answers the same small inputs, and print what each does as a table.

    python -m bench.comparison

What is compared: LlamaIndex's `CitationQueryEngine`; LangChain's stuff-documents chain, its parser of structured
replies and its document filters; Haystack's prompt and answer builders and its ranker; and this package. LangChain,
Haystack and wordllama are no dependencies: docs/comparison.md says how to install them apart. What is missing is named
as not run. A script plays the model, so that only the parts make a difference.
"""

from __future__ import annotations

import argparse
import datetime as dt
import logging
import sys
import warnings
from importlib import metadata

from bench.compared.engines import Grounded, LlamaIndex
from bench.compared.haystack_parts import Haystack
from bench.compared.langchain_parts import LangChain
from bench.compared.library import LOW, THRESHOLD

NO_PART = "no part found"

ROWS = {
    "two": "The reply cites sources 1 and 7 of 4",
    "unknown": "The reply cites source 7 of 4 alone",
    "hostile": "A document closes its block and opens source 9: blocks in the prompt, of 2",
    "same": "A paragraph, its repetition, and one with 14 for 21 days: which of 0, 1, 2 are left",
    "edge": "Three sources; a limit of exactly two, and of one unit less",
    "low": f"Scores of {LOW}, a threshold of {THRESHOLD}",
    "empty": "Nothing was found",
    "quotes": "A quote with a changed number; an invented quote",
    "prose": "The model writes a sentence and cites nothing",
    "long": "One chunk of 1,350 words: sources that can be cited",
    "order": "Order of five sources, the best is 0",
    "tokens": "Tokens of the prompt for four short sources",
}


def main() -> None:
    """Run what is installed and print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    columns: dict[str, dict[str, str]] = {}
    for library in (LlamaIndex, LangChain, Haystack, Grounded):
        try:
            versions = ", ".join(f"{package} {metadata.version(package)}" for package in library.packages)
        except metadata.PackageNotFoundError as error:
            print(f"- {library.name}: not run, {error.name} is not installed")
            continue
        print(f"- {library.name}: {versions}")
        columns[library.name] = library().cells()
    print(f"- Python {sys.version.split()[0]}, {dt.datetime.now(dt.timezone.utc).date()}\n")
    print(f"| | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for row, title in ROWS.items():
        print(f"| {title} | {' | '.join(cells.get(row, NO_PART) for cells in columns.values())} |")


if __name__ == "__main__":
    main()
