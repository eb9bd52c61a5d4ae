"""Filters are evaluated exactly, and what can not be compared is undecided, under NOT too."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection.filters import OVERWRITTEN, Truth, check_filters, holds

FIELDS = ["tenant", "level", "tags"]
TEXTS, NUMBERS = ["007", "7", "a", "b", ""], [7, 7.0, 0, -1, 1, 2**53 + 1, 0.5]
CONDITIONS = st.sampled_from(list(FilterCondition))
FOUND = st.sampled_from([*TEXTS, *NUMBERS, True, False, None, [], ["a"], ["7", "a"], [7], ["a", 7], {"a": 1}])


@st.composite
def single_filters(draw: st.DrawFn) -> MetadataFilter:
    """Draw a filter that makes sense, of any operator but IS_EMPTY."""
    operator = draw(st.sampled_from([each.value for each in FilterOperator if each != FilterOperator.IS_EMPTY]))
    texts, numbers = st.sampled_from(["007", "7", "a", "b"]), st.sampled_from(NUMBERS)
    value: Any = draw(texts | numbers)
    if operator in ("in", "nin", "any", "all"):
        value = draw(st.lists(texts, min_size=1, max_size=3) | st.lists(st.sampled_from([0, 1, 7]), min_size=1))
    elif "text" in operator:
        value = draw(texts)
    return MetadataFilter(key=draw(st.sampled_from(FIELDS)), value=value, operator=FilterOperator(operator))


def group(parts: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    """Combine filters."""
    return MetadataFilters(filters=parts, condition=condition)


FILTERS = st.recursive(
    st.builds(lambda one: group([one]), single_filters()),
    lambda inner: st.builds(group, st.lists(inner | single_filters(), min_size=1, max_size=3), CONDITIONS),
    max_leaves=6,
)
METADATA = st.dictionaries(st.sampled_from(FIELDS), FOUND)


def one(operator: str, wanted: Any, key: str = "field") -> MetadataFilters:
    """Make filters of one."""
    return group([MetadataFilter(key=key, value=wanted, operator=FilterOperator(operator))])


def truth(operator: str, wanted: Any, found: Any) -> Truth:
    """Compare one value."""
    filters = one(operator, wanted)
    check_filters(filters)
    return holds(filters, {"field": found})


# Laws


@given(filters=FILTERS, metadata=METADATA, more=METADATA)
def test_what_is_decided_stays_decided_when_more_is_known(
    filters: MetadataFilters, metadata: dict[str, Any], more: dict[str, Any]
) -> None:
    """A field that was missing never turns a True or a False around, so neither was a guess."""
    before = holds(filters, metadata)
    known = {name: value for name, value in metadata.items() if value is not None}
    assert before is None or holds(filters, {**more, **known}) is before


@given(filters=FILTERS, metadata=METADATA)
def test_not_turns_what_is_decided_around_and_nothing_else(filters: MetadataFilters, metadata: dict[str, Any]) -> None:
    """NOT of True is False, of False True, and of undecided undecided; twice NOT changes nothing."""
    plain = holds(filters, metadata)
    turned = group([filters], FilterCondition.NOT)
    assert holds(turned, metadata) is (None if plain is None else not plain)
    assert holds(group([turned], FilterCondition.NOT), metadata) is plain


@given(parts=st.lists(FILTERS, min_size=1, max_size=4), metadata=METADATA)
def test_de_morgan_holds(parts: list[MetadataFilters], metadata: dict[str, Any]) -> None:
    """NOT over several is the AND of their negations, and the order of the parts does not matter."""
    negated = [group([part], FilterCondition.NOT) for part in parts]
    expected = holds(group(negated), metadata)
    assert holds(group(parts, FilterCondition.NOT), metadata) is expected
    assert holds(group(parts[::-1], FilterCondition.NOT), metadata) is expected


@given(filters=FILTERS, metadata=METADATA)
def test_json_changes_nothing(filters: MetadataFilters, metadata: dict[str, Any]) -> None:
    """Filters and metadata that were stored as JSON give the same result."""
    stored = MetadataFilters.model_validate_json(filters.model_dump_json())
    assert holds(stored, json.loads(json.dumps(metadata))) is holds(filters, metadata)


@given(parts=st.lists(single_filters(), min_size=1, max_size=3), condition=CONDITIONS, data=st.data())
def test_where_the_kinds_fit_it_agrees_with_llamaindex(
    parts: list[MetadataFilter], condition: FilterCondition, data: st.DataObject
) -> None:
    """What this module decides is what LlamaIndex's own in-memory store decides for values of the right kind."""
    metadata = data.draw(st.fixed_dictionaries(dict.fromkeys(FIELDS, FOUND.filter(lambda found: found is not None))))
    filters = group(parts, condition)
    ours = [holds(group([part]), metadata) for part in parts]
    if None not in ours:
        theirs = build_metadata_filter_fn(lambda _: metadata, filters)("id")
        assert holds(filters, metadata) is theirs


@given(filters=FILTERS)
def test_filters_that_make_sense_are_let_through(filters: MetadataFilters) -> None:
    """Every operator and condition of LlamaIndex, nested at will, can be used."""
    check_filters(filters)


# Cases


@pytest.mark.parametrize(
    "operator, wanted, found, expected",
    [
        ("==", "007", "007", True),
        ("==", "007", "7", False),
        ("==", "007", 7, None),
        ("==", 7, "7", None),
        ("==", 1, 1.0, True),
        ("==", 1.0, 1, True),
        ("==", 1, True, None),
        ("==", 0, False, None),
        ("==", "True", True, None),
        ("==", "a", "A", False),
        ("==", "é", "e\u0301", False),
        ("==", "o'brien", "o'brien", True),
        ("==", "a", ["a"], None),
        ("==", "a", None, None),
        ("==", "a", {"a": "a"}, None),
        ("==", ["a", "b"], ["a", "b"], True),
        ("==", ["a", "b"], ["b", "a"], False),
        ("==", ["a", "b"], ["a"], False),
        ("==", [7, 8], ["7"], None),
        ("==", 2**53 + 1, float(2**53), False),
        ("==", 10**400, 10**400, True),
        ("==", 7, Decimal(7), True),
        ("==", 7, np.int64(7), True),
        ("==", 1, np.True_, None),
        ("==", 7, float("nan"), None),
        ("==", 7, Decimal("sNaN"), None),
        ("!=", 7, float("nan"), None),
        ("!=", "007", "7", True),
        ("!=", "007", "007", False),
        ("!=", "007", 7, None),
        ("!=", "secret", None, None),
        (">", 2, 3, True),
        (">", 2, 2, False),
        (">=", 2, 2.0, True),
        ("<", 2, 1.5, True),
        ("<=", 2, 3, False),
        (">", 2, "3", None),
        (">", 2, True, None),
        (">", 2, [3], None),
        (">", "2026-01-01", "2026-03-01", True),
        ("<", "2026-01-01", "2026-03-01", False),
        (">", "10", "9", None),
        (">", "2026-01-01", date(2026, 3, 1), None),
        ("==", "2026-03-01", date(2026, 3, 1), None),
        ("!=", "2026-03-01", datetime(2026, 3, 1, tzinfo=timezone.utc), None),
        ("in", ["007", "8"], "007", True),
        ("in", ["007", "8"], "7", False),
        ("in", ["007", "8"], 7, None),
        ("in", [7], "7", None),
        ("in", ["a"], ["a"], None),
        ("nin", ["007"], "7", True),
        ("nin", ["007"], "007", False),
        ("nin", ["007"], 7, None),
        ("nin", ["007"], None, None),
        ("any", ["a", "b"], ["b", "c"], True),
        ("any", ["a"], ["c"], False),
        ("any", ["a"], [], False),
        ("any", ["a"], "abc", None),
        ("any", ["1"], ["c", 1], None),
        ("all", ["a", "b"], ["b", "a", "c"], True),
        ("all", ["a", "b"], ["a"], False),
        ("all", ["a"], "a", None),
        ("contains", "a", ["a"], True),
        ("contains", "b", ["a"], False),
        ("contains", "a", "abc", None),
        ("contains", 1, [True], None),
        ("text_match", "oo", "book", True),
        ("text_match", "OO", "book", False),
        ("text_match", "%", "book", False),
        ("text_match", "oo", ["oo"], None),
        ("text_match_insensitive", "OO", "book", True),
        ("text_match_insensitive", "x", "book", False),
        ("text_match_insensitive", "7", 7, None),
    ],
    ids=repr,
)
def test_one_comparison(operator: str, wanted: Any, found: Any, expected: Truth) -> None:
    """A comparison within one kind of value is decided as written, any other is undecided."""
    assert truth(operator, wanted, found) is expected


@pytest.mark.parametrize(
    "found, expected", [(None, True), ("", True), ([], True), (" ", False), (0, False), (["a"], False)]
)
def test_is_empty_alone_decides_about_a_missing_field(found: Any, expected: bool) -> None:
    """IS_EMPTY is True for a missing field, None, an empty text and an empty list, and False for everything else."""
    assert truth("is_empty", None, found) is expected
    assert holds(one("is_empty", None), {}) is True
    assert holds(group([one("is_empty", None)], FilterCondition.NOT), {"field": found}) is not expected


def test_an_alternative_that_holds_is_enough_though_the_other_is_undecided() -> None:
    """OR passes on its true part; AND needs all; a missing field alone never passes."""
    parts = [one("==", "t_007", "tenant"), one("==", "yes", "public")]
    assert holds(group(parts, FilterCondition.OR), {"tenant": "t_007"}) is True
    assert holds(group(parts, FilterCondition.OR), {"tenant": "t_8"}) is None
    assert holds(group(parts), {"tenant": "t_007"}) is None
    assert holds(group(parts), {"tenant": "t_8"}) is False


def test_a_text_enumeration_counts_as_its_text() -> None:
    """Metadata that was never stored may hold enumerations that are texts."""
    tenant = Enum("tenant", {"OURS": "t_007"}, type=str)
    assert truth("==", "t_007", tenant["OURS"]) is True


# What is refused


@pytest.mark.parametrize(
    "operator, wanted",
    [
        ("in", "admin"),
        ("in", []),
        ("nin", []),
        ("nin", "a"),
        ("any", "a"),
        ("all", []),
        ("==", None),
        ("!=", float("nan")),
        ("==", []),
        ("<", float("inf")),
        (">", ["a"]),
        ("contains", ["a"]),
        ("contains", None),
        ("text_match", ""),
        ("text_match", 7),
        ("text_match_insensitive", ["a"]),
    ],
    ids=repr,
)
def test_a_value_that_does_not_fit_its_operator_is_refused(operator: str, wanted: Any) -> None:
    """Among others a text where IN needs a list, and the empty values that would let everything pass."""
    with pytest.raises(ConfigurationError, match="the filter on field compares by"):
        check_filters(one(operator, wanted))
    assert {holds(one(operator, wanted), {"field": found}) for found in ("a", "admin", 7, ["a"])} == {None}


@pytest.mark.parametrize("key", [*OVERWRITTEN, "", " "])
def test_fields_that_stores_overwrite_are_refused_at_any_depth(key: str) -> None:
    """Neither these nor a blank name can be filtered on, however deeply they are nested."""
    with pytest.raises(ConfigurationError):
        check_filters(group([one("==", "a"), group([one("==", "a", key)], FilterCondition.NOT)]))


def test_groups_that_say_nothing_are_refused() -> None:
    """An empty group, also a nested one, and a group without a condition are refused, and never hold."""
    for filters in (
        group([]),
        group([one("==", "a"), group([])]),
        MetadataFilters(filters=[one("==", "a")], condition=None),
    ):
        with pytest.raises(ConfigurationError):
            check_filters(filters)
        assert holds(filters, {"field": "a"}) is None


def test_an_operator_that_is_not_known_is_refused() -> None:
    """An operator that a later LlamaIndex may bring is refused, and undecided if it gets that far."""
    part = MetadataFilter.model_construct(key="field", value="a", operator="soundex")
    filters = MetadataFilters.model_construct(filters=[part], condition=FilterCondition.AND)
    with pytest.raises(ConfigurationError, match="unknown operator"):
        check_filters(filters)
    assert holds(filters, {"field": "a"}) is None
    assert holds(group([filters], FilterCondition.NOT), {"field": "a"}) is None


def test_every_operator_of_llamaindex_is_known() -> None:
    """The laws above draw from all operators that the installed LlamaIndex has; each decides something."""
    pairs: list[tuple[Any, Any]] = [("a", "a"), (["a"], "a"), (["a"], ["a"]), ("a", ["a"])]
    for operator in FilterOperator:
        assert {holds(one(operator.value, wanted), {"field": found}) for wanted, found in pairs} - {None}
