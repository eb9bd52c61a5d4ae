"""What the budget rejects stood for nothing: its near-duplicates come back, and each list of documents is right."""

from __future__ import annotations

from typing import Any

import pytest

from llama_index_grounded.evidence import strip
from llama_index_grounded.selection import AttentionReorder, ScopedDedup, TokenBudget
from llama_index_grounded.selection.near_duplicates import NearDuplicateFilter
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import (
    Foreign,
    WordEmbedding,
    also_in,
    decided,
    ids,
    in_documents,
    look_and_pass,
    room_for,
    run,
    seen,
)

BASE = (
    "Printed books can be returned within 21 days of delivery if they are unread and undamaged and come in the "
    "packaging in which they were sent to the address that stands on the invoice"
)
SHOUTED = BASE.upper() + "!"
OTHER = "A refund is paid to the card that was used for the order, by our bank, as soon as the parcel has been opened"


BIG = f"{BASE} " + " ".join(f"{word} {word}ly" for word in OTHER.replace(",", "").split())
BIG_TOO = f"{BIG} indeed"


@pytest.mark.parametrize("method", ["lexical", "embedding"])
@pytest.mark.parametrize("moved", [[], [AttentionReorder(placement="end")]], ids=["straight", "moved"])
def test_a_near_duplicate_of_a_rejected_node_comes_back(method: Any, moved: list[Any]) -> None:
    """The budget rejects the node that stood for three: one of them comes back and lists the last."""
    model = WordEmbedding() if method == "embedding" else None
    stage = NearDuplicateFilter(method=method, embed_model=model, threshold=0.8)
    nodes = make_nodes([BIG_TOO, BIG, f"{BIG}!"], metadata=in_documents("a", "b", "c"))
    result = run([stage, *moved, TokenBudget(max_tokens=room_for(BIG, document_id="b"))], nodes)
    assert ids(result) == ["n1"]
    assert also_in(result) == [("c",)]
    assert ("restored", "twin_rejected", "n1") in decided(result)


def words(first: int, last: int) -> str:
    """Write a run of words that overlaps with another run as its numbers do."""
    return " ".join(chr(97 + at // 26) + chr(97 + at % 26) + "word" for at in range(first, last))


BULKY = {"document_id": "a", "title": "long " * 900}


def test_what_comes_back_lists_what_still_goes() -> None:
    """Of three that went for a rejected node two come back, and the better-ranked lists the third."""
    texts = [words(0, 30), words(0, 22), words(4, 26), words(8, 30)]
    stages = [NearDuplicateFilter(threshold=0.6)]
    nodes = make_nodes(texts, metadata=[BULKY, *in_documents("x", "t", "y")])
    assert also_in(run(stages, nodes)) == [("x", "t", "y")]
    packed = run([*stages, TokenBudget(max_tokens=400)], nodes)
    assert ids(packed) == ["n1", "n3"]
    assert also_in(packed) == [("t",), ()]


def test_a_document_moves_to_the_list_of_the_node_that_now_stands_for_it() -> None:
    """A node that comes back takes another's near-duplicate over: the other lists it no more."""
    texts = [words(0, 30), words(8, 38), words(24, 54), words(16, 46)]
    stages = [NearDuplicateFilter(threshold=0.5)]
    nodes = make_nodes(texts, metadata=[BULKY, *in_documents("x", "k", "t")])
    before = run(stages, nodes)
    assert list(zip(ids(before), also_in(before), strict=True)) == [("n0", ("x",)), ("n2", ("t",))]
    packed = run([*stages, TokenBudget(max_tokens=400)], nodes)
    assert list(zip(ids(packed), also_in(packed), strict=True)) == [("n1", ("t",)), ("n2", ())]


def test_lists_survive_a_replay_for_another_reason() -> None:
    """Somebody looked at the nodes in between, so twins stay out: their documents are still listed."""
    shared = {"document_id": "a", "section": "s"}
    lead = "Every parcel is insured on the way to us and on the way back to you."
    nodes = make_nodes(
        [BASE, SHOUTED, f"{lead}\n\n" + OTHER * 9, f"{lead}\n\nKeep the receipt."],
        metadata=[shared, {"document_id": "b"}, shared, shared],
    )
    room = room_for(BASE, f"{lead}\n\nKeep the receipt.", **shared)
    stages = [NearDuplicateFilter(), Foreign(act=look_and_pass), ScopedDedup(), TokenBudget(max_tokens=room)]
    result = run(stages, nodes)
    assert ids(result) == ["n0", "n3"]
    assert ("restored", "twin_rejected", "n3") in decided(result)
    assert also_in(result)[0] == ("b",)


def test_what_was_given_stays_as_it_was() -> None:
    """A replay notes documents on copies of its own: nodes of the first pass keep their lists."""
    nodes = make_nodes([BIG_TOO, BIG, f"{BIG}!"], metadata=in_documents("a", "b", "c"))
    before = [scored.model_copy(deep=True) for scored in nodes]
    filtered = NearDuplicateFilter().postprocess_nodes(nodes)
    TokenBudget(max_tokens=room_for(BIG, document_id="b")).postprocess_nodes(filtered)
    assert nodes == before
    assert also_in(filtered) == [("b", "c")]
    assert seen([strip(scored) for scored in filtered]) == seen(nodes[:1])
