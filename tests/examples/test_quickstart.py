"""The quickstart as a user sees it: answers, refusals, readers, previews and one-line errors."""

from __future__ import annotations

import logging
import socket

import pytest

import quickstart
from llama_index_grounded import GroundedResult, RefusalReason, Verdict
from support import ollama_host
from support.models import WORDLLAMA_MIN_SCORE
from support.options import EMBED_MODEL, MODEL
from tests.examples.conftest import STAFF_ONLY, STAFF_QUESTION, Quickstart
from tests.ollama_server import OllamaServer

ANSWER = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}


def ask(run: Quickstart, question: str, *options: str) -> GroundedResult:
    """Run the quickstart with --json and read its output back."""
    printed = run(question, "--json", *options)
    assert printed.code == 0, printed.err
    return GroundedResult.model_validate_json(printed.out)


@pytest.mark.parametrize(
    "question,fact,document",
    [
        ("How many days do I have to return a book?", "21 days", "returns"),
        ("What discount do I get for 120 copies?", "15 %", "corporate-orders"),
        ("What discount does a company get on 250 copies?", "22 %", "corporate-orders"),
        ("Can I turn a gift card into cash?", "cannot be turned into cash", "gift-cards"),
        ("How long are loyalty points valid?", "24 months", "loyalty"),
        ("What happens to my points after 12 months without a purchase?", "all of your points", "loyalty"),
        ("Which payment options are there?", "bank transfer", "payment"),
        ("How long does shipping take?", "2 to 4 working days", "shipping"),
        ("How much does express shipping cost?", "120 TL", "shipping"),
        ("What happens when the shutdown deadline expires?", "durable retry path", "shutdown-runbook"),
        ("Where is the deadline token passed?", "each asynchronous operation", "shutdown-runbook"),
        ("Kitabı kaç gün içinde iade edebilirim?", "21 gün", "iade"),
        ("120 adet kitap alırsak indirim ne kadar?", "%15", "kurumsal-siparis"),
        ("Hediye kartı nakde çevrilebilir mi?", "nakde çevrilemez", "hediye-karti"),
        ("Sadakat puanlarım kaç ay geçerli?", "24 ay", "sadakat-puanlari"),
    ],
)
def test_a_fact_of_the_corpus_is_answered_from_its_page(
    offline: Quickstart, question: str, fact: str, document: str
) -> None:
    """The answer holds the fact and cites its page first, with a link to the section."""
    result = ask(offline, question)
    assert fact in result.answer
    assert result.citations[0].document_id == document
    assert result.citations[0].url is not None
    assert "#" in result.citations[0].url


@pytest.mark.parametrize(
    "question",
    [
        "Is there a café in the store?",
        "Are you open on Sundays?",
        "Do you run a book club?",
        "How can I join the book club?",
        "Which carrier do you use?",
        "Which carrier delivers the parcels?",
        "Kafeniz var mı?",
        "Pazar günü açık mısınız?",
        "Kitap kulübünüz var mı?",
        "Hangi kargo firmasıyla çalışıyorsunuz?",
    ],
)
def test_a_question_that_no_page_answers_is_refused(offline: Quickstart, question: str) -> None:
    """A subject that the corpus does not know ends in a refusal without a citation, in both languages."""
    result = ask(offline, question)
    assert result.refusal is not None
    assert result.refusal.reason in {RefusalReason.low_score, RefusalReason.not_in_sources}
    assert result.citations == ()


def test_a_weak_score_refuses_without_a_call(offline: Quickstart) -> None:
    """The gate stops a question about a café before any model is called, and the output says why."""
    result = ask(offline, "Is there a café in the store?")
    assert (result.llm_calls, result.usage.prompt_tokens) == (0, 0)
    printed = offline("Is there a café in the store?")
    assert "Refused: low_score" in printed.out
    assert "0 model calls" in printed.out


def test_a_cited_no_is_an_answer(offline: Quickstart) -> None:
    """A page that denies what a yes-or-no question asks gives the verdict "no"."""
    result = ask(offline, "Can I turn a gift card into cash?")
    assert result.verdict is Verdict.no
    assert result.answerable


def test_the_text_output_holds_everything_that_was_promised(offline: Quickstart) -> None:
    """Answer, citation with title, section and link, score, token counts, time and audit log are printed."""
    printed = offline("How many days do I have to return a book?")
    assert printed.out.startswith("Printed books can be returned within 21 days of delivery.")
    assert "] Returns and exchanges | Return window | /help/returns#return-window" in printed.out
    for name in ("Top score: 0.", "Prompt tokens: ", " estimated, ", " reported (1 model call)", "Elapsed: "):
        assert name in printed.out
    log = printed.out.partition("Audit log of the pack:")[2]
    assert "returns#return-window" in log
    assert "ScoreGate" in log
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("Running on PostgreSQL 18")
    assert "pgvector" in printed.err
    assert "extractive answerer" in printed.err


def test_the_shared_paragraph_of_the_runbook_is_sent_once(offline: Quickstart) -> None:
    """Two chunks that overlap in a paragraph bring it into the prompt once; the rest of the second stays."""
    printed = offline("What happens when the shutdown deadline expires?", "--preview")
    assert printed.out.count("Remaining items are drained only while") == 1
    assert printed.out.count("The deadline token is passed to each asynchronous operation") == 1


def test_a_preview_shows_the_prompt_and_calls_no_model(offline: Quickstart, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages and their size against the allowance are printed though the model would fail."""
    from support import extractive

    monkeypatch.setattr(extractive, "_reply", None)
    printed = offline("How many days do I have to return a book?", "--preview")
    assert printed.code == 0
    assert '<source id="S1"' in printed.out
    assert "How many days do I have to return a book?" in printed.out
    assert "prompt tokens" in printed.out


def test_staff_may_read_what_customers_may_not(offline: Quickstart) -> None:
    """The staff agreement answers a member of staff."""
    result = ask(offline, STAFF_QUESTION, "--audience", "staff")
    assert "within 90 days" in result.answer
    assert result.citations[0].document_id == "supplier-returns"


@pytest.mark.parametrize("form", ["--json", "--preview", "--audience=customer"])
def test_nothing_of_the_staff_page_reaches_a_customer(
    offline: Quickstart, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    """No answer, citation, source or log line, down to debug level, holds anything of the agreement."""
    offline("Is there a café in the store?")
    with caplog.at_level(logging.DEBUG):
        printed = offline(STAFF_QUESTION, form)
    question_free = (printed.out + printed.err + caplog.text).replace(STAFF_QUESTION, "")
    assert printed.code == 0
    assert not [text for text in STAFF_ONLY if text in question_free]


def test_a_misspelt_audience_is_refused(offline: Quickstart, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown reader gets no pages but the usage line."""
    with pytest.raises(SystemExit, match="2"):
        offline("Any question?", "--audience", "stuff")
    assert "invalid choice: 'stuff'" in capsys.readouterr().err


def test_a_second_run_does_not_ingest_again(offline: Quickstart) -> None:
    """Progress is shown while pages are stored, and never when they are stored already."""
    assert "Ingesting: 0 of " in offline("Any question?", "--reingest").err
    assert "Ingesting" not in offline("Any question?").err


def test_an_ollama_server_embeds_and_answers(
    run: Quickstart, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With OLLAMA_HOST both models are that server's; temperature, seed and window are fixed."""
    ollama_server.script(ANSWER)
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    result = ask(run, "How many days do I have to return a book?")
    assert result.answer == "Within 21 days [S1]."
    (chat,) = ollama_server.chats
    options = chat["options"]
    assert (options["temperature"], options["seed"], options["num_ctx"]) == (0.0, 42, 8192)
    assert any(request.path == "/api/embed" for request in ollama_server.requests)


def test_vectors_of_another_size_are_refused_until_they_are_stored_again(
    run: Quickstart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that changed under its name gets one line, and --reingest puts it right."""
    for dimension, options, code in ((32, ("--reingest",), 0), (48, (), 2), (48, ("--reingest",), 0)):
        with OllamaServer(ANSWER, embed_dim=dimension) as server:
            monkeypatch.setenv("OLLAMA_HOST", server.url)
            printed = run("Any question?", *options)
        assert printed.code == code, printed.err
        assert ("wrong dimension: the stored vectors have 32 components" in printed.err) == (code == 2)


def test_an_embedding_server_that_fails_gets_one_line(
    run: Quickstart, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is listed and cannot embed is reported without a traceback."""
    ollama_server.fail("/api/embed", 500, "cannot load")
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    printed = run("Any question?")
    assert (printed.code, printed.out) == (2, "")
    assert "ollama pull nomic-embed-text" in printed.err


def test_a_database_url_is_used(offline: Quickstart, postgres_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DATABASE_URL the pages are stored there and answer from there."""
    monkeypatch.setenv("DATABASE_URL", postgres_uri)
    printed = offline("How many days do I have to return a book?", "--reingest")
    assert "(DATABASE_URL)" in printed.err
    assert "21 days" in printed.out


def test_a_database_that_does_not_answer_gets_one_line(offline: Quickstart, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what to do and holds no password."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/books")
    printed = offline("Any question?")
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert "check DATABASE_URL or unset it" in printed.err
    assert "s3cret" not in printed.err


@pytest.mark.parametrize(
    "arguments",
    [[""], [], ["?", "--min-score", "nan"], ["?", "--min-score", "abc"], ["caf\udce9"], ["?", "--json", "--preview"]],
)
def test_arguments_that_make_no_sense_are_refused_at_once(arguments: list[str]) -> None:
    """A blank or unreadable question, a threshold that is no number and two forms at once end in the usage line."""
    with pytest.raises(SystemExit, match="2"):
        quickstart.main(arguments)


@pytest.mark.parametrize("option", ["--model", "--embed-model"])
def test_a_model_that_was_named_is_never_replaced_by_the_built_in_one(
    run: Quickstart, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of a server needs one: where none answers, nothing is asked, and the line says what to do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setattr(ollama_host, "DEFAULT_HOST", f"127.0.0.1:{probe.getsockname()[1]}")
        printed = run("Any question?", option, "gemma3")
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert printed.err.startswith(f"quickstart: {option} gemma3 needs an Ollama server")
    assert "OLLAMA_HOST" in printed.err


def test_a_model_of_a_server_and_no_server_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """With --offline the name of a model would have no effect, so both together are refused."""
    with pytest.raises(SystemExit, match="2"):
        quickstart.main(["Any question?", "--offline", "--model", "gemma3"])
    assert "--model gemma3 is a model of an Ollama server, and --offline uses none" in capsys.readouterr().err


def test_a_model_that_was_named_is_the_one_that_answers(
    run: Quickstart, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the server can say whether it has a model of that name."""
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    printed = run("Any question?", "--model", "other")
    assert (printed.code, printed.out) == (2, "")
    assert "has no model other: run 'ollama pull other'" in printed.err


def test_help_says_what_it_is_for_and_what_it_assumes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It begins with the docstring, and names the default of each option that has one, the bar of the gate too."""
    monkeypatch.setenv("COLUMNS", "200")  # wide enough that no name is broken at its hyphen
    with pytest.raises(SystemExit, match="0"):
        quickstart.main(["--help"])
    printed = capsys.readouterr().out
    assert quickstart.__doc__ is not None
    assert quickstart.__doc__.strip() in printed
    told = " ".join(printed.split())
    assert f"depends on the embedding model: {WORDLLAMA_MIN_SCORE} by default with the built-in one" in told
    for default in (*(f"default: {name}" for name in (MODEL, EMBED_MODEL)), "default: customer"):
        assert default in told


def test_a_question_needs_no_quotes(offline: Quickstart) -> None:
    """Words that the shell has split are one question."""
    printed = offline("How", "many", "days", "do", "I", "have", "to", "return", "a", "book?")
    assert "21 days" in printed.out
