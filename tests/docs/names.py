"""The names that a page of the documentation may use without making them: what its reader has already.

- ``nodes``: four scored nodes, best first, as a retriever gives them
- ``documents``: the same texts as LlamaIndex documents
- ``index``: a ``VectorStoreIndex`` over the same nodes
- ``embed_model``: real embeddings that need no network
- ``llm``: an LLM that answers questions about returns, and finds nothing on any other
- ``judge``: an LLM that supports every statement, confirms every pair, and finds sources sufficient for returns
- ``ollama_url``: a server that speaks Ollama's protocol, for pages that name it
- ``vector_store``: an empty ``PGVectorStore`` with hybrid search, for pages that name it

``Settings.llm`` and ``Settings.embed_model`` are ``llm`` and ``embed_model`` while a page runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from pydantic import PrivateAttr

from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.docs.pages import blocks

__all__ = ["standard_names", "started"]

TEXTS = [
    "Unread books can be returned within 21 days of delivery. Keep the receipt.",
    "E-books cannot be returned once they were opened.",
    "Orders over 500 TL ship free. Delivery takes two to four working days.",
    "Gift cards are valid for two years and cannot be exchanged for cash.",
]
SCORES = [0.71, 0.52, 0.33, 0.18]
ANSWERED = {"verdict": "answered", "sources": ["S1"], "answer": "You have 21 days [S1]."}
_PLAIN = "You have 21 days [1]."
_CLAIM = {"sources": ["S1"], "quote": "within 21 days of delivery", "text": "You have 21 days."}
_NOT_FOUND = {"verdict": "not_in_sources", "sources": []}
Reply = str | Mapping[str, Any]
_QUESTION = re.compile(r"^(?:Question|The question(?: was)?): (.*)$", re.MULTILINE)


def _fields(title: str, section: str, page: str, updated: str) -> dict[str, str]:
    anchor = section.lower().replace(" ", "-")
    url = f"/help/{page}#{anchor}"
    return {"document_id": page, "title": title, "section": section, "url": url, "last_updated": updated}


FIELDS = [
    _fields("Returns and exchanges", "Return window", "returns", "2026-03-01"),
    _fields("Returns and exchanges", "E-books", "returns", "2026-03-01"),
    _fields("Shipping", "Cost and time", "shipping", "2026-01-15"),
    _fields("Gift cards", "Validity", "gift-cards", "2025-11-20"),
]


class Played(ScriptedLLM):
    """Plays what fits the request, instead of one reply after the other."""

    _reply_to: Callable[[str], Reply] = PrivateAttr()

    def __init__(self, reply_to: Callable[[str], Reply], chunk_size: int | None = None) -> None:
        super().__init__(["not played"], chunk_size=chunk_size)
        self._reply_to = reply_to

    def _next(self, prompt: str) -> str:
        with self._lock:
            self._prompts.append(prompt)
        reply = self._reply_to(prompt)
        return reply if isinstance(reply, str) else json.dumps(reply)


def answer(prompt: str) -> Reply:
    """Answer questions about returns in the form that is asked for: claims, an answer, or plain text."""
    known, claimed = _about_returns(prompt), '"claims"' in prompt
    if "JSON" not in prompt:
        return _PLAIN
    if claimed:
        found = {"verdict": "answered", "sources": ["S1"], "claims": [_CLAIM]}
        return found if known else {**_NOT_FOUND, "claims": []}
    return ANSWERED if known else {**_NOT_FOUND, "answer": ""}


def judge(prompt: str) -> Reply:
    """Agree about statements and pairs; only returns are covered by the sources."""
    if '"contradict"' in prompt:
        pairs = len(re.findall(r"^Pair \d+:", prompt, re.MULTILINE))
        different = {"difference": "they state different numbers", "contradict": True}
        return {"judgements": [{"number": number + 1, **different} for number in range(pairs)]}
    if '"sufficient"' in prompt:
        known = _about_returns(prompt)
        return {"reason": "It says so." if known else "Nothing is said about it.", "sufficient": known}
    supported = {"reason": "It says so.", "verdict": "supported"}
    return {"judgements": [{"number": number + 1, **supported} for number in range(prompt.count("<statement "))]}


def _about_returns(prompt: str) -> bool:
    """Look at the last question of a request; one without a question is taken for one about returns."""
    asked: Sequence[str] = _QUESTION.findall(prompt)
    return not asked or "return" in asked[-1].lower()


def standard_names(embed_model: BaseEmbedding) -> dict[str, Any]:
    """Make the names that cost nothing; those of servers are the test's."""
    nodes = make_nodes(TEXTS, scores=SCORES, metadata=FIELDS)
    plain: list[BaseNode] = [scored.node for scored in make_nodes(TEXTS, metadata=FIELDS)]
    return {
        "nodes": nodes,
        "documents": [Document(text=text, metadata=dict(fields)) for text, fields in zip(TEXTS, FIELDS, strict=True)],
        "index": VectorStoreIndex(plain, embed_model=embed_model),
        "embed_model": embed_model,
        "llm": Played(answer, chunk_size=12),
        "judge": Played(judge),
    }


def started(page: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Start the servers that the Python of a page names, and no other."""
    code = "\n".join(block.text for block in blocks(page) if block.language == "python")
    names: dict[str, Any] = {}
    if re.search(r"\bollama_url\b", code):
        server = request.getfixturevalue("ollama_server")
        server.script(ANSWERED)
        names["ollama_url"] = server.url
    if re.search(r"\bvector_store\b", code):
        names["vector_store"] = request.getfixturevalue("pg_store")("docs_page", 256, hybrid_search=True)
    return names
