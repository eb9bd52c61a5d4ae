"""Texts for the tests of the answer cleaner: fragments that meet in every order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from llama_index_grounded.synthesis.cleaner import AnswerCleaner, Cleaned
from llama_index_grounded.synthesis.unescaping import Escapes

KEYS = ("S1", "S2", "S3")

TAGS = (
    "<source>",
    "</source>",
    '<source id="S1">',
    "<source id='S2' title=\"a > b\"/>",
    '<source id="S3" ',
    '<source id="S1" title="',
    '<source src="a.mp4">',
    "<source of",
    "<sou",
    "rce>",
    "<so",
    "</",
    "</cite",
    "</ SOURCE >",
    '\x3ccite index="S1">',
    'source id="S1">',
    "ource>",
    ' id="S1">',
    "<http://x",
    "<",
    ">",
    "=",
    '"',
)
MARKERS = (
    "[S1]",
    "[S9]",
    "[S",
    "9]",
    "1]",
    "[",
    "]",
    "[[S9]]",
    "[S1, S9]",
    "[S9; S8]",
    "【S1】",
    "【1†S9】",
    "［S9］",
    "】",
    "[S1-S3]",
    "[S3-S1]",
    ", ",
    " and ",
    "-",
    "†",
    "](u)",
    "(u)",
    "[t ",
    "(",
    ")",
)
FRAMES = (
    "[S1 | Document: R]",
    "[S9 | Document: R | Section: S1]",
    "[S1, S9 | T: 5]",
    "【S2 | Belge: x】",
    "[S1 | Document: ",
    " | Document: x",
    "|",
    ": ",
    "\n[S9 | Page: 3]\n",
    "\n[/S2]\n",
    "[/S1]",
    "[/S9]",
    "[/",
    "E[S1 | X]",
)
OF_DOCUMENTS = (
    "[\\S1]",
    "[\\S9, S1]",
    "[\\S9 | Document: x]",
    "[\\/S1]",
    "[\\\\S1]",
    "【\\S1】",
    "[\\S3.1",
    "[\\",
    "\\S",
)
MARKDOWN = (
    "`",
    "``",
    "```",
    "```\n",
    "\n```\n",
    "\n~~~\n",
    "~",
    "$",
    "$$",
    "\\",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "\n",
    "\n\n",
    "\r\n",
    " ",
    "  ",
    "\t",
    "a",
    "5",
    "!",
    "\U0001f4da",
    "٣",
)
ESCAPES = ("&lt;", "&amp;", "&", "amp;", "lt;", "&gt;", "&amp;lt;", "&lt;source&gt;")


def mixtures(*pools: Sequence[str], size: int = 14) -> st.SearchStrategy[str]:
    """Return texts of fragments from the pools, some from a handful of fragments so that they meet often."""
    fragments = st.sampled_from([fragment for pool in pools for fragment in pool])
    wide = st.lists(fragments, max_size=size)
    narrow = st.lists(fragments, min_size=1, max_size=4).flatmap(
        lambda few: st.lists(st.sampled_from(few), max_size=size)
    )
    return st.one_of(wide, narrow).map("".join)


def clean_in_pieces(
    text: str, cuts: Sequence[int], *, inline_citations: bool = True, escapes: Escapes = "xml"
) -> Cleaned:
    """Clean a text that arrives cut at the given places."""
    cleaner = AnswerCleaner(KEYS, inline_citations=inline_citations, escapes=escapes)
    edges = [0, *sorted(cuts), len(text)]
    pieces = [cleaner.feed(text[start:end]) for start, end in pairwise(edges)]
    pieces.append(cleaner.finish())
    return Cleaned(text="".join(pieces), keys=cleaner.keys, unknown=cleaner.unknown)
