"""Numbers at the start of a line: those of lists and headings are not the answer's, ordinals and answers are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.checks import NumberCheck
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from tests.checks.number_cases import context, failing


@pytest.mark.parametrize(
    "answer",
    [
        *("30. [S1]", "30. güne kadar iade edilebilir [S1].", "Sure.\n(30) days [S1].", "30) days [S1]"),
        *("365. günün sonuna kadar iade edilebilir [S1].", "20. yüzyıl [S1]", "5. madde [S1]", "12.500. müşteri [S1]"),
        *("- 30. günde iade [S1]", "**30.** gün [S1]", "5. März ist der letzte Tag [S1]", "## 30. gün\nİade [S1]"),
        *("Kitaplar iade edilir:\n30. güne kadar [S1].", "> 30. gün [S1]", "* (30) [S1] [S1]", "30. Gün [S1]"),
        *("## 30. Gün\nİade [S1]", "1. güne kadar iade edilir [S1]", "1. [S1]", "1) day [S1]", "1. Gün [S1]"),
        *("1. [S1]\n2. [S1]", "2. First [S1]", "1. First\n3. Third [S1]", "1.5. First [S1]", "4. Keep\n3. Return"),
        *("30. gün\n31. gün [S1]", "30. [S1]\n31. [S1]", "1. gün\n1. gün [S1]", "29. Evet\n30. güne kadar [S1]"),
        *("1. günde\n1. books [S1]", "29. günde\n30. Evet [S1]", "1. Foo\n2. Bar\n2. günde [S1]"),
    ],
)
def test_an_ordinal_or_an_answer_is_checked(answer: str) -> None:
    """A number that begins a line and is in no list is a number of the answer."""
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": answer}])
    synthesizer = CitingSynthesizer(llm, checks=[NumberCheck(on_fail="refuse")])
    found = synthesizer.synthesize(
        "Ne zamana kadar?", make_nodes(["Kitaplar 14. güne kadar iade edilebilir."])
    ).grounded
    assert (found.answerable, found.checks[0].status) == (False, "failed")


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "1. open it\n2. read it",
            "1. Foo [S1]\n\nand then\n\n2. Bar",
            "(1) foo\n(2) bar",
            "1. a\n1. b\n2. c\n2. d\n3. e",
        ),
        *(
            "1. Foo\n1.1. Bar\n1.2. Baz\n2. Qux\n2.1. Bar\n3. Foo",
            "## 1. Fees\na\n## 2. Hours\n1. a\n2. b\n## 3. Days\n",
        ),
        *("1. books: foo [S1]\n1. maps: bar [S1]", "1. foo\n\nText.\n\n1. bar", "1. foo\n1. bar\n1. baz\n2. qux"),
        *("3. Return it [S1]\n4. Keep it [S1]", "(3) foo\n  1. bar\n  2. baz\n(4) qux", "30. Evet\n31. Hayır [S1]"),
        *("3. foo\n3.1. bar\n3.2. baz\n4. qux", "1. foo\n2. günde", "2. foo\n3. bar\n1. foo\n2. bar\n3. gün"),
        *(
            "1. Foo",
            "- **1.** Foo",
            "## 3.1 Fees",
            "## 4. Fees",
            "1) [S1] Foo",
            "1. 打开\n2. 关闭",
            "1. **Foo**",
            "# 2) Fees",
        ),
    ],
)
def test_a_list_is_not_checked(answer: str) -> None:
    """Lists that count up, or repeat the 1, lists within lists, headings, and the 1 of a single item are no numbers."""
    assert NumberCheck().check(context(answer, ["none"])).detail == "the answer has no numbers"


@given(st.integers(2, 40), st.sampled_from(["{}. ", "{}) ", "({}) ", "- {}. ", "**{}.** ", "> {}. "]), st.booleans())
def test_every_number_of_a_list_and_no_other(length: int, sign: str, small: bool) -> None:
    """A list of any length is exempt; one line of it alone is not, save its first without an ordinal's looks."""
    item = "foo" if small else "Foo"
    lines = [f"{sign.format(number)}{item}" for number in range(1, length + 1)]
    assert failing(NumberCheck().check(context("\n".join(lines), ["none"])), "\n".join(lines)) == []
    alone = NumberCheck().check(context(lines[-1], ["none"]))
    assert failing(alone, lines[-1]) == [str(length)]
    ordinal = small and ")" not in sign
    assert failing(NumberCheck().check(context(lines[0], ["none"])), lines[0]) == ["1"] * ordinal
