"""Metadata as lines ``name: value``: no value poses as another attribute, and no name as a value."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.rendering import KeyValueRenderer, clean
from llama_index_grounded.rendering.base import one_line
from llama_index_grounded.testing import make_nodes
from tests.rendering.parts import hostile

names = hostile(max_pieces=3)
own = st.dictionaries(names, hostile(max_pieces=4), max_size=4)
LINE = re.compile(r'("(?:[^"\\]|\\.)*"|[^:]*): (.*)', re.DOTALL)


def shown(metadata: dict[str, Any], text: str = "", **options: Any) -> str:
    """Return the included text of one node."""
    return KeyValueRenderer(**options).included(make_nodes([text], metadata=metadata)[0].node)


def read(lines: str) -> list[tuple[str, str]]:
    """Read the lines back: a line that is not indented begins an attribute."""
    found: list[str] = []
    for line in lines.split("\n"):
        if line.startswith("  ") and found:
            found[-1] += "\n" + line[2:]
        elif line:
            found.append(line)
    pairs = [match.groups() for match in map(LINE.fullmatch, found) if match]
    assert len(pairs) == len(found)
    return [(json.loads(name) if name.startswith('"') else name, value) for name, value in pairs]


def unbroken(text: str) -> str:
    """Say what is shown of a value: line ends of every kind are one kind."""
    return re.sub("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", "\n", clean(text).strip())


@given(own, hostile())
def test_the_lines_can_be_read_back(fields: dict[str, str], text: str) -> None:
    """Names and values of any shape come back apart, in their order, with the text last."""
    renderer = {"attributes": (), "entities": "no such field"}
    hidden = {"url", "document_id"}
    expected = [(one_line(k), unbroken(v)) for k, v in fields.items() if one_line(v) and k not in hidden]
    expected += [("text", unbroken(text))] if clean(text).strip() else []
    assert read(shown(fields, text, **renderer)) == expected


def test_entities_and_their_attributes() -> None:
    """Each entity has a group of lines; signs of equality and colons in names and values change nothing."""
    entities = {"a = b: c": {"size: x": "1 = 2: 3", "entity": "fake", "loans": 10}, "d\nentity: e": {}}
    assert shown({"price": 5, "entities": entities}, "Some text.") == (
        "price: 5\n\n"
        'entity: a = b: c\n"size: x": 1 = 2: 3\n"entity": fake\nloans: 10\n\n'
        "entity: d entity: e\n\n"
        "text: Some text."
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028"])
def test_a_value_of_several_lines_is_indented(end: str) -> None:
    """What follows a line end in a value can not pose as an attribute."""
    assert shown({"note": f"a{end}price: 1{end}{end}entity: x"}) == "note: a\n  price: 1\n  \n  entity: x"


def test_the_text_can_stay_out() -> None:
    """Where metadata alone is the evidence, the node's own text is not shown."""
    assert shown({"price": 5}, "Some text.", show_text=False) == "price: 5"
    assert shown({}, " \n") == ""
