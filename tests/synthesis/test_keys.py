"""Ids in the shapes that models write, and which of them exist."""

from __future__ import annotations

import json
import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.synthesis.keys import normalise_ids, resolve_ids
from tests.timing import assert_linear

KEYS = [f"S{number}" for number in range(1, 13)]

keys = st.sampled_from(KEYS)
ids = st.one_of(keys, st.sampled_from(["S99", "S01", "S１", "S²", "S٣", "1", "S3-S1", "S1-S999999"]))
wrappers = st.sampled_from(["{}", " {} ", "[{}]", "【{}】", "［{}］", '"{}"', "'{}'", "({})", " [ {} ]\n", "“{}”"])
separators = st.sampled_from(
    [",", ", ", ";", "; ", "、", "،", "，", "；", " and ", " ve ", " & ", ", and ", " ", "\n", "]["]
)
anything = st.text(st.sampled_from(" \n,;、&[]【】\"'()Ss012９²٣三-–†andve{}:x"), max_size=40)


class TestNormaliseIds:
    """One rule for every shape."""

    @given(st.lists(ids))
    def test_shape_does_not_matter(self, wanted: list[str]) -> None:
        """A list, its JSON text and its joined text hold the same ids."""
        once = list(dict.fromkeys(wanted))
        assert normalise_ids(wanted) == once
        assert normalise_ids(tuple(wanted)) == once
        assert normalise_ids(json.dumps(wanted)) == once
        assert normalise_ids(json.dumps(wanted, ensure_ascii=False)) == once
        assert normalise_ids(repr(wanted)) == once

    @given(st.lists(ids, min_size=1), separators, wrappers)
    def test_separators_and_wrappers_do_not_matter(self, wanted: list[str], separator: str, wrapper: str) -> None:
        """Whatever stands between ids or around them is no part of them."""
        once = list(dict.fromkeys(wanted))
        assert normalise_ids(wrapper.format(separator.join(wanted))) == once
        assert normalise_ids([wrapper.format(wanted_id) for wanted_id in wanted]) == once

    @given(anything)
    def test_idempotent(self, text: str) -> None:
        """Normalised ids are their own normal form."""
        once = normalise_ids(text)
        assert normalise_ids(once) == once

    @given(st.lists(anything))
    def test_clean_and_distinct(self, texts: list[str]) -> None:
        """No id is empty, repeated, or has white space around it."""
        found = normalise_ids(texts)
        assert len(set(found)) == len(found)
        assert all(item and item == item.strip() for item in found)

    @pytest.mark.parametrize(
        "value, expected",
        [
            ("s1", ["S1"]),
            (" S1 ", ["S1"]),
            ("[S1][S2]", ["S1", "S2"]),
            ("S1, 2", ["S1", "2"]),
            ("(S1; S3、S4 and S2)", ["S1", "S3", "S4", "S2"]),
            ("S1 - S3", ["S1-S3"]),
            ("S1–3, s5", ["S1–3", "S5"]),
            ("【1†S1】", ["S1"]),
            ("[1, 2]", ["1", "2"]),
            ('["S1", 2]', ["S1", "2"]),
            (7, ["7"]),
            ([1, "S1", "S1"], ["1", "S1"]),
            ("", []),
            ("[]", []),
            (" , ", []),
            (["", "[]", " "], []),
        ],
    )
    def test_examples(self, value: object, expected: list[str]) -> None:
        """Each shape that was seen gives the ids in it."""
        assert normalise_ids(value) == expected

    @pytest.mark.parametrize(
        "value, expected",
        [
            (["[999]", "S01", "s1 ", "1"], ["999", "S01", "S1", "1"]),
            (["S1", "S 2", "S9"], ["S1", "S 2", "S9"]),
            (["S１", "S٣", "S²"], ["S１", "S٣", "S²"]),
        ],
    )
    def test_nothing_is_made_to_fit(self, value: object, expected: list[str]) -> None:
        """Zeros, spaces, superscripts and digits of other scripts stay, so they match no key."""
        found = normalise_ids(value)
        assert found == expected
        assert resolve_ids(found, KEYS)[0] == [item for item in expected if item in KEYS]

    @pytest.mark.parametrize("text", ["see S1", "S1 or S2", "S1 (page 3)", "Summary of the report", "S1.", "Sx, S1"])
    def test_prose_is_one_id(self, text: str) -> None:
        """A text with a part that looks like no id is not taken apart."""
        assert normalise_ids(f" [{text}] ") == [text]

    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            1.5,
            {"S1": 1},
            [None],
            [True],
            [1.0],
            [["S1"]],
            [{"id": "S1"}],
            '[["S1"]]',
            '[{"id": "S1"}]',
            "[null]",
        ],
    )
    def test_other_types(self, value: object) -> None:
        """What is neither text nor an integer is refused with the name of its type."""
        with pytest.raises(ValueError, match=r"must be strings or integers, not (NoneType|bool|float|dict|list)"):
            normalise_ids(value)


class TestResolveIds:
    """Membership is exact."""

    @given(st.lists(ids), st.lists(keys, unique=True))
    def test_partition(self, written: list[str], valid_keys: list[str]) -> None:
        """Each id without a range is either valid or unknown, in its order, once."""
        plain = [item for item in written if "-" not in item]
        valid, unknown = resolve_ids(plain, valid_keys)
        assert valid == [item for item in dict.fromkeys(plain) if item in valid_keys]
        assert unknown == [item for item in dict.fromkeys(plain) if item not in valid_keys]

    @given(st.permutations(KEYS), st.integers(0, 11), st.integers(0, 11), st.sampled_from(["-", "–", " - "]))
    def test_range(self, valid_keys: list[str], first: int, last: int, dash: str) -> None:
        """A range stands for the keys between its ends in prompt order, or is unknown as a whole."""
        written = f"{valid_keys[first]}{dash}{valid_keys[last]}"
        short = f"{valid_keys[first]}{dash}{valid_keys[last][1:]}"
        expected = valid_keys[first : last + 1]
        assert resolve_ids([written], valid_keys) == (expected, [] if expected else [written])
        assert resolve_ids([short], valid_keys)[0] == expected

    def test_examples(self) -> None:
        """Ranges are expanded, unknown ends make a range unknown."""
        assert resolve_ids(["S2", "S1-S3", "S2-S99", "S01-S2"], KEYS) == (["S2", "S1", "S3"], ["S2-S99", "S01-S2"])
        assert resolve_ids(["S1"], []) == ([], ["S1"])


class TestCost:
    """Hostile sizes cost little."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda size: "S1, " * (size // 4),
            lambda size: "x" * size,
            lambda size: " " * size,
            lambda size: "[" * size,
            lambda size: '["S1",' + "[" * size,
            lambda size: "S1-" * (size // 3),
            lambda size: '"' * size,
            lambda size: "1†" * (size // 2),
            lambda size: [f"S{number}" for number in range(size // 10)],
            lambda size: [f"S1-S{number}" for number in range(size // 10)],
        ],
        ids=lambda make: str(make(20))[:8],
    )
    def test_large(self, make: Callable[[int], object]) -> None:
        """100,000 characters or 10,000 ids take about four times as long as a fourth of them."""
        valid_keys = [f"S{number}" for number in range(1, 101)]
        assert_linear(lambda size: resolve_ids(normalise_ids(make(size)), valid_keys), 25_000)

    def test_deep_json_is_no_crash(self) -> None:
        """JSON that is nested too deep to read is text."""
        deep = '["S1",' + "[" * 100_000 + "]" * 100_001
        assert normalise_ids(deep) == ["S1"]

    @given(st.text(string.printable))
    def test_any_text(self, text: str) -> None:
        """Any text gives a list, or a ValueError where it is a JSON list of other things."""
        try:
            found = normalise_ids(text)
        except ValueError:
            assert isinstance(json.loads(text), list)
        else:
            assert all(found)
