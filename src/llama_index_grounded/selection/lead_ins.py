"""Tell the lines that give what follows its meaning from the text that only stands before it.

Documents of every origin end up as chunks: a lead-in line may stand in quotes, in emphasis, in HTML, in a list of its
own or behind a number. Where it is not certain that a line leads nothing in, it counts as one that does, since a
paragraph that is said twice costs tokens, and one that is missing under its heading costs an answer.
"""

from __future__ import annotations

import re

from llama_index_grounded.selection.paragraphs import MIN_WORDS, Block, fold, word_count

__all__ = ["leads_in"]

_LONGEST_LABEL = 200
_LAST = 400
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_NOTE = re.compile(r"(?:\[[^\[\]]{0,12}\]|\([*†‡\d]{1,3}\)|[*†‡¹²³⁰-⁹])\s*\Z")
_AROUND = " \t\r\n>*_`~#|\\\"'“”„«»‘’‹›「」『』()[]{}\u00a0\u00ad\u200b-\u200f\u2060\ufe0f\ufeff"
_OPEN_ENDS = (":", "：", "﹕", "︓", "꞉", "፡", "؛", "-", "–", "—", "―", "→", "⇒", "↓", "▼", "…", "...", "。。。")
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟", "۔", "։", "።", "။", ";", ",", "，", "、")


def leads_in(block: Block, text: str) -> bool:
    """Tell whether a block leads in the one behind it: its last line ends openly ("E-books:"), or it is a short label.

    A label is one line of fewer than eight words that does not end as a sentence does and does not begin with a small
    letter ("3.2 Printed books").

    Args:
        block: Any block but a heading.
        text: Of the whole chunk.

    Example:
        >>> chunk = "1. **E-books:**"
        >>> leads_in(Block("list", 0, len(chunk)), chunk), leads_in(Block("prose", 0, 9), "Call us.")
        (True, False)
    """
    if block.kind == "heading":
        return False
    last = text[max(block.start, block.end - _LAST) : block.end].rpartition("\n")[2]
    return _bare(last).endswith(_OPEN_ENDS) or _is_label(text[block.start : block.end])


def _is_label(written: str) -> bool:
    if len(written) > _LONGEST_LABEL:
        return False
    lines = [line for line in written.splitlines() if any(map(str.isalnum, line))]
    bare = _bare(lines[0]) if len(lines) == 1 else ""
    first = next((ch for ch in bare if ch.isalpha()), "")
    return (
        first != "" and not first.islower() and not bare.endswith(_SENTENCE_ENDS) and word_count(fold(bare)) < MIN_WORDS
    )


def _bare(line: str) -> str:
    """Return a line without tags, marks around it and references to notes behind it."""
    return _NOTE.sub("", _TAG.sub(" ", line).strip(_AROUND)).strip(_AROUND)
