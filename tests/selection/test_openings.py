"""Nodes that share no beginning of a line are not parsed, and nothing but the time is different."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import included_text, with_text
from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.selection.dedup import cut_by
from llama_index_grounded.selection.openings import Openings, openings
from llama_index_grounded.selection.repetition import Level, Scope, TextLedger
from llama_index_grounded.selection.trail import receive
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import ATOMIC, FRAMES, LONG, SHORT, documents
from tests.timing import assert_linear, assert_within

UNSPACED = ["印刷された本は到着から二十一日以内に返品できます。", "หนังสือที่พิมพ์แล้วสามารถส่งคืนได้ภายในยี่สิบเอ็ดวัน"]
WRAPPED = [LONG[0].replace(" ", "\n", 3), LONG[1].replace(" of ", "\u2028of\t"), LONG[0].replace(" ", "  ")]
ACCENTED = ["Café au lait costs two euros here every day.", "Cafe\u0301 au lait costs two euros here every day."]
LABELS = ["iPhone", "(a) iPhone", "For customers only.", "Is that so?", "A title of eight words without any end mark"]
CONTAINERS = [f"<pre>\nx\n\n{LONG[0]}\n</pre>", f".. note::\n\n   {LONG[1]}", "i. one\n\nii. two", "<ul>"]
BLOCKS = [*LONG, *WRAPPED, *UNSPACED, *ACCENTED, *SHORT, *FRAMES, *ATOMIC, "Title\n---", *LABELS, *CONTAINERS]

texts = st.builds(
    lambda parts, gap: gap.join(parts),
    st.lists(st.sampled_from(BLOCKS), max_size=6),
    st.sampled_from(["\n\n", "\n\n", "\r\n\r\n", "\n", " \n \n"]),
)


@given(
    drawn=st.lists(st.tuples(texts, documents), max_size=6),
    scope=st.sampled_from(get_args(Scope)),
    level=st.sampled_from(get_args(Level)),
)
@example(  # the last becomes what the first is once its paragraph is taken out for the second
    drawn=[(f"{SHORT[0]} {SHORT[3]}", {}), (LONG[0], {}), (f"{SHORT[0]}\n\n{LONG[0]}\n\n{SHORT[3]}", {})],
    scope="global",
    level="paragraph",
)
def test_nothing_is_different_when_every_node_is_parsed(
    drawn: list[tuple[str, dict[str, str]]], scope: Scope, level: Level
) -> None:
    """The filter removes, for the same twins, exactly what it would remove if it looked into every node."""
    nodes = make_nodes([text for text, _ in drawn], metadata=[fields for _, fields in drawn])
    stage = ScopedDedup(scope=scope, level=level)
    stamped = receive(nodes, None, stage.keys, stage).plain()
    cuts = cut_by(TextLedger(scope, level), stamped)
    left = {scored.node.node_id: cut.after for scored, cut in cuts}
    expected = [left.get(scored.node.node_id, scored) for scored in stamped]
    selection = stage.select(nodes)
    assert _shown(selection.nodes) == _shown([scored for scored in expected if scored is not None])
    told = [(decision.node_id, decision.twin) for decision in selection.decisions]
    twins = {scored.node.node_id: list(cut.twins) for scored, cut in cuts}
    assert told == [
        (node_id, twin)
        for node_id, holders in twins.items()
        for twin in (holders if left[node_id] is not None else holders[:1])
    ]


def _shown(nodes: list[NodeWithScore]) -> list[tuple[str, str]]:
    return [(scored.node.node_id, included_text(scored.node)) for scored in nodes]


@pytest.mark.parametrize(
    "one, other",
    [
        (f"## A\n\n{LONG[0]}\n\n{LONG[1]}", f"{LONG[2]}\n\n{WRAPPED[0]}"),
        (ACCENTED[0], f"Prices\n{ACCENTED[1]}"),
        (f"{UNSPACED[0]}\n\n{LONG[0]}", f"{UNSPACED[0]}\n\n{LONG[1]}"),
        (f"## A\n\n{SHORT[0]}", f"## B\n\n{SHORT[0]}"),
    ],
    ids=["wrapped", "decomposed", "without spaces", "a short chunk"],
)
def test_what_repeats_shares_a_beginning(one: str, other: str) -> None:
    """Two texts with a paragraph or a whole chunk in common share the beginning of a line, however it is written."""
    assert not openings(one).isdisjoint(openings(other))


def test_a_shared_beginning_counts_within_its_scope() -> None:
    """Nodes that begin alike in two different sections are left alone when only twins of one section count."""
    nodes = make_nodes([LONG[0], LONG[0]], metadata=[{"section": "a"}, {"section": "b"}])
    stage = ScopedDedup()
    stamped = receive(nodes, None, stage.keys, stage).plain()
    assert Openings(stamped, lambda node: node.metadata["section"]).alike == []
    assert Openings(stamped, lambda _: ()).alike == stamped


@pytest.mark.parametrize("line", ["中。\n", "中文 ", "x:\n\n", "- x\n", "word "])
def test_a_megabyte_of_lines_is_looked_through_at_once(line: str) -> None:
    """Lines of one character cost as little as others: a document of a megabyte takes far less than three seconds."""
    nodes = make_nodes([line * (1_000_000 // len(line)), "ok then"])
    assert len(assert_within(3, lambda: ScopedDedup().postprocess_nodes(nodes))) == 2


@pytest.mark.parametrize("block", ["x:\n\n", "Xy\n\n", "# h\n", "你好世界。\n\n"])
def test_time_grows_with_length_only_where_two_nodes_repeat_each_other(block: str) -> None:
    """Two chunks of 8,000 blocks that repeat each other, under as many labels, take four times as long as of 2,000."""

    def remove(count: int) -> None:
        nodes = make_nodes([block * count, block * count + "Something else."], metadata={"document_id": "d"})
        ScopedDedup().postprocess_nodes(nodes)

    assert_linear(remove, 2_000)


def test_what_is_left_of_a_node_meets_only_those_of_its_scope() -> None:
    """A shortened node may repeat one that was alone in its own section, not one of another section."""
    texts = [LONG[0], LONG[1], LONG[2], LONG[3]]
    nodes = make_nodes(texts, metadata=[{"section": name} for name in "aabb"])
    stage = ScopedDedup()
    stamped = receive(nodes, None, stage.keys, stage).plain()
    beginnings = Openings(stamped, lambda node: node.metadata["section"])
    assert beginnings.alike == []
    for place, text in enumerate(texts):
        met = [beginnings.met_by([with_text(scored, text)]) for scored in stamped]
        assert met == [place // 2 == other // 2 for other in range(4)]


def test_many_shortened_nodes_meet_many_that_were_alone_at_once() -> None:
    """What is left of thousands of nodes is looked for among thousands of others in far less than a second."""
    texts = [
        "\n".join(f"Line {number} {line} of one of very many texts that share nothing" for line in range(10))
        for number in range(4000)
    ]
    stage = ScopedDedup(scope="global")
    stamped = receive(make_nodes(texts), None, stage.keys, stage).plain()
    beginnings = Openings(stamped, lambda _: ())
    shortened = [with_text(scored, "Nothing of the kind stands in any of the others.") for scored in stamped]
    assert not assert_within(1, lambda: beginnings.met_by(shortened))
