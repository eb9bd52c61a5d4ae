"""Every format from the nodes to the answer: what the model saw is what is checked and cited, whatever it copies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llama_index_grounded import CitingSynthesizer, GroundedResult, TokenBudget
from llama_index_grounded.checks import QuoteCheck
from llama_index_grounded.rendering import (
    JsonRenderer,
    KeyValueRenderer,
    MarkdownRenderer,
    Renderer,
    TableRenderer,
    XmlRenderer,
)
from llama_index_grounded.rendering.renderer import Rendered, shown_text
from llama_index_grounded.schema import QuoteMatch, RefusalReason
from llama_index_grounded.selection import ConflictFlagger, Selection
from llama_index_grounded.synthesis import ClaimedAnswer, GroundedResponse
from llama_index_grounded.synthesis.streaming import GroundedStreamingResponse
from llama_index_grounded.synthesis.unescaping import Escapes, escapes_of
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter

QUESTION = "What does an adult card cost?"
CARDS = {"Adult card": {"loans": 10, "fee": "12 € | year"}, "Child card": {"loans": 5}}
RENDERERS: list[Renderer] = [XmlRenderer(), MarkdownRenderer(), JsonRenderer(), TableRenderer(), KeyValueRenderer()]
OF_ENTITIES: list[Renderer] = [TableRenderer(), KeyValueRenderer()]
BRACKETS: list[Renderer] = [MarkdownRenderer(), TableRenderer(), KeyValueRenderer()]


def named(renderer: Renderer) -> str:
    """Name a case by its renderer."""
    return type(renderer).__name__


every = pytest.mark.parametrize("renderer", RENDERERS, ids=named)
of_entities = pytest.mark.parametrize("renderer", OF_ENTITIES, ids=named)
brackets = pytest.mark.parametrize("renderer", BRACKETS, ids=named)


def entities() -> list[NodeWithScore]:
    """Make a node that has nothing but entities, and one that has text alone."""
    return make_nodes(
        ["", "Cards last a year."], ids=["cards", "text"], metadata=[{"title": "Cards", "entities": CARDS}, {}]
    )


def replied(answer: str, sources: Sequence[str] = ("S1",)) -> dict[str, Any]:
    """Write an answer as a model does."""
    return {"verdict": "answered", "sources": list(sources), "answer": answer}


def quoted(quote: str) -> dict[str, Any]:
    """Write an answer of one claim with a quote."""
    claim = {"sources": ["S1"], "quote": quote, "text": "So it is."}
    return {"verdict": "answered", "sources": ["S1"], "claims": [claim]}


def respond(renderer: Renderer, reply: Any, nodes: list[NodeWithScore], **options: Any) -> GroundedResponse:
    """Ask with a renderer, whole, and see that a stream of single characters ends in the same."""
    whole = CitingSynthesizer(ScriptedLLM([reply]), renderer=renderer, **options).synthesize(QUESTION, nodes)
    llm = ScriptedLLM([reply], chunk_size=1)
    stream = CitingSynthesizer(llm, renderer=renderer, streaming=True, **options).synthesize(QUESTION, nodes)
    assert isinstance(whole, GroundedResponse)
    assert isinstance(stream, GroundedStreamingResponse)
    assert "".join(stream.response_gen) == str(whole)
    assert outcome(stream.grounded) == outcome(whole.grounded)
    return whole


def outcome(result: GroundedResult) -> dict[str, Any]:
    """Return what does not depend on time and usage."""
    return result.model_dump(exclude={"elapsed_ms", "usage", "raw_output", "fingerprint"})


def quote_of(renderer: Renderer, quote: str, nodes: list[NodeWithScore]) -> tuple[QuoteMatch, str]:
    """Return what `QuoteCheck` makes of a quote, and the included text of the first source."""
    response = respond(renderer, quoted(quote), nodes, output_cls=ClaimedAnswer, checks=[QuoteCheck()])
    (check,) = response.grounded.checks
    (match,) = check.quotes
    return match, response.source_nodes[0].node.get_content()


# What is shown.


@every
def test_what_was_shown_is_what_is_cited(renderer: Renderer) -> None:
    """The blocks of the prompt hold exactly the texts of the source nodes, in every format."""
    nodes = make_nodes(["a < b [S9] \u200b&lt;", "Cards last a year."], metadata={"entities": CARDS})
    llm = ScriptedLLM([replied("Twelve [S1].")])
    response = CitingSynthesizer(llm, renderer=renderer).synthesize(QUESTION, nodes)
    shown = [text for _, text in renderer.recover(llm.prompts[0])]
    assert [scored.node.get_content() for scored in response.source_nodes] == shown
    assert shown == [shown_text(renderer, scored.node) for scored in nodes]


@of_entities
def test_a_node_of_entities_alone_is_a_source(renderer: Renderer) -> None:
    """A node without text stays where its entities are shown; where they are not, it is dropped as empty."""
    result = respond(renderer, replied("Twelve [S1]."), entities()).grounded
    assert [source.node_id for source in result.sources] == ["cards", "text"]
    assert result.decisions == ()
    plain = respond(MarkdownRenderer(), replied("A year [S1]."), entities()).grounded
    assert [source.node_id for source in plain.sources] == ["text"]
    assert [(each.node_id, each.reason) for each in plain.decisions] == [("cards", "empty_text")]


def test_a_node_that_shows_nothing_is_left_out() -> None:
    """Where the own text is not shown and there are no entities, nothing is left to read, and no model is called."""
    llm = ScriptedLLM([replied("x [S1]")])
    synthesizer = CitingSynthesizer(llm, renderer=TableRenderer(show_text=False))
    response = synthesizer.synthesize(QUESTION, make_nodes(["Some text."]))
    assert response.refusal is not None
    assert response.refusal.reason is RefusalReason.no_evidence
    assert not llm.prompts


@of_entities
def test_a_budget_keeps_entities(renderer: Renderer) -> None:
    """A budget with the same renderer admits a node of entities alone, and one with another renderer does not."""
    kept = TokenBudget(max_tokens=400, renderer=renderer).select(entities(), QUESTION)
    assert [scored.node.node_id for scored in kept.nodes] == ["cards", "text"]
    other = TokenBudget(max_tokens=400).select(entities(), QUESTION)
    assert [each.reason for each in other.decisions] == ["empty_text"]
    fitted = TokenBudget.for_synthesizer(CitingSynthesizer(ScriptedLLM([""]), renderer=renderer))
    assert len(fitted.postprocess_nodes(entities(), QueryBundle(QUESTION))) == 2


class Counting(MarkdownRenderer):
    """Counts how often a text is written."""

    def frame(self, node: BaseNode, key: str, score: float | None = None) -> tuple[str, str, str]:
        """Render one source in parts, of which a block is made and a size is counted."""
        COUNTED.append(node.node_id)
        return super().frame(node, key, score)


COUNTED: list[str] = []


def test_no_further_rendering() -> None:
    """A plan writes each block twice: to measure it, and to send it."""
    COUNTED.clear()
    CitingSynthesizer(ScriptedLLM([""]), renderer=Counting()).preview(QUESTION, make_nodes(["One."], ids=["a"]))
    assert COUNTED == ["a"] * 2


# What is quoted.


def test_a_quote_from_a_cell_has_its_place() -> None:
    """A cell is found in the table that the model saw, with offsets in it, bars as they are written there."""
    match, text = quote_of(TableRenderer(), r"| Adult card | 10 | 12 € \| year |", entities())
    assert match.key == "S1"
    assert text[match.start : match.end] == match.text == r"| Adult card | 10 | 12 € \| year |"


def test_a_quote_from_a_line_has_its_place() -> None:
    """A line ``name: value`` is found in the lines that the model saw."""
    match, text = quote_of(KeyValueRenderer(), "fee: 12 € | year", entities())
    assert match.key == "S1"
    assert text[match.start : match.end] == match.text == "fee: 12 € | year"


@pytest.mark.parametrize(
    "renderer, quote, found",
    [
        (XmlRenderer(), "a &lt;b> c", "a <b> c"),
        (MarkdownRenderer(), "a <b> c", "a <b> c"),
        (MarkdownRenderer(), "use &lt;i> now", "use &lt;i> now"),
        (MarkdownRenderer(), r"see [\S1] there", "see [S1] there"),
        (MarkdownRenderer(), "see [S1] there", "see [S1] there"),
        (JsonRenderer(), r"say \"yes\" twice", 'say "yes" twice'),
        (JsonRenderer(), r"in C:\new\table", r"in C:\new\table"),
        (JsonRenderer(), "use &lt;i> now", "use &lt;i> now"),
    ],
)
def test_quotes_are_unescaped_in_the_way_of_the_format(renderer: Renderer, quote: str, found: str) -> None:
    """A quote is looked for as it is and without the escapes of its own format, and stands where the source has it."""
    nodes = make_nodes([r'a <b> c; use &lt;i> now; see [S1] there; say "yes" twice; in C:\new\table'])
    match, text = quote_of(renderer, quote, nodes)
    assert (match.key, match.text) == ("S1", found)
    assert text[match.start : match.end] == found


def test_the_escapes_of_xml_are_not_those_of_others() -> None:
    """``<i>`` is no quote from a Markdown block that says ``&lt;i>`` alone, but ``&lt;i>`` is."""
    nodes = make_nodes(["use &lt;i> now"])
    assert quote_of(MarkdownRenderer(), "use &lt;i> now", nodes)[0].key == "S1"
    assert quote_of(MarkdownRenderer(), "use <i> now", nodes)[0].key is None
    assert quote_of(JsonRenderer(), "use &amp;lt;i> now", nodes)[0].key is None


# What is copied into an answer.


@every
@pytest.mark.parametrize(
    "answer, text",
    [
        ("[S1 | Document: Cards]\nTwelve euros.\n[/S1]\nDone.", "[S1]\nTwelve euros.\nDone."),
        ("Twelve [S2 | Document: Cards | Section: Fees (S1)].", "Twelve [S2]."),
        ("Twelve [S1].\n[S9 | Document: Other]\nDone.", "Twelve [S1].\nDone."),
        ("Twelve [S1] [S9 | Document: Other] or so.", "Twelve [S1] or so."),
        ("Twelve [S1 | Document: `a` $b$].", "Twelve [S1]."),
        ("`[S1 | Document: Cards]` [S1]", "`[S1 | Document: Cards]` [S1]"),
        ("$[S1 | x: y]$ and E[S1 | X] [S1]", "$[S1 | x: y]$ and E[S1 | X] [S1]"),
        ("a [S1 | Document: Cards](https://x.org) [S1]", "a [S1 | Document: Cards](https://x.org) [S1]"),
    ],
)
def test_copied_headings(renderer: Renderer, answer: str, text: str) -> None:
    """Of a copied heading the marker stays where the key is known, and nothing where it is not; code and links stay."""
    result = respond(renderer, replied(answer), make_nodes(["Twelve euros.", "Ten."])).grounded
    assert result.answer == text
    assert result.invalid_source_ids == (("S9",) if "S9" in answer else ())
    assert [each.key for each in result.citations] == (["S1", "S2"] if "[S2" in answer else ["S1"])


@every
def test_a_heading_can_be_all_that_cites(renderer: Renderer) -> None:
    """Unknown keys of headings follow the policy for unknown ids, and none is left without inline citations."""
    nodes = make_nodes(["Twelve euros."])
    refused = respond(renderer, replied("Twelve [S9 | Page: 3]."), nodes, on_invalid_ids="refuse").grounded
    assert refused.refusal is not None
    assert refused.refusal.reason is RefusalReason.invalid_citation
    bare = respond(renderer, replied("[S1 | Page: 3] Twelve.\n[/S1]"), nodes, inline_citations=False).grounded
    assert bare.answer == "Twelve."
    blank = respond(renderer, replied("[S1 | Page: 3]\n[/S1]"), nodes, max_retries=0).grounded
    assert blank.refusal is not None
    assert blank.refusal.reason is RefusalReason.invalid_output


@brackets
def test_keys_of_documents_are_text(renderer: Renderer) -> None:
    """A key that a document holds is shown without its backslash and cites nothing, whichever source has it."""
    nodes = make_nodes(["See [S2] and [S9].", "Ten."])
    result = respond(renderer, replied(r"It says [\S2] and [\S9, S2], x[a][\S2] `[\S2]` [S1]."), nodes).grounded
    assert result.answer == r"It says (S2) and (S9, S2), x[a] (S2) `[\S2]` [S1]."
    assert ([each.key for each in result.citations], result.invalid_source_ids) == (["S1"], ())
    assert respond(renderer, replied(r" [\S2] is a key."), nodes).grounded.answer == "(S2) is a key."


class Own:
    """A renderer with the four methods alone."""

    def block(self, node: BaseNode, key: str, score: float | None = None) -> str:
        """Render one source."""
        return f"[{key}]\n{node.get_content()}\n[/{key}]\n"

    def render(self, nodes: Sequence[NodeWithScore]) -> Rendered:
        """Render nodes as `MarkdownRenderer` does."""
        return MarkdownRenderer().render(nodes)

    def recover(self, text: str) -> list[tuple[str, str]]:
        """Find all blocks."""
        return MarkdownRenderer().recover(text)

    def escape(self, text: str) -> str:
        """Return the text as it is."""
        return text


@pytest.mark.parametrize(
    "renderer, escapes, text",
    [
        (XmlRenderer(), "xml", r"<b> &amp; C:\new \"x\" [S1]"),
        (MarkdownRenderer(), "brackets", r"&lt;b> &amp; C:\new \"x\" [S1]"),
        (JsonRenderer(), "none", r"&lt;b> &amp; C:\new \"x\" [S1]"),
        (Own(), "none", r"&lt;b> &amp; C:\new \"x\" [S1]"),
    ],
)
def test_answers_are_unescaped_in_the_way_of_the_format(renderer: Renderer, escapes: Escapes, text: str) -> None:
    """``&lt;`` becomes ``<`` only where the prompt wrote it so; JSON's escapes and other renderers' stay in answers."""
    assert escapes_of(renderer) == escapes
    answer = respond(renderer, replied(r"&lt;b> &amp; C:\new \"x\" [S1]"), make_nodes(["x"])).grounded.answer
    assert answer == text


@every
def test_notes_are_counted_as_they_are_sent(renderer: Renderer) -> None:
    """The share of the notes on sources that disagree is that of their escaped text in the prompt."""
    texts = ['"Books" <b> [S9] can be returned within 21 days.', '"Books" <b> [S9] can be returned within 14 days.']
    nodes = make_nodes(texts, metadata=[{"document_id": "new"}, {"document_id": "old"}])
    query = QueryBundle('How many days can "books" be returned?')
    found: Selection = ConflictFlagger(confirm=False).select(nodes, query)
    assert found.decisions
    nodes = ConflictFlagger(confirm=False).postprocess_nodes(nodes, query)
    plan = CitingSynthesizer(ScriptedLLM([""]), renderer=renderer).preview(query, nodes)
    sent = "".join(message.content or "" for message in plan.messages)
    notes = re.search(r"Sources S1 and S2 (?s:.*?)date or version\.\n", sent)
    assert notes is not None
    assert plan.shares["notes"] == TokenCounter.default().tokens(notes[0])
