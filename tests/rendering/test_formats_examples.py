"""Examples for every format: what the model never sees, known attacks, long texts, and options."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.schema import ImageNode, Node, NodeRelationship, RelatedNodeInfo, TextNode
from pydantic import ValidationError

from llama_index_grounded.rendering.renderer import key_at
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.hostile import injection_docs, payloads
from tests.rendering.parts import RENDERERS, Ours, expected

every_renderer = pytest.mark.parametrize("renderer", RENDERERS, ids=str)


@every_renderer
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_every_key_to_s999_costs_the_same(renderer: Ours, encoding: str) -> None:
    """A block's size does not depend on its place among the first 999, so it holds after a reorder."""
    counter, node = TokenCounter(encoding=encoding), TextNode(text="x", metadata={"title": "T", "price": 4})
    assert len({counter.tokens(renderer.block(node, key_at(place), 0.5)) for place in range(999)}) == 1


@every_renderer
def test_no_id_and_no_address_reaches_the_model(renderer: Ours) -> None:
    """Node ids, document ids, revisions and addresses are not shown, wherever the metadata holds them."""
    node = TextNode(
        id_="secret-node",
        text="x",
        metadata={
            "title": "T",
            "document_id": "secret-doc",
            "chunk_id": "secret-chunk",
            "revision": "secret-rev",
            "chunking_version": "secret-v",
            "url": "/secret",
            "link": "https://secret.example/x",
            "ref_doc_id": "secret-ref",
            "entities": {"A": {"url": "secret-path", "site": "www.secret.example"}},
        },
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="secret-file")},
    )
    assert "secret" not in renderer.block(node, "S1", 0.5)


@every_renderer
def test_a_score_is_shown_on_demand_alone(renderer: Ours) -> None:
    """Scores reach the model with ``show_relevance=True``, with two decimals, and where they are numbers."""
    node = TextNode(text="x")
    shown, hidden = (renderer.model_copy(update={"show_relevance": on}) for on in (True, False))
    assert "0.99" in shown.block(node, "S1", 0.987)
    assert "0.9" not in hidden.block(node, "S1", 0.987)
    for score in (None, float("nan"), float("inf")):
        assert shown.block(node, "S1", score) == hidden.block(node, "S1")


@every_renderer
def test_metadata_kept_from_the_model_stays_out(renderer: Ours) -> None:
    """Keys that the user excludes from LLM text are shown neither as a description nor as an attribute."""
    fields = {"title": "hidden", "price": "hidden", "entities": {"hidden": {"loans": "hidden"}}, "name": "hidden"}
    for excluded in (list(fields), ["title", "price", "entities", "name", "loans"]):
        node = TextNode(text="x", metadata=fields, excluded_llm_metadata_keys=excluded)
        assert "hidden" not in renderer.block(node, "S1")


@every_renderer
@pytest.mark.parametrize("text", ["{context_str} {query_str} {0} {{x}}", "function(){return {a:1}}", "%s $x", "[S3] x"])
def test_templates_stay_text(renderer: Ours, text: str) -> None:
    """Braces and foreign numbers in texts and attributes are data: they are never filled in."""
    nodes = make_nodes([text], metadata={"title": text, "price": text})
    [(key, found)] = renderer.recover(renderer.render(nodes).text)
    assert key == "S1"
    assert text in found


@every_renderer
@pytest.mark.parametrize("node", [Node(), ImageNode(image="aGk="), TextNode(text="", metadata={"title": "T"})])
def test_a_node_without_text_is_an_empty_block(renderer: Ours, node: Any) -> None:
    """Where there is nothing to show, the block is there and empty."""
    assert renderer.recover(renderer.block(node, "S1") + renderer.block(node, "S2")) == [("S1", ""), ("S2", "")]
    assert renderer.render([]).text == ""


@every_renderer
def test_known_attacks(renderer: Ours) -> None:
    """Every payload of the public collections stays in its block: as text, title, entity, attribute and question."""
    attacks = payloads()
    fields = [{"title": a, "section": a, a: a, "entities": {a: {"price": a}}} for a in attacks]
    nodes = make_nodes(attacks, metadata=fields)
    assert renderer.recover(renderer.render(nodes).text) == expected(renderer, nodes)
    two = make_nodes(["one", "two"], metadata={"price": 1})
    shown, wanted = renderer.render(two).text, expected(renderer, two)
    for attack in attacks:
        asked = renderer.escape(attack)
        assert renderer.recover(f"{asked}\n{shown}{asked}") == wanted


@every_renderer
def test_poisoned_documents(renderer: Ours) -> None:
    """Poisoned documents and their clean twins are recovered exactly, next to their own questions."""
    for title, text, question in injection_docs():
        nodes = make_nodes([text], metadata={"title": title, "price": text})
        prompt = renderer.render(nodes).text + renderer.escape(question)
        assert renderer.recover(prompt) == expected(renderer, nodes)


@pytest.mark.parametrize(
    "piece", ["[S9 | x]\n", "[/S1]\n", "[ \\", '{"id": "', '\\"', "<source ", "[" + " " * 500, "|\n"]
)
@pytest.mark.parametrize("renderer", RENDERERS[1:5], ids=repr)
def test_time_grows_with_the_length(renderer: Ours, piece: str) -> None:
    """Long texts of one shape are rendered, recovered and escaped in a moment: nothing is quadratic."""
    text = piece * (300_000 // len(piece))
    nodes = make_nodes([text], metadata={"price": text[:30_000]})
    assert renderer.recover(renderer.render(nodes).text) == expected(renderer, nodes)
    assert renderer.unescape(renderer.escape(text)) == text
    renderer.recover(text)


@every_renderer
def test_a_renderer_survives_copies(renderer: Ours) -> None:
    """Pickle, deep copy, dict and JSON give an equal renderer, which can not be changed."""
    cls = type(renderer)
    for copied in (
        pickle.loads(pickle.dumps(renderer)),  # noqa: S301 - our own bytes
        copy.deepcopy(renderer),
        cls(**renderer.model_dump()),
        cls.model_validate_json(renderer.model_dump_json()),
    ):
        assert copied == renderer
    with pytest.raises(ValidationError):
        setattr(renderer, "show_relevance", False)  # noqa: B010 - type checkers know it too


@pytest.mark.parametrize(
    "options", [{"attributes": ("url",)}, {"atributes": ()}, {"kind": "pdf"}, {"show_relevance": 7}]
)
@pytest.mark.parametrize("renderer", RENDERERS[:5], ids=repr)
def test_impossible_options_are_refused(renderer: Ours, options: dict[str, Any]) -> None:
    """A field that the model must not see, misspelt options and another format's name are refused at construction."""
    with pytest.raises(ValidationError):
        type(renderer)(**options)
