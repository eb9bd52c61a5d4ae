"""The law checker passes what is sound and finds what breaks a law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.evidence import identity, with_text
from llama_index_grounded.selection import Outcome, Stage
from llama_index_grounded.selection.carrier import Evidence
from llama_index_grounded.selection.stage import Kind
from llama_index_grounded.testing import LawError, check_postprocessor, make_nodes


class Act(BaseNodePostprocessor):
    """A postprocessor that breaks laws on demand."""

    act: str
    _calls: int = PrivateAttr(default=0)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self.act == "mutates text" and nodes:
            nodes[0].node.set_content("changed")
        if self.act == "mutates the list":
            nodes.reverse()
        if self.act == "invents":
            return [*nodes, *make_nodes(["new"], ids=["new"])]
        if self.act == "changes a score":
            return [NodeWithScore(node=scored.node, score=0.99) for scored in nodes]
        if self.act in {"changes metadata", "changes what is shown"}:
            shown = {"excluded_llm_metadata_keys": ["title"]} if self.act == "changes what is shown" else {}
            changed = {"metadata": {**nodes[0].node.metadata, "tenant": "other"}} if nodes else {}
            return [NodeWithScore(node=s.node.model_copy(update=shown or changed), score=s.score) for s in nodes]
        if self.act == "halves":
            return nodes[: len(nodes) // 2]
        if self.act.startswith("refuses"):
            raise ConfigurationError("no")
        return nodes

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self.act == "refuses in sync":
            return nodes
        return nodes[:1] if self.act == "async differs" else self._postprocess_nodes(nodes, query_bundle)


class StrictAct(Act, extra="forbid"):
    """The same, with unknown options refused."""


INVENTED = {
    "invents a text": "Refunds are unlimited.",
    "adds a line": "only\nand more",
    "joins what is not joined": "first unlimited second",
}


class Told(Stage):
    """A stage that breaks laws on demand."""

    kind: ClassVar[Kind] = "rewrite"
    act: str
    _fresh: bool = PrivateAttr(default=False)

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Do it."""
        if self.act == "silent":
            return Outcome(nodes[:1])
        if self.act == "grows":
            return Outcome([with_text(scored, scored.node.get_content() + "!") for scored in nodes])
        if self.act in INVENTED:
            return Outcome([with_text(scored, INVENTED[self.act]) for scored in nodes])
        if self.act == "swaps texts":
            texts = sorted((scored.node.get_content() for scored in nodes), reverse=True)
            nodes = Evidence(map(with_text, nodes, texts), nodes.trail)
        if self.act == "forgets its state" and self._fresh:
            return Outcome(nodes[:0], [self.decision(scored, "dropped", "fresh") for scored in nodes])
        return Outcome(nodes)


class AddsMetadata(Stage):
    """Writes a field of its own into every node."""

    kind: ClassVar[Kind] = "rewrite"

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Write it."""
        changed = [{"metadata": {**scored.node.metadata, "tenant": "other"}} for scored in nodes]
        copies = [scored.node.model_copy(update=update) for scored, update in zip(nodes, changed, strict=True)]
        return Outcome([NodeWithScore(node=node, score=s.score) for node, s in zip(copies, nodes, strict=True)])


def forgetful() -> Told:
    """Make a stage that behaves as its copies do not."""
    stage = Told(act="forgets its state")
    stage._fresh = True
    return stage


@pytest.mark.parametrize(
    "factory, law",
    [
        (lambda: StrictAct(act="mutates text"), "were changed"),
        (lambda: StrictAct(act="mutates the list"), "the list that was given was changed"),
        (lambda: StrictAct(act="invents"), "came out of nothing"),
        (lambda: StrictAct(act="changes a score"), "a filter returned what it was not given"),
        (lambda: StrictAct(act="halves"), "a second pass changes the result"),
        (lambda: StrictAct(act="async differs"), "async differs from sync"),
        (lambda: StrictAct(act="refuses"), "refused every case"),
        (lambda: StrictAct(act="refuses in sync"), "async does not refuse what sync refuses"),
        (lambda: Act(act="nothing"), "an unknown option was accepted"),
        (lambda: Told(act="silent"), "dropped without a decision"),
        (lambda: Told(act="grows"), "a second pass changes the result"),
        (lambda: StrictAct(act="changes metadata"), "a filter returned what it was not given"),
        (lambda: StrictAct(act="changes what is shown"), "a filter returned what it was not given"),
        (AddsMetadata, "metadata that it was not given"),
        *((lambda act=act: Told(act=act), "what stands in no text of the document") for act in INVENTED),
        (lambda: Told(act="swaps texts"), "what stands in no text of the document"),
        (forgetful, "a copy behaves differently"),
        (SimilarityPostprocessor, "an unknown option was accepted"),
    ],
)
def test_each_broken_law_is_found(factory: Callable[[], BaseNodePostprocessor], law: str) -> None:
    """The checker names the law that a postprocessor breaks."""
    with pytest.raises(LawError, match=law):
        check_postprocessor(factory)


def test_a_reorder_must_be_a_permutation() -> None:
    """LongContextReorder passes as a reorder up to its unknown options; one that drops a node does not."""
    with pytest.raises(LawError, match="no permutation"):
        check_postprocessor(lambda: StrictAct(act="halves"), kind="reorder")
    with pytest.raises(LawError, match="unknown option"):
        check_postprocessor(LongContextReorder, kind="reorder")


def test_a_reorder_changes_nothing_else() -> None:
    """A permutation of nodes with other metadata is none."""
    with pytest.raises(LawError, match="no permutation"):
        check_postprocessor(lambda: StrictAct(act="changes metadata"), kind="reorder")


class Joins(Stage):
    """Joins the texts of a document into its first node, with or without what overlaps."""

    kind: ClassVar[Kind] = "rewrite"
    between: str = ""
    overlap: int = 0

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Join them once."""
        texts = [scored.node.get_content() for scored in nodes]
        if len(nodes) != 3 or any(identity(scored.node)[0] != "d" for scored in nodes):
            return Outcome(nodes)
        whole = with_text(nodes[0], texts[0] + "".join(self.between + text[self.overlap :] for text in texts[1:]))
        return Outcome([whole], [self.decision(scored, "dropped", "merged") for scored in nodes[1:]])


def test_a_rewrite_may_shorten_and_join() -> None:
    """Texts of one document may be joined, within a line or with signs in between, but nothing may stand in between."""
    chunks = make_nodes(["Returns ta", "take five d", "days in all.\nAlways."], metadata={"document_id": "d"})
    cases = {"chunks": chunks, "apart": make_nodes(["a", "b"], metadata=[{"document_id": "d"}, {}])}
    check_postprocessor(Joins, cases=cases)
    check_postprocessor(lambda: Joins(between="\n…\n"), cases=cases)
    check_postprocessor(
        lambda: Joins(overlap=1), cases={"a": make_nodes(["ab", "bc", "cd"], metadata={"document_id": "d"})}
    )
    with pytest.raises(LawError, match="what stands in no text"):
        check_postprocessor(lambda: Joins(between=" not "), cases=cases)


@given(st.text(st.sampled_from("ab \n"), min_size=2, max_size=12), st.data())
def test_every_part_of_a_text_is_a_rewrite_of_it(text: str, data: st.DataObject) -> None:
    """A rewrite that cuts a text anywhere keeps the laws."""
    start, end = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
    part = text[start:end]
    check_postprocessor(lambda: Cuts(text=text, part=part), cases={"one": make_nodes([text])})


class Cuts(Stage):
    """Puts a part in place of one text."""

    kind: ClassVar[Kind] = "rewrite"
    text: str
    part: str

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Cut that text."""
        return Outcome([with_text(s, self.part) if s.node.get_content() == self.text else s for s in nodes])


def test_a_sound_postprocessor_passes() -> None:
    """No law is found broken where none is, also in the order of the given list."""
    check_postprocessor(lambda: StrictAct(act="nothing"))
    check_postprocessor(lambda: Told(act="nothing"))


def test_further_cases_are_named_when_they_fail() -> None:
    """A case of one's own is checked like the others, and its name is in the error."""
    with pytest.raises(LawError, match="ToldOnly, mine: a node was dropped without a decision"):
        check_postprocessor(
            lambda: ToldOnly(act="silent on four"), cases={"mine": make_nodes(["a", "b", "c", "d", "e"])}
        )


class ToldOnly(Told):
    """Breaks the law for five nodes only."""

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Drop the fifth one silently."""
        return Outcome(nodes[:4])


def test_a_stage_that_can_not_be_copied_by_design_is_checked_without() -> None:
    """``round_trip=False`` leaves out the copies, nothing else."""
    check_postprocessor(lambda: Holds(predicate=bool), round_trip=False)
    with pytest.raises(LawError, match="without a decision"):
        check_postprocessor(lambda: Holds(predicate=None), round_trip=False)


class Holds(Stage):
    """A stage with an option that neither dict nor JSON can hold."""

    predicate: Any

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Keep everything while there is a predicate."""
        return Outcome(nodes if self.predicate else [])


async def test_the_laws_are_checked_inside_a_running_loop_too() -> None:
    """In an async test or a notebook, where the thread already runs a loop, the same laws are found kept or broken."""
    check_postprocessor(lambda: Told(act="nothing"))
    with pytest.raises(LawError, match="a node was dropped without a decision"):
        check_postprocessor(lambda: ToldOnly(act="silent"), cases={"mine": make_nodes(["a", "b", "c", "d", "e"])})
