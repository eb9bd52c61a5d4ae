"""Count what each format of rendering costs beyond the words that it shows.

    python -m bench.rendering

Three samples: prose, code, and a card of five attributes. All counts are tokens of one source; what the words of text,
title, section, date, names and values take when counted alone is taken off.

* **frame**: a source with nothing but its text.
* **title, section**: what is added by showing both.
* **date**: what is added by showing a date, which itself takes 6 tokens.
* **20 lines of code**: the frame of a source that is code, with quotes, tags, brackets and line ends in it.
* **5 attributes**: the frame of a source whose metadata is the evidence; formats for text show no such source.
* **same to S999**: whether a block has one size under every key from S1 to S999.
"""

from __future__ import annotations

import argparse

from llama_index.core.schema import TextNode

from llama_index_grounded.rendering import (
    JsonRenderer,
    KeyValueRenderer,
    MarkdownRenderer,
    Renderer,
    TableRenderer,
    XmlRenderer,
)
from llama_index_grounded.tokens import TokenCounter

RENDERERS: list[Renderer] = [XmlRenderer(), MarkdownRenderer(), JsonRenderer(), TableRenderer(), KeyValueRenderer()]
TITLE, SECTION, DATE = "Returns and exchanges", "Return window", "2026-03-01"
PROSE = "Books can be returned within 21 days of delivery. E-books and audio books can not be returned once opened."
_TWO_LINES = '    if items[%d] < limit and name != "item":\n        print(f"<li>{name}</li>")'
CODE = "\n".join(_TWO_LINES % place for place in range(10))
CARD = {"loans": 10, "fee": "12 €", "reminder": "after 3 days", "branch": "Central Library", "renewals": 2}
KEYS = 999


def overheads(renderer: Renderer, counter: TokenCounter) -> list[str]:
    """Measure one format."""

    def size(text: str, **fields: object) -> int:
        return counter.tokens(renderer.block(TextNode(text=text, metadata=fields), "S1"))

    words = counter.tokens(TITLE) + counter.tokens(SECTION)
    frame = size(PROSE) - counter.tokens(PROSE)
    described = size(PROSE, title=TITLE, section=SECTION) - size(PROSE) - words
    dated = size(PROSE, last_updated=DATE) - size(PROSE) - counter.tokens(DATE)
    code = size(CODE) - counter.tokens(CODE)
    content = sum(counter.tokens(name) + counter.tokens(str(value)) for name, value in CARD.items())
    shows_metadata = isinstance(renderer, (TableRenderer, KeyValueRenderer))
    card = str(size("", **CARD) - content) if shows_metadata else "–"
    node = TextNode(text=PROSE)
    sizes = {counter.tokens(renderer.block(node, f"S{place}")) for place in range(1, KEYS + 1)}
    same = "yes" if len(sizes) == 1 else "no"
    counts = (frame, described, dated, frame + described + dated, code)
    return [type(renderer).__name__, *map(str, counts), card, same]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoding", default="o200k_base", help="a tiktoken encoding (default: %(default)s)")
    counter = TokenCounter(encoding=parser.parse_args().encoding)
    head = ["renderer", "frame", "title, section", "date", "all", "20 lines of code", "5 attributes", "same to S999"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for renderer in RENDERERS:
        print(f"| {' | '.join(overheads(renderer, counter))} |")


if __name__ == "__main__":
    main()
