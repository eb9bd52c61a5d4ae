"""A plan shows the sources as the model would see them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import PromptTemplate

from llama_index_grounded import CitingSynthesizer, GroundedQueryEngine
from llama_index_grounded.rendering import (
    JsonRenderer,
    KeyValueRenderer,
    MarkdownRenderer,
    TableRenderer,
    XmlRenderer,
    clean,
)
from llama_index_grounded.selection import ConflictFlagger, ScoreGate
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes
from tests.hostile import texts

RENDERERS: list[Any] = [XmlRenderer(), JsonRenderer(), MarkdownRenderer(), TableRenderer(), KeyValueRenderer()]
QUESTION = "How many days do I have to return a book?"


@settings(max_examples=40)
@given(st.lists(texts(), min_size=1, max_size=3), st.sampled_from(RENDERERS))
def test_the_text_stands_in_the_prompt_and_holds_the_sources(bodies: list[str], renderer: Any) -> None:
    """It is one stretch of the messages, and gives back each source with its key."""
    plan = CitingSynthesizer(ScriptedLLM(["x"]), renderer=renderer).preview(QUESTION, make_nodes(bodies))
    assert plan.text in "\n\n".join(message.content or "" for message in plan.messages)
    assert [key for key, _ in renderer.recover(plan.text)] == [source.key for source in plan.sources]
    assert bool(plan.text) is bool(plan.sources)


def test_the_text_is_exactly_the_sources() -> None:
    """Nothing of the rules, the question or the notes on conflicts is in it."""
    nodes = make_nodes(
        ["Books can be returned within 21 days.", "Books can be returned within 14 days."],
        metadata=[{"document_id": "new"}, {"document_id": "old"}],
    )
    engine = GroundedQueryEngine.from_args(
        retriever=FixedRetriever(nodes),
        llm=ScriptedLLM(["x"]),
        text_qa_template=PromptTemplate("Rules.\n{context_str}{query_str}"),
        node_postprocessors=[ConflictFlagger(confirm=False)],
    )
    plan = engine.preview(QUESTION)
    assert plan.text == "".join(
        f'<source id="S{place}">\n{clean(scored.text)}\n</source>\n' for place, scored in enumerate(nodes, start=1)
    )
    assert f"Rules.\n{plan.text}Sources S1 and S2 may disagree" in (plan.messages[-1].content or "")


@pytest.mark.parametrize("options", [{"min_score": 9.0}, {"context_window": 1300}, {"nodes": []}], ids=str)
def test_where_nothing_is_sent_there_is_no_text(options: dict[str, Any]) -> None:
    """A gate that refuses, a window that is too small and an empty retrieval leave the text empty."""
    engine = GroundedQueryEngine.from_args(
        retriever=FixedRetriever(options.get("nodes", make_nodes(["Within 21 days."]))),
        llm=ScriptedLLM(["x"], context_window=options.get("context_window", 8192)),
        node_postprocessors=[ScoreGate(min_score=options.get("min_score", 0.1))],
    )
    plan = engine.preview(QUESTION)
    assert plan.refusal is not None
    assert (plan.text, plan.messages) == ("", ())
