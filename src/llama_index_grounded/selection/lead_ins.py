"""Tell the lines that give what follows its meaning from the text that only stands before it.

Documents of every origin end up as chunks: a lead-in line may stand in quotes, in emphasis, in HTML, in a list of its
own or behind a number, and a label may be a question or a short sentence ("Business customers only."). Where it is not
certain that a line leads nothing in, it counts as one that does, since a paragraph that is said twice costs tokens, and
one that is missing under its heading costs an answer.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Literal

from llama_index_grounded.selection.paragraphs import Block, fold, is_short

__all__ = ["Label", "label_of", "says_something"]

_LONGEST_LABEL = 400
_LONGEST_LINE = 200
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_NOTE = re.compile(r"(?:\[[^\[\]]{0,12}\]|\([*†‡\d]{1,3}\)|[*†‡¹²³⁰-⁹])\s*\Z")
_AROUND = " \t\r\n>*_`~#|\\\"'“”„«»‘’‹›「」『』()[]{}\u00a0\u00ad\u200b-\u200f\u2060\ufe0f\ufeff"
_OPEN_ENDS = (
    *(":", "：", "﹕", "︓", "꞉", "፡", "؛", "-", "–", "—", "―", "→", "⇒", "↓", "▼", "…", "...", "。。。"),
    *("?", "？", "؟", "\u037e", "⁇", "⁉", "⁈", "՞", "፧"),
)
_SENTENCE_ENDS = (".", "!", "。", "！", "．", "।", "۔", "։", "።", "။", "។")


@dataclass(frozen=True, slots=True)
class Label:
    """A line that gives what follows it a meaning, or may give it one."""

    kind: Literal["lead-in", "sentence", "line"]
    """A line that ends openly or is shorter than a sentence; a sentence of fewer than eight words; or a longer line
    that does not end as a sentence does, and the first line of a paragraph ("E-books:"), which has a text already."""
    text: str
    """What it says, folded."""


def label_of(block: Block, text: str) -> Label | None:
    """Return what a block, or the last paragraph of a list, says as a label; None for a text like any other.

    Args:
        block: Any block; a heading is no label.
        text: Of the whole chunk.

    Example:
        >>> chunk = "Not for e-books."
        >>> label_of(Block("prose", 0, len(chunk)), chunk)
        Label(kind='sentence', text='Not for e-books.')
    """
    if block.kind == "heading":
        return None
    lines = text[block.start : block.end].splitlines()
    if block.kind == "list":
        lines = _last_paragraph(lines)
    spoken = [line for line in lines if says_something(line)]
    if not spoken:
        return None
    written, last = "\n".join(lines), _bare(spoken[-1][-_LONGEST_LABEL:])
    if last.endswith(_OPEN_ENDS):
        return Label("lead-in", fold(written))
    ended = last.endswith(_SENTENCE_ENDS)
    # Several items, rows or lines of code are no label, however short they are.
    if (len(spoken) == 1 or block.kind == "prose") and _is_short_line(written):
        return Label("sentence" if ended else "lead-in", fold(written))
    if len(spoken) == 1 and not ended and len(written) <= _LONGEST_LINE:
        return Label("line", fold(written))
    is_titled = len(lines) > 1 and _is_short_line(lines[0]) and _bare(lines[0]).endswith(_OPEN_ENDS)
    return Label("line", fold(lines[0])) if is_titled else None


def says_something(text: str) -> bool:
    """Tell a text from a mere mark ("***")."""
    return any(map(str.isalnum, text))


def _last_paragraph(lines: list[str]) -> list[str]:
    start = next((at for at in range(len(lines), 0, -1) if not lines[at - 1].strip()), 0)
    return lines[start:]


def _is_short_line(written: str) -> bool:
    return len(written) <= _LONGEST_LABEL and is_short(_TAG.sub(" ", written))


def _bare(line: str) -> str:
    """Return a line without tags, marks around it and references to notes behind it."""
    return _NOTE.sub("", _TAG.sub(" ", html.unescape(line)).strip(_AROUND)).strip(_AROUND)
