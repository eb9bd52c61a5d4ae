"""What holds for every format: nothing leaves its block, everything comes back, and sizes add up."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_grounded.rendering import clean
from llama_index_grounded.rendering.renderer import key_at
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.rendering.parts import RENDERERS, Ours, documents, expected, hostile, nodes_of, of_text

Documents = list[tuple[str, dict[str, Any]]]
renderers = st.sampled_from(RENDERERS)
many = settings(max_examples=300)


@many
@given(renderers, documents)
def test_recover_undoes_render(renderer: Ours, documents: Documents) -> None:
    """Whatever texts and metadata hold, each block comes back with its key and its included text."""
    nodes = nodes_of(documents)
    rendered = renderer.render(nodes)
    assert renderer.recover(rendered.text) == expected(renderer, nodes)
    assert [source.key for source in rendered.sources] == [key_at(place) for place in range(len(nodes))]


@given(st.sampled_from(of_text()), documents)
def test_the_included_text_is_the_cleaned_text(renderer: Ours, documents: Documents) -> None:
    """Formats for text show the node's text, character for character; what is removed is counted."""
    rendered = renderer.render(nodes_of(documents))
    assert [text for _, text in renderer.recover(rendered.text)] == [clean(text) for text, _ in documents]
    lost = {key_at(place): len(text) - len(clean(text)) for place, (text, _) in enumerate(documents)}
    assert {record.key: record.characters for record in rendered.removed} == {k: n for k, n in lost.items() if n}


@many
@given(renderers, documents, hostile(), hostile())
def test_a_prompt_holds_exactly_the_sources_that_we_numbered(
    renderer: Ours, documents: Documents, before: str, after: str
) -> None:
    """A hostile question before or behind the sources adds none, hides none and changes none."""
    nodes = nodes_of(documents)
    rendered, wanted = renderer.render(nodes).text, expected(renderer, nodes)
    question, history = renderer.escape(after), renderer.escape(before)
    for prompt in (
        f"{history}\n\n{rendered}\nQuestion: {question}",
        f"{history}{rendered}{question}",
        f"Cite them, as in [S1].\nQuestion: {question}\n\nSources: {rendered}Answer from [S1].\n{history}",
    ):
        assert renderer.recover(prompt) == wanted


@given(renderers, hostile(max_pieces=12))
def test_unescape_undoes_escape(renderer: Ours, text: str) -> None:
    """What a user's text or a document shows because of the format can be turned back, also when escaped twice."""
    once = renderer.escape(text)
    assert renderer.unescape(once) == clean(text)
    assert renderer.unescape(renderer.unescape(renderer.escape(once))) == clean(text)


@given(renderers, documents)
def test_rendering_changes_nothing(renderer: Ours, documents: Documents) -> None:
    """The nodes that were rendered are as they were; no character that is invisible is left."""
    nodes = nodes_of(documents)
    before = repr(nodes)  # by text, since not-a-number equals nothing
    text = renderer.render(nodes).text
    assert repr(nodes) == before
    assert text == clean(text) == renderer.render(nodes).text


@many
@given(renderers, st.sampled_from(["o200k_base", "cl100k_base"]), documents)
def test_the_sizes_add_up_to_the_whole(renderer: Ours, encoding: str, documents: Documents) -> None:
    """The text is the row of its blocks, and the sum of their sizes is the count of the whole."""
    nodes, counter = nodes_of(documents), TokenCounter(encoding=encoding)
    whole = renderer.render(nodes).text
    assert whole == "".join(
        renderer.block(scored.node, key_at(place), scored.score) for place, scored in enumerate(nodes)
    )
    sizes = [BlockCounter(renderer, counter, {}).tokens(scored, place) for place, scored in enumerate(nodes)]
    assert sum(sizes) == counter.tokens(whole)


@given(st.lists(st.sampled_from(RENDERERS), min_size=2, max_size=2, unique_by=lambda each: each.kind), hostile())
def test_one_format_does_not_read_another(pair: list[Ours], text: str) -> None:
    """A prompt of one format, quoted in a document of another, is text there."""
    inner, outer = pair
    quoted = inner.render(make_nodes([text])).text
    nodes = make_nodes([quoted])
    assert outer.recover(outer.render(nodes).text) == expected(outer, nodes)
