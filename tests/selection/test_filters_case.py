"""A text match in any case is True or False only where every way to ignore case says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_grounded import AccessGuard
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import bodies

TURKISH_LOWER = str.maketrans("Iİ", "ıi")
TURKISH_UPPER = str.maketrans("ıi", "Iİ")
FOLDINGS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "casefold": str.casefold,
    "Turkish lower": lambda text: text.translate(TURKISH_LOWER).lower(),
    "Turkish upper": lambda text: text.translate(TURKISH_UPPER).upper(),
}
WORDS = st.sampled_from(
    ["gizli", "gızlı", "GİZLİ", "GIZLI", "şirket sırrı", "ŞİRKET SIRRI", "straße", "STRASSE", "ΣΑΣ"]
)
WAYS = st.tuples(st.sampled_from(sorted(FOLDINGS)), st.sampled_from(sorted(FOLDINGS)))
TEXTS = WORDS | st.text(alphabet="iıİIsSşŞßẞkKσςΣéÉeE\u0301\u0307ﬁf ", max_size=6)


def lets_pass(wanted: str, found: Any, condition: FilterCondition) -> bool:
    """Tell whether a guard lets a node with this value pass."""
    part = MetadataFilter(key="class", value=wanted, operator=FilterOperator.TEXT_MATCH_INSENSITIVE)
    guard = AccessGuard(filters=MetadataFilters(filters=[part], condition=condition), on_violation="drop")
    return bodies(guard.postprocess_nodes(make_nodes(["text"], metadata={"class": found}))) == ["text"]


@given(TEXTS.filter(bool), TEXTS, st.tuples(TEXTS, TEXTS), WAYS)
def test_no_other_case_gets_past_a_not(wanted: str, written: str, around: tuple[str, str], ways: Any) -> None:
    """Where any way to ignore case finds the text, NOT does not let the node pass."""
    one, other = ways
    found = FOLDINGS[other](wanted).join(around)
    assert not lets_pass(wanted, found, FilterCondition.NOT)
    if FOLDINGS[one](wanted) in FOLDINGS[one](written):
        assert not lets_pass(wanted, written, FilterCondition.NOT)


@given(TEXTS.filter(bool), TEXTS)
def test_what_passes_a_match_stands_there(wanted: str, found: str) -> None:
    """What passes the filter is what Unicode's lower case finds, as vector stores do; never both ways round."""
    passes = lets_pass(wanted, found, FilterCondition.AND)
    assert passes == (wanted.lower() in found.lower())
    assert not (passes and lets_pass(wanted, found, FilterCondition.NOT))


@pytest.mark.parametrize(
    "wanted, found, passes, passes_not",
    [
        ("gizli", "GİZLİ", False, False),
        ("gızlı", "GIZLI", False, False),
        ("şirket sırrı", "ŞİRKET SIRRI", False, False),
        ("straße", "STRASSE", False, False),
        ("ΑΠΟΡΡΗΤΟ", "απόρρητο", False, False),
        ("internal", "INTERNAL use", True, False),
        ("gizli", "Gizli belge", True, False),
        ("gizli", "herkese açık", False, True),
        ("gizli", None, False, False),
        ("7", 7, False, False),
    ],
)
def test_cases(wanted: str, found: Any, passes: bool, passes_not: bool) -> None:
    """Turkish capitals, ß and Greek capitals without marks are undecided; plain letters are decided."""
    assert lets_pass(wanted, found, FilterCondition.AND) is passes
    assert lets_pass(wanted, found, FilterCondition.NOT) is passes_not
