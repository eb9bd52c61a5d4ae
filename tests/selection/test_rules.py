"""Rules of an application answer at once, with True itself, and a value that says nothing is blank."""

from __future__ import annotations

import functools
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from llama_index_grounded import AccessGuard, ScoreGate
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection import CombinedGate, EvidenceGate
from llama_index_grounded.selection.rules import is_blank, is_true
from llama_index_grounded.testing import make_nodes
from tests.selection.parts import ids

UNSEEN = " \n\t\u00a0\u00ad\u200b\u200d\u2060\ufeff\u202e\u3000\u2800\u3164\ufe0f\ud83d\x00"
BLANK: list[Any] = [None, "", *UNSEEN, UNSEEN, b"", b" ", float("nan"), Decimal("NaN"), Decimal("sNaN"), [], {}, ()]
SOLID: list[Any] = ["x", " x ", "0", "天", "…", "👍", 0, 0.0, False, float("inf"), b"x", date(2026, 1, 1), ["", "x"]]


class NoTime:
    """Differs from itself, as pandas' not-a-time does."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]


@given(text=st.text(), unseen=st.text(st.sampled_from(UNSEEN)))
def test_what_can_not_be_seen_decides_nothing(text: str, unseen: str) -> None:
    """A text is as blank as it is without its invisible characters, and never if it has a letter or a digit."""
    assert is_blank(text) == is_blank(unseen + text + unseen)
    if any(unicodedata.category(char) in ("Ll", "Lu", "Nd") for char in text):
        assert not is_blank(text)


@given(value=st.recursive(st.sampled_from(BLANK), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_blank_values_are_blank_in_any_nesting(value: Any) -> None:
    """A list or mapping of nothing but blank values is blank; one value in it that says something is enough."""
    assert is_blank(value)
    assert not is_blank([value, "x"])


@pytest.mark.parametrize("value", SOLID, ids=repr)
def test_values_that_say_something_are_not_blank(value: Any) -> None:
    """Zero, False and punctuation are values."""
    assert not is_blank(value)


def test_what_never_ends_or_differs_from_itself_is_blank() -> None:
    """A list that holds itself and a not-a-time are no values to trust."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    assert is_blank(cyclic)
    assert is_blank(NoTime())


def test_a_required_field_must_say_something() -> None:
    """The guard stops a zero-width tenant, a list of nothing and not-a-number as it stops a missing one."""
    values = [*BLANK, [""], [[" "], None], {"a": "\u200b"}]
    nodes = make_nodes(["x"] * (len(values) + len(SOLID)), metadata=[{"tenant": one} for one in [*values, *SOLID]])
    kept = AccessGuard(require=["tenant"], on_violation="drop").select(nodes).nodes
    assert ids(kept) == ids(nodes)[len(values) :]


# Predicates


async def later(_: Any) -> bool:
    """Answer when somebody awaits it."""
    return True


class Later:
    """A rule as an object whose call is async."""

    async def __call__(self, _: Any) -> bool:
        """Answer when somebody awaits it."""
        return True


@pytest.mark.parametrize("predicate", [later, Later(), functools.partial(later)], ids=["function", "object", "partial"])
def test_an_async_rule_is_refused_at_construction(predicate: Any) -> None:
    """A gate with one would refuse every question, and a guard every node."""
    for make in (AccessGuard, EvidenceGate):
        with pytest.raises(ValidationError, match="answer at once"):
            make(predicate=predicate)


def test_a_rule_that_turns_out_to_be_async_is_an_error() -> None:
    """A lambda around an async function is told on use, by an error and not by a refusal."""
    nodes = make_nodes(["x"])
    hidden: Any = lambda given: later(given)  # noqa: E731, PLW0108 - it hides what it calls
    for stage in (
        EvidenceGate(predicate=hidden),
        AccessGuard(predicate=hidden),
        AccessGuard(predicate=hidden, on_violation="drop"),
    ):
        with pytest.raises(ConfigurationError, match="coroutine to await"):
            stage.select(nodes)


def test_only_true_itself_is_true() -> None:
    """What is merely truthy is no yes."""
    answers: list[Any] = [True, 1, "yes", [0], None, False]
    assert [is_true(lambda given: given, answer) for answer in answers] == [True, *[False] * 5]


@pytest.mark.parametrize("reason", ["provider_error", "prompt_too_long", "over_budget", "low_score", "low_margin"])
def test_a_rule_has_a_reason_of_its_own(reason: str) -> None:
    """A reason that means something else in results is refused: no rule can pose as a failed service."""
    with pytest.raises(ValidationError, match="choose other words"):
        EvidenceGate(predicate=bool, reason=reason)
    assert EvidenceGate(predicate=bool, reason="insufficient_evidence").reason == "insufficient_evidence"


class _Boasting(AccessGuard):
    judges_together: ClassVar[bool] = True


def test_a_guard_is_no_gate_whatever_it_says() -> None:
    """A subclass of a guard that claims to judge all nodes together is refused, also where it was slipped in later."""
    guard = _Boasting(predicate=lambda _: True, on_violation="drop")
    with pytest.raises(ValidationError, match="_Boasting is none"):
        CombinedGate(gates=[guard, ScoreGate(min_score=0.1)])
    both = CombinedGate(gates=[ScoreGate(min_score=0.1), ScoreGate(min_score=0.2)])
    both.gates.append(guard)
    with pytest.raises(ConfigurationError, match="left out single nodes"):
        both.select(make_nodes(["a"], scores=[0.5]))
