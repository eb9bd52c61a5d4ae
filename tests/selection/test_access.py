"""A node that may not be read never passes, and nothing of it reaches whoever asked."""

from __future__ import annotations

import asyncio
import copy
import pickle
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from pydantic import ValidationError

from llama_index_grounded.errors import AccessViolationError, ConfigurationError
from llama_index_grounded.evidence import STAMP
from llama_index_grounded.selection.access import AccessGuard
from llama_index_grounded.selection.filters import holds
from llama_index_grounded.selection.passages import PassageMerger
from llama_index_grounded.testing import check_postprocessor, make_nodes
from tests.selection.cuts import HOME, cut
from tests.selection.parts import bodies, ids, run, seen

TENANTS: list[Any] = ["t_7", "t_8", 7, True, None, "", ["t_7"]]
reader: ContextVar[str] = ContextVar("reader")

metadata = st.fixed_dictionaries(
    {}, optional={"tenant": st.sampled_from(TENANTS), "level": st.sampled_from([0, 1, "1"])}
)


@st.composite
def mixed_nodes(draw: st.DrawFn) -> list[NodeWithScore]:
    """Draw nodes of several tenants, some without."""
    fields = draw(st.lists(metadata, max_size=6))
    return make_nodes([f"text {place}" for place in range(len(fields))], metadata=fields)


def ours(tenant: str = "t_7") -> MetadataFilters:
    """Ask for one tenant."""
    return MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])


def is_ours(node: BaseNode) -> bool:
    """Tell the same by code."""
    return node.metadata.get("tenant") == "t_7"


def of_reader(node: BaseNode) -> bool:
    """Tell whether the node belongs to whoever asks."""
    return bool(node.metadata.get("tenant") == reader.get())


TWO = make_nodes(["ours", "SECRET theirs"], ids=["ours#1", "theirs#1"], metadata=[{"tenant": "t_7"}, {"tenant": "t_8"}])


# Laws


@pytest.mark.parametrize(
    "rules",
    [{"filters": ours()}, {"require": ["tenant"]}, {"predicate": is_ours}],
    ids=["filters", "require", "predicate"],
)
def test_the_laws_of_a_filter(rules: dict[str, Any]) -> None:
    """With each kind of rule the stage keeps the laws of its kind; without a predicate also through dict and pickle."""
    cases = {"two tenants": TWO, "ours alone": TWO[:1]}
    round_trip = "predicate" not in rules
    check_postprocessor(lambda: AccessGuard(**rules, on_violation="drop"), cases=cases, round_trip=round_trip)
    check_postprocessor(lambda: AccessGuard(**rules), cases=cases, round_trip=round_trip)


@given(nodes=mixed_nodes())
def test_exactly_the_nodes_that_satisfy_every_rule_pass(nodes: list[NodeWithScore]) -> None:
    """What passes is what the three rules allow, in its order and unchanged; the rest is reported once each."""
    guard = AccessGuard(filters=ours(), predicate=is_ours, require=["level"], on_violation="drop")
    selection = guard.select(nodes)
    allowed = [each for each in nodes if each.node.metadata.get("tenant") == "t_7" and "level" in each.node.metadata]
    assert seen(selection.nodes) == seen(allowed)
    gone = [decision.node_id for decision in selection.decisions]
    assert sorted(gone + ids(selection.nodes)) == sorted(ids(nodes))
    assert {(d.action, d.reason) for d in selection.decisions} <= {("dropped", "access")}


@given(nodes=mixed_nodes())
def test_raising_and_dropping_agree(nodes: list[NodeWithScore]) -> None:
    """The error names the nodes that dropping would remove, and there is none where nothing would be dropped."""
    dropped = [d.node_id for d in AccessGuard(filters=ours(), on_violation="drop").select(nodes).decisions]
    raised: list[str] = []
    try:
        AccessGuard(filters=ours()).select(nodes)
    except AccessViolationError as error:
        raised = list(error.node_ids)
    assert raised == dropped


@given(nodes=mixed_nodes())
def test_what_a_filter_and_its_negation_both_stop_is_what_nobody_can_decide(nodes: list[NodeWithScore]) -> None:
    """No node passes both, and one with a missing or incomparable tenant passes neither."""
    negated = MetadataFilters(filters=[ours()], condition="not")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    plain, turned = (ids(AccessGuard(filters=f, on_violation="drop").select(nodes).nodes) for f in (ours(), negated))
    texts = [each.node.node_id for each in nodes if isinstance(each.node.metadata.get("tenant"), str)]
    assert sorted(plain + turned) == texts


# Predicates


@pytest.mark.parametrize(
    "answer",
    [1, "yes", 1.0, [True], object(), None, False, NotImplemented],
    ids=lambda answer: f"{type(answer).__name__} {answer}"[:12],
)
def test_a_predicate_must_return_true_itself(answer: Any) -> None:
    """Whatever else it returns, truthy or not, is a violation."""
    with pytest.raises(AccessViolationError) as caught:
        AccessGuard(predicate=lambda _: answer).select(TWO[:1])
    assert caught.value.violations == (("ours#1", "predicate"),)


def test_a_predicate_that_raises_is_a_violation() -> None:
    """Its exception is the cause, nothing of it is in the message, and with "drop" the node is dropped."""

    def fails(node: BaseNode) -> bool:
        raise KeyError(f"no rights for {node.metadata['tenant']}")

    with pytest.raises(AccessViolationError) as caught:
        AccessGuard(predicate=fails).select(TWO)
    assert caught.value.violations == (("ours#1", "predicate_error"), ("theirs#1", "predicate_error"))
    assert isinstance(caught.value.__cause__, KeyError)
    assert "t_7" not in str(caught.value)
    assert AccessGuard(predicate=fails, on_violation="drop").select(TWO).nodes == []


def test_a_predicate_that_is_interrupted_interrupts_the_query() -> None:
    """Ctrl-C is no violation."""

    def interrupted(_: BaseNode) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AccessGuard(predicate=interrupted, on_violation="drop").select(TWO)


def test_a_predicate_sees_the_node_as_it_came_and_only_if_the_other_rules_hold() -> None:
    """It gets no trace of the stages, can spoil nothing, and is not asked about a node that the filter stops."""
    asked: list[str] = []

    def spoils(node: BaseNode) -> bool:
        asked.append(node.node_id)
        clean = STAMP not in node.metadata and node.excluded_llm_metadata_keys == []
        node.metadata.clear()
        return clean

    nodes = AccessGuard(filters=ours(), predicate=spoils, on_violation="drop").select(TWO).nodes
    assert asked == ["ours#1"]
    assert nodes[0].node.metadata["tenant"] == "t_7"


async def test_a_predicate_reads_the_context_of_its_own_query() -> None:
    """A context variable that was set before the query is seen on the worker thread, whoever else asks meanwhile."""
    guard = AccessGuard(predicate=of_reader, on_violation="drop")

    async def ask(tenant: str) -> list[str]:
        reader.set(tenant)
        await asyncio.sleep(0)
        return ids(await guard.apostprocess_nodes(list(TWO), QueryBundle("Whose?")))

    answers = await asyncio.gather(*(ask(tenant) for tenant in ["t_7", "t_8"] * 20))
    assert answers == [["ours#1"], ["theirs#1"]] * 20
    with pytest.raises(AccessViolationError) as caught:
        await AccessGuard(predicate=of_reader).apostprocess_nodes(list(TWO))
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_required_field_must_hold_something() -> None:
    """A field that is missing, None, blank or an empty list is a violation; 0 and False are values."""
    values: list[Any] = [None, "", " \n", [], {}, 0, False, "x"]
    nodes = make_nodes(["text"] * 9, metadata=[{}, *({"level": value} for value in values)])
    guard = AccessGuard(require=["level"], on_violation="drop")
    assert ids(guard.select(nodes).nodes) == ["n6", "n7", "n8"]


# Options


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"require": []},
        {"require": "tenant"},
        {"require": [" "]},
        {"require": [7]},
        {"predicate": True},
        {"filters": MetadataFilters(filters=[])},
        {"filters": {"filters": [{"key": "doc_id", "value": "a"}]}},
        {"require": ["a"], "on_violation": "ignore"},
        {"require": ["a"], "filter": ours()},
    ],
    ids=str,
)
def test_options_that_guard_nothing_are_refused(options: dict[str, Any]) -> None:
    """No rule at all, a text in place of names, an empty group and a misspelt option are errors at construction."""
    with pytest.raises(ValidationError):
        AccessGuard(**options)


def test_a_guard_that_lost_its_rules_refuses_to_work() -> None:
    """Filters that are changed or emptied after construction never open the guard."""
    filters = ours()
    guard = AccessGuard(filters=filters, on_violation="drop")
    filters.filters.clear()
    assert ids(guard.select(TWO).nodes) == ["ours#1"]
    with pytest.raises(ValidationError):
        guard.filters = None
    with pytest.raises(ConfigurationError):
        guard.select(TWO)


def test_a_predicate_is_never_lost_on_the_way() -> None:
    """To write it to a dict or to pickle a nameless one is an error; one with a name comes back as itself."""
    nameless, named = AccessGuard(predicate=lambda _: True), AccessGuard(predicate=is_ours)
    for write in (nameless.to_dict, nameless.to_json, named.model_dump_json, lambda: pickle.dumps(nameless)):
        with pytest.raises((ValueError, pickle.PicklingError, AttributeError), match=r"predicate|lambda"):
            write()
    for copied in (pickle.loads(pickle.dumps(named)), copy.deepcopy(nameless)):  # noqa: S301 - our own bytes
        assert copied.predicate is not None
    assert AccessGuard.from_dict(AccessGuard(require=["a"]).to_dict()).require == ("a",)


@pytest.mark.parametrize("operator", [FilterOperator.EQ, FilterOperator.IN])
def test_the_guard_is_stricter_than_a_cast(operator: FilterOperator) -> None:
    """Of texts and numbers that read alike only the very text passes."""
    value: Any = "007" if operator == FilterOperator.EQ else ["007"]
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=value, operator=operator)])
    nodes = make_nodes(["x"] * 6, metadata=[{"tenant": tenant} for tenant in ("007", "7", 7, 7.0, "007 ", "7.0")])
    assert ids(AccessGuard(filters=filters, on_violation="drop").select(nodes).nodes) == ["n0"]


@pytest.mark.parametrize("huge", [10**400, Fraction(10**400), Decimal("1e999")], ids=type)
@pytest.mark.parametrize("found", [np.float64(7), np.float32(7), 7.0, 7, Fraction(7)], ids=type)
def test_numbers_beyond_the_range_of_floats_stop_no_query(huge: Any, found: Any) -> None:
    """Such a value in the metadata is one that nobody can read, not an error of the guard; other nodes go on."""
    nodes = make_nodes(["x", "x"], metadata=[{"level": huge}, {"level": found}])
    for operator in (FilterOperator.EQ, FilterOperator.LT):
        filters = MetadataFilters(filters=[MetadataFilter(key="level", value=7.5, operator=operator)])
        kept = AccessGuard(filters=filters, on_violation="drop").select(nodes).nodes
        assert ids(kept) == (["n1"] if operator == FilterOperator.LT else [])
    assert holds(MetadataFilters(filters=[MetadataFilter(key="level", value=10**400)]), {"level": found}) is not True


@pytest.mark.parametrize("mergers", [1, 2])
@pytest.mark.parametrize("on_violation", ["raise", "drop"])
def test_a_passage_passes_only_where_each_of_its_chunks_does(mergers: int, on_violation: Any) -> None:
    """A passage has no field on which its chunks differ: that it is empty there says nothing about them."""
    text = "Public opening. Embargoed until January. Public closing."
    nodes = cut(text, [(0, 16), (10, 41), (35, len(text))], metadata=[HOME, {**HOME, "embargo": "2030"}, HOME])
    rule = MetadataFilter(key="embargo", operator=FilterOperator.IS_EMPTY, value=None)
    guard = AccessGuard(filters=MetadataFilters(filters=[rule]), on_violation=on_violation)
    stages = [AccessGuard(require=["section"]), *[PassageMerger()] * mergers]
    assert bodies(run(stages, nodes)) == [text]
    with pytest.raises(AccessViolationError if on_violation == "raise" else ConfigurationError):
        run([*stages, guard], nodes)
    allowed = cut(text, [(0, 16), (10, 41)], metadata=HOME)
    assert bodies(run([*stages, guard], allowed)) == [text[:41]]
