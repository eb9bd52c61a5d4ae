"""Reasoning in front of a reply, however it is marked: it is no part of the reply, and no draft in it is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import MODES, OK, ask, reason, served

WHOLE = json.dumps(OK)
DRAFT = json.dumps({**OK, "answer": "Perhaps 99 [S1]."})
SIZES = (None, 1, 7)

REASONING = {
    "no opening tag": "S1 says 21 days.</think>",
    "no opening tag, a brace": "The set {S1} says 21.</think>\n",
    "no opening tag, a draft": f"Let me think: {DRAFT} no.</think>",
    "no opening tag, half a draft": f"Let me think: {DRAFT[:50]} no.</think>",
    "thinking": f"<thinking>{DRAFT}</thinking>",
    "other case": f"<THINK>{DRAFT}</Think>",
    "another closing tag": f"<think>{DRAFT}</thinking>",
    "two blocks": f"<think>a</think>\n<think>{DRAFT}</think>",
    "a block and words": f"<think>a</think> So {DRAFT}, or not?</think>",
    "a block in a block": f"<think>a <think>{DRAFT}</think> b {DRAFT}</think>",
    "an opening tag behind words": f"Okay. <think>{DRAFT}</think>",
    "a fence behind it": "S1 says so.</think>\n```json\n",
    "a byte order mark": f"\ufeff\n<think>{DRAFT}</think>",
}
HIDDEN = {
    "words": f"The reply is as follows. {WHOLE}",
    "words behind thinking": f"<think>a</think> The reply: {WHOLE}",
    "a list": f"[{WHOLE}]",
    "words in a fence": f"```\nreply\n{WHOLE}",
}
UNREAD = {
    "cut while thinking": (f"<thinking>{DRAFT}", "thinking"),
    "cut while thinking again": (f"<think>a</think><THINK>{DRAFT}", "thinking"),
    "cut while thinking behind words": (f"Okay. <think>{DRAFT}", "thinking"),
    "nothing behind it": ("S1 says 21 days.</think>\n", "empty"),
    "a draft and nothing behind it": (f"Let me think: {DRAFT} no.</think>", "empty"),
    "words behind it": ("S1 says 21 days.</think>Within 21 days.", "no JSON object"),
    "two objects behind it": (f"S1 says so.</think>{WHOLE}{WHOLE}", "more than one"),
    "a draft at the beginning": (f"{DRAFT} no.</think>{WHOLE}", "more than one"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REASONING)
def test_reasoning_is_no_part_of_the_reply(name: str, mode: str) -> None:
    """What stands before a closing tag is dropped, and the reply behind it is read and shown, cut anywhere."""
    for size in SIZES:
        result, texts = ask(ScriptedLLM([REASONING[name] + WHOLE], chunk_size=size), mode)
        assert (result.answer, result.refusal, result.llm_calls) == (OK["answer"], None, 1)
        assert "".join(texts) == result.answer


@pytest.mark.parametrize("name", REASONING)
def test_the_reply_behind_reasoning_is_shown_as_it_comes(name: str) -> None:
    """Once a closing tag was read, the text streams: it does not wait for the end of the reply."""
    _, texts = ask(ScriptedLLM([REASONING[name] + WHOLE], chunk_size=4), "stream")
    assert len(texts) > 2


@pytest.mark.parametrize("mode", ["stream", "astream"])
@pytest.mark.parametrize("name", HIDDEN)
def test_behind_words_the_text_waits_for_the_end(name: str, mode: str) -> None:
    """Words before an object may be reasoning whose end is still to come, so the answer is shown in one piece."""
    for size in SIZES:
        result, texts = ask(ScriptedLLM([HIDDEN[name]], chunk_size=size), mode)
        assert texts == [OK["answer"]] == [result.answer]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", UNREAD)
def test_reasoning_without_a_reply_is_none(name: str, mode: str) -> None:
    """A draft never takes the place of the reply, and the refusal says what is missing."""
    reply, cause = UNREAD[name]
    for size in SIZES:
        result, texts = ask(ScriptedLLM([reply], chunk_size=size), mode, max_retries=0)
        assert result.refusal is not None
        assert reason(result) == "invalid_output"
        assert cause in result.refusal.detail
        assert "".join(texts) == result.answer
        assert ("99" in result.answer) <= (name == "a draft at the beginning")


@settings(max_examples=60)
@given(
    pieces=st.lists(st.sampled_from(["hm ", "{", "}", '"', DRAFT, "<think>", "[S1]", "```json\n", "</"]), max_size=6),
    size=st.integers(1, 12),
)
@example(pieces=["```json\n", "hm ", DRAFT], size=3)
def test_no_draft_is_ever_shown(pieces: list[str], size: int) -> None:
    """Whatever reasoning holds behind its first word, streamed or not the reply behind it is the answer."""
    reply = f"So: {''.join(pieces)}</think>{WHOLE}"
    for mode in ("sync", "stream"):
        result, texts = ask(ScriptedLLM([reply], chunk_size=size), mode)
        assert ("".join(texts), result.refusal) == (OK["answer"], None)


@pytest.mark.parametrize("mode", MODES)
def test_a_tag_inside_of_the_reply_ends_nothing(mode: str) -> None:
    """Where the reply begins with its object, a closing tag in a text or behind it is no end of reasoning."""
    inside = {**OK, "answer": "It ends with </think>, so 21 days [S1]."}
    for reply in (inside, f"```json\n{json.dumps(inside)}\n```", f"{WHOLE}</think>"):
        result, texts = ask(ScriptedLLM([reply], chunk_size=5), mode)
        assert result.answer.endswith("21 days [S1].")
        assert "".join(texts) == result.answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["ollama", "openai-like", "text"])
def test_reasoning_that_the_chat_template_opened_is_read_over_http(kind: str, mode: str) -> None:
    """A server that cuts no reasoning off sends it in the content, without its opening tag."""
    with served(kind, f"The set {{S1}}: {DRAFT}?\n</think>\n\n{WHOLE}") as (llm, _):
        result, texts = ask(llm, mode)
    assert ("".join(texts), result.refusal) == (OK["answer"], None)
