r"""Split a chunk into the blocks that may be removed as a whole, and the ones that frame them.

Only prose is ever compared paragraph by paragraph. Lists, tables, code and what a markup language holds together are
one block each, with the blank lines inside them: fences, indented text, `<ul>`, `\begin{verbatim}`, `.. note::`,
`!!! note`. What is opened and never closed goes on to the end. A heading, or a line in bold that stands alone, is no
evidence: it frames what follows. Documents are written by anybody, so every rule runs in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

__all__ = ["MIN_WORDS", "Block", "fold", "has_unspaced", "is_short", "may_be_unspaced", "split_blocks", "word_count"]

MIN_WORDS = 8
"""Shorter paragraphs are never removed by themselves."""

BlockKind = Literal["prose", "heading", "code", "table", "list"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,}|:{3,}(?!:)(?=.*\w))")
_DIRECTIVE = re.compile(r" {0,3}(?:\.\. \S|(?:!!!|\?\?\?\+?) *\w)")
_CONTAINER = re.compile(
    r"\s*(?:<(?P<tag>table|[uod]l|pre|blockquote|details|aside|figure)\b|\\begin\{(?!document\})(?P<name>[a-z]+\*?)\})",
    re.IGNORECASE,
)
_OPENING = "`~:.!?<\\#"
"""What each of these, and a heading, begins with."""
_HASHES = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})\s*$")
_BOLD_LINE = re.compile(r"\s*(\*\*|__)(?=\S)([^*_]+)\1\s*$")
_NUMBER = r"\d{1,3}(?:\.\d{1,3}){0,5}"
_COUNT = rf"(?:{_NUMBER}|[^\W\d_]|[ivxl]{{2,8}}|[一二三四五六七八九十百]{{2,4}})"
_DASH = r"[-–—](?=\s)"
_ITEM = re.compile(
    rf"""[\s>]*(?:
      [^\w\s|"'“”„«»‘’()\[\]{{}}<>`]{{1,5}}\s+(?!\||[=-]{{2}})
    | [•‣◦·▪▫►▶●○■□◆◇☐☑☒✓✔✗✘➢➤→\uf0b7①-⓿❶-➓]\s*
    | \d\ufe0f?\u20e3\s* | \\item\b\s* | <(?:li|dt|dd)\b[^<>]{{0,200}}>\s*
    | (\*\*|__|[*_])?
      (?: [(\[]{_COUNT}[)\]] | {_COUNT}(?:[.)]|{_DASH}) | [^\W\d_]{{2,20}}\ {_COUNT}[.):] | {_NUMBER}:
        | (?:[^\W\d_]{{2,20}}\ )?{_NUMBER}\s?{_DASH} )
      (?(1)\1) \s+
    | [(（]{_COUNT}[)）]\s* | {_COUNT}[）、．]\s*
    | §+\s?{_NUMBER}\s+ | (?=\d+\.){_NUMBER}\s+
    )\S""",
    re.IGNORECASE | re.VERBOSE,
)
"""A bullet or a count in any usual form, also quoted or in emphasis: "1.", "(a)", "iv)", "Step 2:", "3.1", "a-"."""
_HTML_TABLE = re.compile(r"\s*</?(?:table|thead|tbody|tr|th|td)\b", re.IGNORECASE)
_INDENTED = re.compile(r"(?: {2}|\t)")
_BOLD_LEVEL = 7

# Scripts without spaces between words: how many characters make about one word.
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_ANY_UNSPACED = re.compile(f"{_IDEOGRAPH.pattern}|{_NO_SPACES.pattern}".replace("]|[", ""))
_LEADS = bytes([0xE0, 0xE1, *range(0xE3, 0xEA), 0xEF, 0xF0])
"""First bytes, in UTF-8, of the characters of these scripts, among others."""
_IDEOGRAPHS_PER_WORD = 2
_LETTERS_PER_WORD = 4


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a chunk: ``text[start:end]``, without the blank lines around it."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    """1–6 for headings, 7 for a bold line; 0 for the rest."""
    title: str = ""
    """What a heading says, without its marks."""


def fold(text: str) -> str:
    """Bring a text to the form in which twins are compared: Unicode NFC, white space folded, case kept."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def word_count(folded: str) -> int:
    """Count words; two ideographs, or four letters of a script without spaces, are about one word."""
    ideographs = letters = 0
    if not folded.isascii():
        ideographs, letters = len(_IDEOGRAPH.findall(folded)), len(_NO_SPACES.findall(folded))
        folded = _NO_SPACES.sub(" ", _IDEOGRAPH.sub(" ", folded))
    spoken = sum(1 for part in folded.split() if any(ch.isalnum() for ch in part))
    return spoken + ideographs // _IDEOGRAPHS_PER_WORD + letters // _LETTERS_PER_WORD


def is_short(text: str) -> bool:
    """Tell whether a text has fewer words than a paragraph that may be removed by itself."""
    if has_unspaced(text):
        return word_count(text) < MIN_WORDS
    spoken = (part for part in text.split() if any(map(str.isalnum, part)))
    return sum(1 for _ in islice(spoken, MIN_WORDS)) < MIN_WORDS


def has_unspaced(text: str) -> bool:
    """Tell whether a text has characters of a script without spaces between words."""
    if text.isascii():
        return False
    return may_be_unspaced(text.encode("utf-8", "surrogatepass")) and _ANY_UNSPACED.search(text) is not None


def may_be_unspaced(raw: bytes) -> bool:
    """Look for such characters in UTF-8, much faster than among characters; most texts have no byte of theirs."""
    return len(raw.translate(None, _LEADS)) < len(raw)


def split_blocks(text: str) -> list[Block]:
    """Split a text into blocks, in order; the text between two blocks is white space."""
    lines = list(_lines(text))
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        if not lines[at].text.strip():
            at += 1
            continue
        found = _block_at(lines, at)
        last = found.after - 1
        while not lines[last].text.strip():
            last -= 1
        end = lines[last].start + len(lines[last].text.rstrip())
        blocks.append(Block(found.kind, lines[at].start, end, found.level, found.title))
        at = found.after
    return blocks


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _Found:
    kind: BlockKind
    after: int
    """The line after the block."""
    level: int = 0
    title: str = ""


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield _Line(start, line)
        start += len(line)


def _block_at(lines: Sequence[_Line], at: int) -> _Found:
    """Tell which block begins at a line."""
    first = lines[at].text
    if fence := _FENCE.match(first):
        return _Found("code", _end_of_fence(lines, at, fence[1]))
    if opened := _CONTAINER.match(first):
        return _Found(_kind_of(opened["tag"]), _end_of_container(lines, at, opened))
    if _DIRECTIVE.match(first):
        return _Found("code", _end_of_indented(lines, at))
    if marks := _HASHES.match(first):
        return _Found("heading", at + 1, len(marks[1]), _hash_title(first[marks.end() :].strip()))
    if _ITEM.match(first):
        return _Found("list", _end_of_list(lines, at))
    return _paragraph(lines, at)


def _paragraph(lines: Sequence[_Line], at: int) -> _Found:
    """Tell what a run of lines without a blank one is."""
    after = _end_of_paragraph(lines, at)
    first, body = lines[at].text, [line.text for line in lines[at:after]]
    if all(_INDENTED.match(line) for line in body):
        return _Found("code", after)
    if _HTML_TABLE.match(first) or any(line.lstrip().startswith("|") or _is_table_rule(line) for line in body):
        return _Found("table", after)
    if len(body) > 1 and (rule := _UNDERLINE.match(body[1])):
        return _Found("heading", at + 2, 1 if rule[1].startswith("=") else 2, first.strip())
    if len(body) == 1 and (bold := _BOLD_LINE.match(first)):
        return _Found("heading", after, _BOLD_LEVEL, bold[2].strip())
    return _Found("prose", after)


def _hash_title(text: str) -> str:
    """Drop the marks that may close a heading: "Returns ##" has some, "C#" has none."""
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def _is_table_rule(line: str) -> bool:
    """Tell a line that divides a table: dashes in columns, nothing else."""
    marks = line.strip()
    return not marks.strip("|+:-= \t") and not {"-", "="}.isdisjoint(marks) and not {"|", "+", " "}.isdisjoint(marks)


def _end_of_fence(lines: Sequence[_Line], at: int, mark: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    for place in range(at + 1, len(lines)):
        if closing.match(lines[place].text):
            return place + 1
    return len(lines)


def _kind_of(tag: str | None) -> BlockKind:
    tag = (tag or "").lower()
    return "table" if tag == "table" else "list" if tag in {"ul", "ol", "dl"} else "code"


def _end_of_container(lines: Sequence[_Line], at: int, opened: re.Match[str]) -> int:
    """Find where a container is closed, past those of its own name inside it."""
    tag, name = opened["tag"], re.escape(opened["name"] or "")
    mark = re.compile(rf"<(/)?{tag}\b" if tag else rf"\\(?:begin|(end))\{{{name}\}}", re.IGNORECASE)
    depth = 0
    for place in range(at, len(lines)):
        depth += sum(-1 if found[1] else 1 for found in mark.finditer(lines[place].text))
        if depth <= 0:
            return place + 1
    return len(lines)


def _end_of_indented(lines: Sequence[_Line], at: int) -> int:
    """A directive goes on as long as what follows is indented."""
    place = at + 1
    while place < len(lines) and lines[place].text[0].isspace():
        place += 1
    return place


def _opens(line: str) -> bool:
    """Tell whether a line begins a block wherever it stands."""
    if line.lstrip()[0] not in _OPENING:
        return False
    return any(mark.match(line) for mark in (_HASHES, _FENCE, _CONTAINER, _DIRECTIVE))


def _end_of_list(lines: Sequence[_Line], at: int) -> int:
    """A list goes on over blank lines as long as items or indented lines follow."""
    place = at + 1
    while place < len(lines):
        line = lines[place].text
        if line.strip():
            goes_on = _ITEM.match(line) or line[0].isspace() or bool(lines[place - 1].text.strip())
            if _HASHES.match(line) or (not line[0].isspace() and _opens(line)) or not goes_on:
                break
        place += 1
    return place


def _end_of_paragraph(lines: Sequence[_Line], at: int) -> int:
    place = at + 1
    while place < len(lines):
        line = lines[place].text
        if not line.strip() or _opens(line) or _ITEM.match(line):
            break
        place += 1
    return place
