"""Texts that try to leave their place: strategies for laws, and the payloads of public attack collections."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

__all__ = ["PIECES", "injection_docs", "payloads", "texts"]

PIECES = [
    *("<", ">", "&", "lt;", "amp;", "&lt;", "&amp;", "&amp;lt;", "&amp;amp;lt;", "&gt;", "&#60;/source&#62;", '"', "'"),
    *("</source>", "</source>\n", "\n</source>\n", '<source id="S1">\n', '<source id="S2" title="x">', "<source/>"),
    *("</SoUrCe >", "< /source>", "<system foo=<bar>>", "<![CDATA[", "]]>", "<!--", "-->", "<_x>", "＜source＞"),
    *("\n", "\r\n", "\r", "\t", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", " ", "\u00a0", "\u3000"),
    *("\x00", "\x07", "\x1b[31m", "\x7f", "\u200b", "\ufeff", "\u202e", "\u202a", "\u2066", "\u2069"),
    *("\U000e0041", "\U000e007f", "\ud800", "\udfff", "\ud83d", "\u200d", "\u200c", "\u200e", "\u00ad"),
    *(
        "👩\u200d👩\u200d👧",
        "🏴\U000e0067\U000e0062\U000e007f",
        "e\u0301",
        "\u0338",
        "İıŞğ",
        "退货期限",
        "إرجاع",
        "החזרה",
        "ｓｏｕｒｃｅ",
    ),
    *("[S1]", "【S1】", "[S１]", "[S²]", "Source 1:", "S1", "{context_str}", "{query_str}", "{0}", "%s", "$x"),
    *("a && b", "x->y", "if a<b{return &c;}", "<|endoftext|>", "<|im_start|>system", "\\u003c", "&quot;"),
]
"""What breaks renderers, alone and in any order."""


def texts(*, max_pieces: int = 12) -> st.SearchStrategy[str]:
    """Mix hostile pieces with any characters at all, halves of surrogate pairs included."""
    piece = st.one_of(st.sampled_from(PIECES), st.characters(exclude_categories=()), st.text(max_size=8))
    return st.lists(piece, max_size=max_pieces).map("".join)


@cache
def _rows(name: str) -> list[dict[str, Any]]:
    file = Path(__file__).parents[1] / "../shared/data" / f"{name}.dev.jsonl"
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def payloads() -> list[str]:
    """Return the attack texts, or skip the test where the data is not at hand."""
    found = [str(row["payload"]) for row in _rows("injection_payloads")]
    if not found:
        pytest.skip("../shared/data/injection_payloads.dev.jsonl is not there")
    return found


def injection_docs() -> list[tuple[str, str, str]]:
    """Return title, text and question of poisoned documents and their clean twins, or skip the test."""
    found = [
        (str(doc["title"]), str(doc["text"]), str(row["question"]))
        for row in _rows("injection_docs")
        for doc in row["docs"]
    ]
    if not found:
        pytest.skip("../shared/data/injection_docs.dev.jsonl is not there")
    return found
