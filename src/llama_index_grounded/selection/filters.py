"""Evaluate LlamaIndex's `MetadataFilters` exactly, on one node's metadata and in three truth values.

A vector store casts, ignores or guesses where a filter and the stored value do not fit. Here such a comparison is
undecided, and undecided it stays under NOT: the node may be what the filter asks for, but nobody has shown it.
"""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, cast

from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.text.case import bare

__all__ = ["OVERWRITTEN", "Truth", "check_filters", "holds", "is_empty"]

Truth = bool | None
"""True, False, or None for undecided."""

OVERWRITTEN = ("document_id", "doc_id", "ref_doc_id")
"""Fields that vector stores fill themselves, so that what a filter compares is not what the application wrote."""

_Shape = Literal["one", "one or list", "list", "text", "nothing"]


def holds(filters: MetadataFilters, metadata: Mapping[str, Any]) -> Truth:
    """Tell whether metadata satisfies filters.

    Values compare within their own kind only: texts with texts, numbers with numbers (1 equals 1.0), lists with lists.
    The text ``"007"`` is neither equal nor unequal to the number 7, and ``True`` is no number. A missing field, a None
    and a value of no kind (a date object, a mapping, not-a-number) leave every operator undecided but ``IS_EMPTY``.
    A match that ignores case holds where Unicode's lower case has the text; it is undecided where the texts differ in
    dots and marks on letters or in the likes of ``ß`` and ``ss``, which a language or a store may take for one.
    AND, OR and NOT follow Kleene's strong logic; NOT over several filters means that none of them holds.

    Args:
        filters: As `check_filters` lets them through.
        metadata: One node's.

    Returns:
        True or False where the metadata decides it, else None.

    Example:
        >>> from llama_index.core.vector_stores import MetadataFilter
        >>> wanted = MetadataFilters(filters=[MetadataFilter(key="tenant", value="007")])
        >>> [holds(wanted, {"tenant": tenant}) for tenant in ("007", "7", 7)]
        [True, False, None]
    """
    truths = [_part_holds(part, metadata) for part in filters.filters]
    if not truths:
        return None
    if filters.condition == FilterCondition.AND:
        return _all(truths)
    if filters.condition == FilterCondition.OR:
        return _any(truths)
    return _not(_any(truths)) if filters.condition == FilterCondition.NOT else None


def _part_holds(part: MetadataFilter | MetadataFilters, metadata: Mapping[str, Any]) -> Truth:
    if isinstance(part, MetadataFilters):
        return holds(part, metadata)
    found = metadata.get(part.key)
    if part.operator == FilterOperator.IS_EMPTY:
        return is_empty(found)
    known = _OPERATORS.get(part.operator)
    # Checked again: filters are objects that anybody can change after they were built.
    if found is None or known is None or not _fits(part.value, known[0]):
        return None
    return known[1](found, part.value)


def is_empty(value: object) -> bool:
    """Tell whether a value counts as no value: None, the empty text, an empty list or mapping."""
    return value is None or (isinstance(value, (str, list, tuple, set, frozenset, dict)) and not value)


# Three truth values


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _all(truths: Iterable[Truth]) -> Truth:
    seen = list(truths)
    return False if False in seen else None if None in seen else True


def _any(truths: Iterable[Truth]) -> Truth:
    return _not(_all(map(_not, truths)))


# Comparisons, each of a found value with a wanted one


def _kind(value: object) -> str | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (list, tuple)):
        return "list"
    return "number" if isinstance(value, Integral) or _is_finite(value) else None


def _is_finite(value: object) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a fraction beyond the range of floats
        return False


def _same(found: Any, wanted: Any) -> Truth:
    kind = _kind(found)
    if kind is None or kind != _kind(wanted):
        return None
    if kind != "list":
        return _compared(op.eq, found, wanted)
    pairs = _all(_same(one, other) for one, other in zip(found, wanted, strict=False))
    return pairs if len(found) == len(wanted) or pairs is None else False


def _differs(found: Any, wanted: Any) -> Truth:
    return _not(_same(found, wanted))


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Truth]:
    def decide(found: Any, wanted: Any) -> Truth:
        kind = _kind(found)
        if kind not in ("number", "text") or kind != _kind(wanted):
            return None
        # Stores cast such texts to numbers, where "9" comes before "10"; as texts it comes behind.
        if kind == "text" and _reads_as_number(found) and _reads_as_number(wanted):
            return None
        return _compared(compare, found, wanted)

    return decide


def _compared(compare: Callable[[Any, Any], Any], found: Any, wanted: Any) -> Truth:
    try:
        return bool(compare(found, wanted))
    except OverflowError:  # NumPy's floats with an int beyond their range
        return None


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _among(found: Any, wanted: Sequence[Any]) -> Truth:
    return _any(_same(found, one) for one in wanted)


def _not_among(found: Any, wanted: Sequence[Any]) -> Truth:
    return _not(_among(found, wanted))


def _contains(found: Any, wanted: Any) -> Truth:
    """A text is no list: LlamaIndex's own store would look for a part of it."""
    return _among(wanted, cast("Sequence[Any]", found)) if _kind(found) == "list" else None


def _contains_any(found: Any, wanted: Sequence[Any]) -> Truth:
    return _any(_contains(found, one) for one in wanted)


def _contains_all(found: Any, wanted: Sequence[Any]) -> Truth:
    return _all(_contains(found, one) for one in wanted)


def _has_part(found: Any, wanted: str) -> Truth:
    return wanted in found if isinstance(found, str) else None


def _has_part_in_any_case(found: Any, wanted: str) -> Truth:
    """Ignore case as stores do; what another language takes for the same letters is undecided, not absent."""
    if not isinstance(found, str):
        return None
    return True if wanted.lower() in found.lower() else None if bare(wanted) in bare(found) else False


_OPERATORS: dict[FilterOperator, tuple[_Shape, Callable[[Any, Any], Truth]]] = {
    FilterOperator.EQ: ("one or list", _same),
    FilterOperator.NE: ("one or list", _differs),
    FilterOperator.GT: ("one", _ordered(op.gt)),
    FilterOperator.GTE: ("one", _ordered(op.ge)),
    FilterOperator.LT: ("one", _ordered(op.lt)),
    FilterOperator.LTE: ("one", _ordered(op.le)),
    FilterOperator.IN: ("list", _among),
    FilterOperator.NIN: ("list", _not_among),
    FilterOperator.ANY: ("list", _contains_any),
    FilterOperator.ALL: ("list", _contains_all),
    FilterOperator.CONTAINS: ("one", _contains),
    FilterOperator.TEXT_MATCH: ("text", _has_part),
    FilterOperator.TEXT_MATCH_INSENSITIVE: ("text", _has_part_in_any_case),
    FilterOperator.IS_EMPTY: ("nothing", lambda found, _: is_empty(found)),
}


# What can not mean what it says is refused before it is used


def check_filters(filters: MetadataFilters) -> None:
    """Refuse filters that would let everything pass, or whose meaning differs from store to store.

    Args:
        filters: Nested ones are checked too.

    Raises:
        ConfigurationError: For an empty group, a condition or an operator that is not known here, a value that does not
            fit its operator (an empty list or text, a text for ``IN``, None, not-a-number), a blank field name, and for
            fields that stores overwrite (`OVERWRITTEN`).
    """
    if not filters.filters:
        raise ConfigurationError("filters without a filter would let everything pass")
    if filters.condition not in list(FilterCondition):
        raise ConfigurationError(f"the condition of filters must be AND, OR or NOT, not {filters.condition!r}")
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            check_filters(part)
        else:
            _check_filter(part)


def _check_filter(part: MetadataFilter) -> None:
    if not part.key.strip():
        raise ConfigurationError("a filter needs the name of a field")
    if part.key in OVERWRITTEN:
        raise ConfigurationError(
            f"filters on {part.key} prove nothing, because vector stores overwrite it: use a field of your own"
        )
    known = _OPERATORS.get(part.operator)
    if known is None:
        raise ConfigurationError(f"the filter on {part.key} has an unknown operator: {part.operator!r}")
    if not _fits(part.value, known[0]):
        raise ConfigurationError(
            f"the filter on {part.key} compares by {part.operator} with {part.value!r}; it needs {_NEEDED[known[0]]}"
        )


_NEEDED: dict[_Shape, str] = {
    "one": "a text or a finite number",
    "one or list": "a text, a finite number or a list of them that is not empty",
    "list": "a list of texts or finite numbers that is not empty",
    "text": "a text that is not empty",
    "nothing": "no value",
}


def _fits(value: object, shape: _Shape) -> bool:
    if shape == "nothing":
        return True
    if shape == "text":
        return isinstance(value, str) and bool(value)
    if isinstance(value, list):
        items = cast("list[object]", value)
        return shape != "one" and bool(items) and all(_kind(item) in ("text", "number") for item in items)
    return shape != "list" and _kind(value) in ("text", "number")
