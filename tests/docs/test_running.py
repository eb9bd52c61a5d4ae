"""The comparison of what a page says with what it prints sees every difference."""

from __future__ import annotations

import textwrap
from types import ModuleType

import pytest

from tests.docs.pages import blocks, run_page


def _faults(page: str) -> list[str]:
    return run_page(textwrap.dedent(page), "page.md", ModuleType("page"))


def _python(*lines: str, below: str = "") -> str:
    return "\n".join(["# Page", "", "```python", *lines, "```", "", below])


RIGHT = {
    "behind": ["print('a', 1)  # a 1"],
    "over several lines": ["print(", "    'a',", ")  # a"],
    "several times": ["for place in range(3):", "    print(place)  # 0 | 1 | 2"],
    "several lines": ["print('a\\nb')  # a | b"],
    "anything": ["print('took 13 ms')  # took … ms"],
    "awaited": ["import asyncio", "await asyncio.sleep(0)", "print('a')  # a"],
    "in a function": ["def show():", "    print('a')  # a", "", "show()"],
    "an odd letter in front": ["print('ß')  # ß"],
}


@pytest.mark.parametrize("lines", RIGHT.values(), ids=RIGHT)
def test_what_is_right_passes(lines: list[str]) -> None:
    """Comments that say what is printed are no fault."""
    assert _faults(_python(*lines)) == []


WRONG = {
    "another text": ["print('a')  # b"],
    "only the beginning": ["print('ab')  # a"],
    "never called": ["if False:", "    print('a')  # a"],
    "called twice": ["for _ in 'ab':", "    print('a')  # a"],
    "without a word": ["print('a')"],
    "anything, but not this": ["print('took 13 s')  # took … ms"],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    """A difference, and a call that prints what nobody promised, is a fault that names the line of the page."""
    (fault,) = _faults(_python(*WRONG[name]))
    assert fault.startswith(f"page.md:{3 + len(WRONG[name])}: ")


def test_a_block_of_text_below_is_what_is_printed() -> None:
    """The block below is compared with all that has no comment of its own."""
    lines = ["print('a')", "print('b')  # b", "print('c')"]
    assert _faults(_python(*lines, below="```text\na\nc\n```\n")) == []
    assert len(_faults(_python(*lines, below="```text\na\nb\nc\n```\n"))) == 1
    assert len(_faults(_python("x = 1", below="```text\nx\n```\n"))) == 1


def test_names_last_to_the_end_of_the_page() -> None:
    """Blocks share their names, indented ones too."""
    page = """\
        # Page

        ```python
        x = 1
        ```

        - A list:

            ```python title="app.py"
            print(x)  # 1
            ```
        """
    assert _faults(page) == []
    assert [block.first for block in blocks(textwrap.dedent(page))] == [4, 10]


def test_an_error_of_a_page_is_raised() -> None:
    """A block that fails fails the test, with the line of the page."""
    with pytest.raises(ZeroDivisionError) as caught:
        _faults(_python("", "1 / 0"))
    assert caught.traceback[-1].lineno == 4
