"""The size of a block is counted once, in advance or when it is asked for, and is the same either way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode

from llama_index_grounded.rendering import Renderer, XmlRenderer
from llama_index_grounded.rendering.renderer import key_at
from llama_index_grounded.rendering.sizes import BlockCounter
from llama_index_grounded.selection import PassageMerger, TokenBudget
from llama_index_grounded.testing import make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.hostile import texts
from tests.rendering.parts import RENDERERS
from tests.selection.cuts import cut

COUNTERS = [TokenCounter(), TokenCounter(encoding="cl100k_base"), TokenCounter(tokenizer=list)]


class Strict(XmlRenderer):
    """A renderer of somebody's own that can not show nothing."""

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        assert node.get_content().strip()
        return super().block(node, key, score)

    def frame(self, node: BaseNode, key: str, score: float | None = None) -> tuple[str, str, str]:
        """Render one source in parts."""
        assert node.get_content().strip()
        return super().frame(node, key, score)


@pytest.mark.parametrize("renderer", RENDERERS, ids=repr)
@pytest.mark.parametrize("counter", COUNTERS, ids=["o200k", "cl100k", "own"])
@given(drawn=st.lists(texts(max_pieces=4) | st.just(" \n"), min_size=1, max_size=5), places=st.data())
def test_what_was_prepared_is_what_would_be_counted(
    renderer: Renderer, counter: TokenCounter, drawn: list[str], places: st.DataObject
) -> None:
    """Counted in advance or not, and at whatever place, a block has the tokens of its own text."""
    nodes = make_nodes(drawn, metadata=[{"title": f"t{place % 2}"} for place in range(len(drawn))])
    blocks = BlockCounter(renderer, counter, {})
    blocks.prepare(nodes)
    for scored in nodes:
        place = places.draw(st.sampled_from([0, 3, 998, 999, 1500]))
        text = renderer.block(scored.node, key_at(place), scored.score)
        assert blocks.tokens(scored, place) == counter.tokens(text)
        assert blocks.is_blank(scored) == (not renderer.recover(renderer.render([scored]).text)[0][1].strip())


def test_a_block_that_nobody_asks_for_is_not_rendered() -> None:
    """A blank node is left out before a renderer of one's own is asked for its block."""
    nodes = make_nodes(["text", " ", ""])
    kept = TokenBudget(max_tokens=100, renderer=Strict()).postprocess_nodes(nodes)
    assert [scored.node.node_id for scored in kept] == ["n0"]


def test_keys_of_four_digits_are_counted_as_they_are() -> None:
    """Nodes that go behind S999 because a passage is taken apart are counted under their longer keys."""
    long = 100_000
    document = "word " * (long // 5) + "Every part of this passage is short. " * 3
    ranges = [(0, long), *((long - 5 + 20 * number, long + 20 + 20 * number) for number in range(4))]
    others = make_nodes(["Short."] * 998, ids=[f"o{number}" for number in range(998)])
    nodes = PassageMerger().postprocess_nodes([*cut(document, ranges), *others])
    assert len(nodes) == 999
    counter, renderer = TokenCounter(), XmlRenderer()
    everything = counter.tokens(renderer.render([*cut(document, ranges)[1:], *others]).text)
    for limit, count in [(everything, 1002), (everything - 1, 1001)]:
        kept = TokenBudget(max_tokens=limit).postprocess_nodes(nodes)
        assert len(kept) == count
        assert counter.tokens(renderer.render(kept).text) <= limit
