"""What the README, the docstrings and the page on checks show runs, and prints what they say.

The other pages are run by `tests/docs`.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode

import llama_index_grounded
from llama_index_grounded import (
    AttentionReorder,
    CitingSynthesizer,
    GroundedQueryEngine,
    ScopedDedup,
    TokenBudget,
)
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.selection import MetadataKeys
from llama_index_grounded.synthesis import ClaimedAnswer
from llama_index_grounded.testing import FixedRetriever, ScriptedLLM, make_nodes

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(llama_index_grounded.__path__, "llama_index_grounded.")
)


def _examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    """Each example in a docstring prints what stands below it."""
    module = importlib.import_module(name)
    failed = [test.name for test in _examples(module) if doctest.DocTestRunner().run(test).failed]
    assert failed == []


def test_some_docstrings_have_examples() -> None:
    """The check above looks at something."""
    assert sum(len(_examples(importlib.import_module(name))) for name in MODULES) > 10


def _run(text: str, name: str, names: dict[str, Any]) -> dict[str, Any]:
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, name, "exec"), names)  # noqa: S102 - our own pages
    return names


def test_the_readmes_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The README's code runs as it stands, one block after the other."""
    names = _run(README, "README.md", {})
    printed = capsys.readouterr().out
    assert printed.startswith("Within 21 days [S1].\n")
    assert f"node_id='{names['nodes'][0].node_id}'" in printed
    assert "title='Returns', page=None, url='/help/returns'" in printed
    # Under other names the fields above say nothing.
    (citation,) = names["renamed"].query("How many days do I have to return a book?").citations
    assert (citation.document_id, citation.title, citation.url) == ("returns", None, None)


def test_other_names_of_fields_are_given_to_the_first_stage_and_the_synthesizer() -> None:
    """What the README and the tutorial say of `MetadataKeys` holds for a chain of one's own."""
    keys = MetadataKeys(title="name", url="link")
    node = TextNode(text="Within 21 days.", metadata={"document_id": "returns", "name": "Returns", "link": "/returns"})
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}])
    engine = VectorStoreIndex([node], embed_model=MockEmbedding(embed_dim=8)).as_query_engine(
        llm=llm,
        node_postprocessors=[ScopedDedup(keys=keys), TokenBudget(max_tokens=400), AttentionReorder()],
        response_synthesizer=CitingSynthesizer(llm, keys=keys),
    )
    response: Any = engine.query("How long?")
    (citation,) = response.citations
    assert (citation.title, citation.url) == ("Returns", "/returns")


def test_the_readmes_engine_runs_over_an_index_of_ones_own() -> None:
    """The second block needs nothing of the first but an index and an LLM."""
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    index = VectorStoreIndex([TextNode(text="Within 21 days.")], embed_model=MockEmbedding(embed_dim=8))
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}])
    names = _run(f"```python\n{blocks[1]}```", "README.md", {"index": index, "llm": llm})
    assert str(names["response"]) == "21 days [S1]."


CLAIMED = {
    "verdict": "answered",
    "sources": ["S1"],
    "claims": [{"sources": ["S1"], "quote": "within 21 days", "text": "You have 21 days."}],
}
JUDGED = {"judgements": [{"number": 1, "reason": "It says so.", "verdict": "supported"}]}


def test_the_page_on_checks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its three checks pass a right answer, and its adapter turns a model of somebody else into a check."""
    names: dict[str, Any] = {
        "llm": ScriptedLLM([CLAIMED]),
        "judge": ScriptedLLM([JUDGED]),
        "nodes": make_nodes(["Books can be returned within 21 days."]),
    }
    _run((ROOT / "docs" / "how-to" / "checks.md").read_text(encoding="utf-8"), "checks.md", names)
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["quotes", "passed"],
        ["numbers", "passed"],
        ["groundedness", "passed"],
    ]
    for certain, status in ((0.9, "passed"), (0.2, "failed")):
        seen: list[tuple[str, str]] = []

        def entails(premise: str, text: str, certain: float = certain, seen: list[Any] = seen) -> float:
            seen.append((premise, text))
            return certain

        check = names["EntailmentCheck"](entails=entails, threshold=0.5)
        synthesizer = CitingSynthesizer(ScriptedLLM([CLAIMED]), output_cls=ClaimedAnswer, checks=[check])
        result: Any = synthesizer.synthesize("How long?", names["nodes"])
        assert result.grounded.checks[0].status == status
        assert seen == [("Books can be returned within 21 days.", "You have 21 days.")]


def test_the_adapter_of_a_token_classifier_runs() -> None:
    """What a classifier doubts becomes spans of the answer."""
    page = (ROOT / "docs" / "how-to" / "checks.md").read_text(encoding="utf-8")
    start = {"llm": ScriptedLLM([CLAIMED]), "judge": ScriptedLLM([JUDGED]), "nodes": make_nodes(["Within 21 days."])}
    names = _run(page, "checks.md", start)

    def classify(texts: list[str], question: str, answer: str) -> list[tuple[int, int, float]]:
        assert question == "How long?"
        return [(word.start(), word.end(), 0.1 if word[0] in texts[0] else 0.9) for word in re.finditer(r"\w+", answer)]

    synthesizer = CitingSynthesizer(
        ScriptedLLM([CLAIMED]), output_cls=ClaimedAnswer, checks=[names["TokenCheck"](classify=classify)]
    )
    result: Any = synthesizer.synthesize("How long?", make_nodes(["Within 21 days."])).grounded
    (check,) = result.checks
    assert [result.answer[span.start : span.end] for span in check.spans] == ["You", "have"]
    assert check.score == pytest.approx(0.1)


@pytest.mark.parametrize("silenced", [False, True])
def test_what_the_page_on_tests_says_of_the_log(silenced: bool, caplog: pytest.LogCaptureFixture) -> None:
    """An outage, an unreadable reply and a passed deadline are logged as errors, and its line keeps the log empty."""
    line = 'caplog.set_level("CRITICAL", logger="llama_index_grounded")'
    assert f"`{line}`" in (ROOT / "docs" / "how-to" / "testing.md").read_text(encoding="utf-8")
    if silenced:
        caplog.set_level("CRITICAL", logger="llama_index_grounded")
    found = FixedRetriever(make_nodes(["Within 21 days."]))
    slow = ScriptedLLM(
        [{"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}], chunk_size=8, delay=0.05
    )
    for llm, timeout in ((ScriptedLLM([ConnectionError("refused")]), 60), (ScriptedLLM(["21 days"]), 60), (slow, 0.1)):
        GroundedQueryEngine.from_args(retriever=found, llm=llm, max_retries=0, timeout=timeout).query("How long?")
    logged = [(record.name.partition(".")[0], record.levelname) for record in caplog.records]
    assert logged == [] if silenced else logged == [("llama_index_grounded", "ERROR")] * 3


@pytest.mark.parametrize("on_fail", ["flag", "refuse"])
def test_spans_point_into_the_answer_that_was_checked(on_fail: Any) -> None:
    """As the page on checks says: a refusal has another text, and the spans are those of the answer before it."""
    claim = {"sources": ["S1"], "quote": "within 99 days", "text": "You have 99 days."}
    llm = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "claims": [claim]}])
    synthesizer = CitingSynthesizer(llm, output_cls=ClaimedAnswer, checks=[QuoteCheck(on_fail=on_fail)])
    result: Any = synthesizer.synthesize("How long?", make_nodes(["Within 21 days."])).grounded
    ((span,),) = (check.spans for check in result.checks)
    assert "You have 99 days."[span.start : span.end] == "You have 99 days."
    assert (result.answer[span.start : span.end] == "You have 99 days.") is (on_fail == "flag")
