"""One of several texts that are nearly the same stays, names the others' documents, and never hides another number."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, Settings
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field, ValidationError

from llama_index_grounded.evidence import included_text
from llama_index_grounded.selection import ScopedDedup, TokenBudget, near_duplicates
from llama_index_grounded.selection.near_duplicates import NearDuplicateFilter
from llama_index_grounded.selection.shingling import may_be_near, shingles
from llama_index_grounded.testing import check_postprocessor, make_nodes
from llama_index_grounded.text.statement import apart, statement
from tests.selection.parts import WordEmbedding, also_in, bodies, ids, in_documents, room_for, run

BASE = (
    "Printed books can be returned within 21 days of delivery if they are unread and undamaged and come in the "
    "packaging in which they were sent to the address that stands on the invoice"
)
LONGER = f"{BASE} together with the receipt"
SHOUTED = BASE.upper() + "!"
OTHER_DAYS = BASE.replace("21", "14")
DENIED = BASE.replace("can be", "can not be")
OTHER = "A refund is paid to the card that was used for the order, by our bank, as soon as the parcel has been opened"
POOL = [BASE, LONGER, SHOUTED, OTHER_DAYS, DENIED, OTHER, "Keep it.", "", "退货期限为自收货之日起"]


class Counting(WordEmbedding):
    """Notes each batch that it was asked for."""

    batches: list[int] = Field(default_factory=list[int])

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return super()._get_text_embeddings(texts)


# Laws


@settings(max_examples=40)
@given(st.lists(st.sampled_from(POOL), max_size=7), st.sampled_from([0.5, 0.8, 1.0]))
def test_what_stays_is_a_part_and_no_two_of_it_are_near(drawn: list[str], threshold: float) -> None:
    """The result is a part of the input in its order, pairwise different; what left is near to a better-ranked one."""
    nodes = make_nodes(drawn)
    chosen = NearDuplicateFilter(threshold=threshold).select(nodes)
    kept = ids(chosen.nodes)
    assert kept == [node_id for node_id in ids(nodes) if node_id in kept]
    texts = dict(zip(ids(nodes), drawn, strict=True))
    for at, one in enumerate(kept):
        assert not any(near(texts[one], texts[other], threshold) for other in kept[at + 1 :])
    for gone in chosen.decisions:
        twin = str(gone.twin)
        assert near(texts[gone.node_id], texts[twin], threshold)
        assert kept.index(twin) < len(kept)
        assert int(twin[1:]) < int(gone.node_id[1:])


def near(one: str, other: str, threshold: float) -> bool:
    """Say by brute force whether two texts are near-duplicates."""
    mine, theirs = shingles(one), shingles(other)
    alike = bool(mine | theirs) and len(mine & theirs) / len(mine | theirs) >= threshold
    return alike and not apart(statement(one), statement(other))


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=14).map(" ".join), max_size=9), st.data())
def test_the_index_misses_no_pair(drawn: list[str], data: st.DataObject) -> None:
    """Word for word random texts: the same nodes stay as when every pair is compared."""
    threshold = data.draw(st.sampled_from([0.3, 0.5, 0.75, 0.8, 1.0]))
    expected: list[str] = []
    for text in drawn:
        if not any(near(text, other, threshold) for other in expected):
            expected.append(text)
    assert bodies(NearDuplicateFilter(threshold=threshold).postprocess_nodes(make_nodes(drawn))) == expected


@given(st.permutations([BASE, LONGER, SHOUTED]))
def test_the_first_of_equal_ones_stays(texts: list[str]) -> None:
    """In whatever order near-duplicates come, the first one stays."""
    assert bodies(NearDuplicateFilter().postprocess_nodes(make_nodes(texts, scores=[0.5] * 3))) == texts[:1]


@pytest.mark.parametrize("scope", ["section", "document", "global"])
def test_laws_of_words(scope: Any) -> None:
    """The filter keeps the laws of its kind."""
    nodes = make_nodes([BASE, SHOUTED, OTHER_DAYS], metadata={"document_id": "d"})
    check_postprocessor(lambda: NearDuplicateFilter(scope=scope), cases={"near": nodes})


@pytest.mark.parametrize("model", [MockEmbedding(embed_dim=4), WordEmbedding()])
def test_laws_of_embeddings(model: BaseEmbedding, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter keeps the laws of its kind by embeddings, too, with the model of the settings."""
    monkeypatch.setattr(Settings, "_embed_model", model)
    nodes = make_nodes([BASE, SHOUTED, OTHER_DAYS])
    check_postprocessor(lambda: NearDuplicateFilter(method="embedding"), cases={"near": nodes})


# What counts as the same


@pytest.mark.parametrize("other", [LONGER, SHOUTED, BASE.replace("21", "twenty-one"), BASE.replace(" if", ", if")])
def test_near_texts_merge(other: str) -> None:
    """A few words more, another case, notation or punctuation make no other text."""
    assert ids(NearDuplicateFilter().postprocess_nodes(make_nodes([BASE, other]))) == ["n0"]


@pytest.mark.parametrize("other", [OTHER_DAYS, DENIED, BASE.replace("days", "hours"), BASE.replace("can", "can never")])
@pytest.mark.parametrize("method", ["lexical", "embedding"])
def test_other_numbers_and_negations_stay(method: Any, other: str) -> None:
    """A text with another number, unit or negation is never a near-duplicate, even where its vector is the same."""
    model = MockEmbedding(embed_dim=4) if method == "embedding" else None
    stage = NearDuplicateFilter(method=method, threshold=0.1, embed_model=model)
    assert ids(stage.postprocess_nodes(make_nodes([BASE, other]))) == ["n0", "n1"]


def test_the_better_ranked_stays_whatever_the_scores_say() -> None:
    """Rank is the incoming order."""
    stage = NearDuplicateFilter()
    assert ids(stage.postprocess_nodes(make_nodes([LONGER, BASE], scores=[0.1, 0.9]))) == ["n0"]


@pytest.mark.parametrize("scope,expected", [("section", "n0 n1 n2"), ("document", "n0 n1"), ("global", "n0")])
def test_scopes(scope: Any, expected: str) -> None:
    """A twin is looked for in the section, in the version of the document, or anywhere."""
    metadata = [{"document_id": name, "section": section} for name, section in (("d", "s"), ("e", "s"), ("d", "t"))]
    kept = NearDuplicateFilter(scope=scope).postprocess_nodes(make_nodes([BASE, BASE, BASE], metadata=metadata))
    assert " ".join(ids(kept)) == expected


def test_static_embeddings_find_other_words_in_another_order(wordllama_embed: BaseEmbedding) -> None:
    """Real vectors: the same words in another order are near, another subject is not, and no number is overlooked."""
    turned = "If they are unread and undamaged, printed books can be returned within 21 days of delivery"
    straight = "Printed books can be returned within 21 days of delivery if they are undamaged and unread"
    nodes = make_nodes([straight, turned, OTHER, turned.replace("21", "30")])
    stage = NearDuplicateFilter(method="embedding", embed_model=wordllama_embed)
    assert ids(stage.postprocess_nodes(nodes)) == ["n0", "n2", "n3"]


# Reports


def test_the_kept_source_lists_the_other_documents() -> None:
    """Each other document is listed once, in rank order; its own is not."""
    nodes = make_nodes([BASE, SHOUTED, LONGER, BASE, OTHER], metadata=in_documents("a", "b", "c", "a", "b"))
    selection = NearDuplicateFilter().select(nodes)
    assert ids(selection.nodes) == ["n0", "n4"]
    assert also_in(selection.nodes) == [("b", "c"), ()]
    first = selection.decisions[0]
    assert (first.action, first.reason, first.node_id, first.twin) == ("dropped", "near_duplicate", "n1", "n0")
    assert (first.value, first.limit) == (1.0, 0.8)


def test_a_second_filter_adds_to_the_list() -> None:
    """What was left out for a node that is left out later is listed by the one that stays."""
    half = " ".join(BASE.split()[:24])
    nodes = make_nodes([half, BASE, SHOUTED], metadata=in_documents("a", "b", "c"))
    result = run([NearDuplicateFilter(), NearDuplicateFilter(threshold=0.4)], nodes)
    assert ids(result) == ["n0"]
    assert also_in(result) == [("b", "c")]


def test_nodes_without_twins_are_not_copied_again() -> None:
    """What the filter leaves alone is the very object that the stage before it handed over."""
    nodes = ScopedDedup().postprocess_nodes(make_nodes([BASE, OTHER]))
    kept = NearDuplicateFilter().postprocess_nodes(nodes)
    assert [one is other for one, other in zip(nodes, kept, strict=True)] == [True, True]


# Calls


def test_one_call_for_a_query_and_none_in_the_budget() -> None:
    """Texts without a vector go out in one batch, each once; replaying asks for nothing more."""
    model = Counting(batches=[])
    big = f"{BASE} {OTHER}"
    nodes = make_nodes([big, f"{big}.", BASE, OTHER, OTHER, ""])
    stages = [NearDuplicateFilter(method="embedding", embed_model=model), TokenBudget(max_tokens=room_for(BASE))]
    result = run(stages, nodes)
    assert model.batches == [4]
    assert ids(result)[0] == "n2"


def test_embeddings_that_nodes_carry_are_used_unless_the_text_changed() -> None:
    """Carried vectors spare the call; a node that was shortened since is embedded anew."""
    model = Counting(batches=[])
    nodes = make_nodes([BASE, OTHER])
    for scored in nodes:
        scored.node.embedding = [1.0, 0.0]
    stage = NearDuplicateFilter(method="embedding", embed_model=model)
    assert ids(stage.postprocess_nodes(nodes)) == ["n0", "n1"]
    nodes[1] = make_nodes([SHOUTED], ids=["n1"])[0]
    nodes[1].node.embedding = [2.0, 0.0]
    assert ids(stage.postprocess_nodes(nodes)) == ["n0"]
    assert model.batches == []
    shared = make_nodes([BASE, f"{BASE}\n\nKeep the receipt."], metadata={"document_id": "d"})
    for scored in shared:
        scored.node.embedding = [1.0, 0.0]
    assert len(run([ScopedDedup(), stage], shared)) == 2
    assert model.batches == [1]


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [1e300, 1e300]])
def test_vectors_without_direction_are_near_to_nothing(vector: list[float]) -> None:
    """A zero, not-a-number or overflowing vector of a model merges nothing and raises nothing."""

    class Broken(WordEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return vector

    stage = NearDuplicateFilter(method="embedding", embed_model=Broken())
    assert len(stage.postprocess_nodes(make_nodes([BASE, SHOUTED]))) == 2


# Bad options, size


@pytest.mark.parametrize(
    "options",
    [
        *({"threshold": value} for value in (0, 0.0, -0.1, 1.1, float("nan"), float("inf"), "0.5", True)),
        *({"embed_model": MockEmbedding(embed_dim=2)}, {"method": "embedding", "embed_model": "local"}),
        *({"method": "minhash"}, {"scope": "page"}, {"treshold": 0.5}),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    """Impossible thresholds, unknown names, and a model that would not be used are refused at once."""
    with pytest.raises((ValidationError, ValueError)):
        NearDuplicateFilter(**options)


def test_a_thousand_nodes_that_share_half_their_text() -> None:
    """Boilerplate in every node makes no comparison of every pair: 1,000 nodes stay apart, and twins are found."""
    drawn = random.Random(7)
    same = " ".join(f"same{at}" for at in range(90))
    texts = [f"{same} " + " ".join(f"word{drawn.randrange(5000)}" for _ in range(90)) for _ in range(1000)]
    kept = NearDuplicateFilter().postprocess_nodes(make_nodes([*texts, texts[500].upper()]))
    assert [included_text(scored.node) for scored in kept] == texts


def test_equal_texts_of_other_scopes_are_not_even_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is the only one of its document is compared with none, so its words do not matter."""
    looked: list[int] = []

    def counting(texts: Sequence[str], threshold: float) -> list[bool]:
        looked.append(len(texts))
        return may_be_near(texts, threshold)

    monkeypatch.setattr(near_duplicates, "may_be_near", counting)
    nodes = make_nodes([BASE] * 5, metadata=[{"document_id": name} for name in "abcdd"])
    assert ids(NearDuplicateFilter(scope="document").postprocess_nodes(nodes)) == ["n0", "n1", "n2", "n3"]
    assert looked == [2]
