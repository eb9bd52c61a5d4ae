"""The reader of a reply in progress: the same text however the reply is cut, and no character too early."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llama_index_grounded.llm.structured import InvalidReplyError, read_reply
from llama_index_grounded.synthesis.answer import GroundedAnswer
from llama_index_grounded.synthesis.reader import ReplyReader
from llama_index_grounded.synthesis.validate import judge
from tests.timing import assert_linear

KEYS = ["S1", "S2"]
OK = '{"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}'
HEAD = '{"verdict": "answered", "sources": ["S1"], "answer": "'


def reader(*, inline_citations: bool = True, most_chars: int = 16_000, fields: Any = None) -> ReplyReader:
    """Make a reader for two sources; without `fields` the object may have those of `GroundedAnswer`."""
    return ReplyReader(
        KEYS,
        fields=GroundedAnswer.model_fields if fields is None else fields,
        inline_citations=inline_citations,
        most_chars=most_chars,
    )


def shown(reply: str, cuts: list[int] | None = None, **options: Any) -> str:
    """Feed a reply, cut at some places or into single characters, and return what was shown."""
    ends = range(1, len(reply) + 1) if cuts is None else sorted({*(cut % (len(reply) + 1) for cut in cuts), len(reply)})
    reading, start, texts = reader(**options), 0, []
    for end in ends:
        texts.append(reading.feed(reply[start:end]))
        start = end
    return "".join(texts)


def judged(reply: str, *, inline_citations: bool = True) -> str:
    """Return the whole answer of a valid reply."""
    return judge(read_reply(reply, GroundedAnswer), KEYS, inline_citations=inline_citations).text


_MARKS = ["[S1]", "[S9]", "[S1, S9]", "【S2】", "[S1", "S1]", "<source", " id='S1'>", "</source>", "(", "[link](u)"]
_CODE = ["`a[S1]`", "```\n", "$x$", "\\", '"', "&lt;", "&amp;lt;", "{", "}", "\t", "\n", "\n\n", " " * 70]
_TEXT = ["Within", " ", "21 days", ".", "é", "😀", "İ", "\u200b", "\u202e", "\ud83d", "\ude00", "\x01"]
_words = st.lists(st.sampled_from([*_MARKS, *_CODE, *_TEXT]), max_size=12).map("".join)
_AROUND = ["", "\ufeff", "```json\n", "Sure: ", "<think>a {b}</think>", " \n<think></think> x "]
_ODD = ["", ",", ",,", '"', "{", "}", '"answer": "x", ', '"note": 1, ', '"verdict": "no", ', "NaN", "<think>", "\\u12"]


@st.composite
def replies(draw: st.DrawFn, answer: st.SearchStrategy[str] = _words) -> str:
    """A valid reply: any order of the fields, escapes or none, with what may stand around it."""
    fields: list[tuple[str, Any]] = [
        ("verdict", draw(st.sampled_from(["answered", "yes", "No", " conflicting ", "not_in_sources"]))),
        ("sources", draw(st.sampled_from([["S1"], ["[s2]", "S9"], "S1, S2", '["S1"]', ["S9"], [], 1, [1, "S1"]]))),
        ("answer", draw(answer)),
    ]
    order = draw(st.permutations(fields) | st.just(fields))
    written = json.dumps(dict(order), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2])))
    before = draw(
        st.sampled_from(["", "\ufeff", "```json\n", "Sure: ", "<think>a {b}</think>", " \n<think></think> x "])
    )
    after = draw(st.sampled_from(["", "\n```", " Done.", "}"]))
    return f"{before}{written}{after}"


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A reply with a slice taken out and something put in its place; seldom an answer."""
    reply = draw(replies())
    start = draw(st.integers(0, len(reply)))
    stop = draw(st.integers(start, min(len(reply), start + 6)))
    return reply[:start] + draw(st.sampled_from(_ODD)) + reply[stop:]


@settings(max_examples=80)
@given(reply=replies() | broken(), cuts=st.lists(st.integers(0, 400), max_size=8), inline=st.booleans())
@example(reply=HEAD + '\\ud83d\\ude00 [S1]"}', cuts=[60, 61], inline=True)
@example(reply=HEAD + 'Within 21 days\\ud83d\\,ude00"}', cuts=[70], inline=True)
def test_the_size_of_the_pieces_never_matters(reply: str, cuts: list[int], inline: bool) -> None:
    """A reply shows the same text in single characters, in one piece, and cut anywhere."""
    whole = shown(reply, [], inline_citations=inline)
    assert shown(reply, cuts, inline_citations=inline) == whole
    assert shown(reply, inline_citations=inline) == whole


@settings(max_examples=80)
@given(reply=replies(), inline=st.booleans())
def test_what_is_shown_is_the_beginning_of_the_answer(reply: str, inline: bool) -> None:
    """All that is shown of a valid reply stands at the start of its judged text, so only a rest has to follow."""
    assert judged(reply, inline_citations=inline).startswith(shown(reply, inline_citations=inline))


@settings(max_examples=100)
@given(reply=replies() | broken())
@example('{"verdict": "answered",, "sources": ["S1"], "answer": "x"}')
@example('{"note": 1, "verdict": "answered", "sources": ["S1"], "answer": "x"}')
@example('<think>a</think><think>b</think>{"verdict": "answered", "sources": ["S1"], "answer": "x"}')
@example('{"verdict": "answered", "sources": ["S1", NaN], "answer": "x"}')
@example('{"verdict": "answered" "sources": ["S1"], "answer": "x"}')
@example('{"verdict": "answered", "sources": ["S1"], "answer": "x\\uZZZZ y"}')
@example('{"verdict": "answered", "sources": ["S1",], "answer": "x"}')
@example('{"verdict": "answered", "sources": ["S1"]], "answer": "x"}')
@example('{"verdict": "answered", "sources": ["S1"}, "answer": "x"}')
@example('{"answer": "x", "verdict": "answered", "sources": ["S1"]}')
def test_nothing_is_shown_that_could_not_be_an_answer(reply: str) -> None:
    """When a character is shown, the reply so far needs no more than its closing to be an answer with that text."""
    reading, so_far = reader(), ""
    for place, character in enumerate(reply):
        text = reading.feed(character)
        so_far += text
        if text:
            assert any(_may_end(reply[: place + 1 - less], so_far) for less in range(7)), reply[: place + 1]


def _may_end(begun: str, so_far: str) -> bool:
    for closing in ('"}', ', "answer": ""}', "}", ""):
        try:
            answer = judge(read_reply(begun + closing, GroundedAnswer), KEYS)
        except InvalidReplyError:
            continue
        if answer.refusal is None and answer.text.startswith(so_far.rstrip()):
            return True
    return False


@settings(max_examples=60)
@given(
    answer=_words,
    verdict=st.sampled_from(["answered", "no"]),
    sources=st.sampled_from([["S1"], ["s2", "S7"]]),
    order=st.permutations(["verdict", "sources", "answer"]),
)
def test_fields_in_another_order_make_the_text_wait(
    answer: str, verdict: str, sources: list[str], order: list[str]
) -> None:
    """Nothing is shown before verdict and sources are both complete, wherever the answer stands."""
    values = {"verdict": verdict, "sources": sources, "answer": answer}
    written = [f'"{name}": {json.dumps(values[name])}' for name in order]
    known = max(order.index("verdict"), order.index("sources"))
    assert shown("{" + ", ".join(written[:known])) == ""


_NO_SOURCE: list[Any] = [[], ["S9"], {}, None, [["S1"]], ["1"], "S01"]
_REFUSED: list[tuple[Any, Any]] = [
    *((verdict, ["S1"]) for verdict in ("not_in_sources", "maybe", None)),
    *(("no", sources) for sources in _NO_SOURCE),
]


@pytest.mark.parametrize("verdict, sources", _REFUSED)
def test_without_a_verdict_that_answers_and_a_valid_source_nothing_is_shown(verdict: Any, sources: Any) -> None:
    """A reply that will be refused never shows its text, also not through markers in it."""
    assert shown(json.dumps({"verdict": verdict, "sources": sources, "answer": "Within 21 days [S1]. " * 5})) == ""


_BEGUN = ["Within [S", "Within [", "x <", "x </sou", "x &l", "[S1", "x 【S9", "a [S1, S"]
_INSIDE = ["1]", "]", " [S9]", ", S9]", "†S1]", "ource id='S1'>", ">", "gt;", "lt;source>"]
_LATER = ["", *_INSIDE, "`", "$", "](u)", ")", "\n", "\n```\n"]


@settings(max_examples=60)
@given(answer=_words | st.sampled_from(_BEGUN))
def test_nothing_is_shown_that_later_text_could_change(answer: str) -> None:
    """Whatever the model writes next, what was shown stays the beginning: half a marker, tag or escape waits."""
    begun = HEAD + json.dumps(answer)[1:-1]
    so_far = shown(begun)
    for later in _LATER:
        assert judged(begun + json.dumps(later)[1:] + "}").startswith(so_far)


_UNKNOWN = [
    "a [S9] b",
    "a [S1, S9] b",
    "a [[S9]] b",
    "a 【S9】 b",
    "a [S7-S9] b",
    "a [s9], b",
    "[S9] a b",
    "a [ S9 ] b",
]
_TAGS = ["a <source id='S9'> b</source>", "a &lt;source id='S9'&gt; b", "a\n\n<source>\nb", "a <SOURCE/> b"]


@pytest.mark.parametrize("answer", [*_UNKNOWN, *_TAGS])
def test_unknown_markers_and_tags_are_never_shown(answer: str) -> None:
    """No moment of the stream has a key that does not exist, a part of a tag, or the bracket in front of either."""
    reading, so_far = reader(), ""
    for character in HEAD + json.dumps(answer)[1:] + "}":
        so_far += reading.feed(character)
        assert "9" not in so_far
        assert "so" not in so_far.lower()
        assert so_far[-1:] not in ("[", "【", "<", "&")


_HIDDEN = ["[S\u200b9]", "[\u202eS9]", "【\ufeffS9】", "<sou\u200brce id='S1'>", "</\u2066source>", "[S9\x01]"]


@pytest.mark.parametrize("hidden", _HIDDEN)
def test_invisible_characters_hide_no_marker_and_no_tag(hidden: str) -> None:
    """What would be removed without an invisible character inside it is removed with it, streamed or whole."""
    reply = json.dumps({"verdict": "no", "sources": ["S1"], "answer": f"Never {hidden} sold."})
    text = judged(reply)
    assert "S9" not in text
    assert "source" not in text
    assert text.startswith(shown(reply))


@pytest.mark.parametrize("answer", ["Within 21 days.", "21 days", "İade 21 gün içinde", "Yes.", "返品は21日以内"])
def test_the_first_text_comes_with_the_first_characters_of_the_answer(answer: str) -> None:
    """In single characters, the first text follows the first character of the answer by at most four."""
    reading = reader()
    assert reading.feed(HEAD) == ""
    texts = [reading.feed(character) for character in answer]
    assert any(texts[:5])
    assert len([text for text in texts if text]) > len(answer) // 2


@settings(max_examples=50)
@given(run=st.integers(500, 530), size=st.integers(1, 40), inside=st.booleans())
def test_white_space_without_end_is_noticed_however_it_is_cut(run: int, size: int, inside: bool) -> None:
    """After 512 blanks in a row the model is stuck, in one piece or many, between fields or inside the answer."""
    space = " \n" * (run // 2) + "\t" * (run % 2)
    reply = HEAD + "x" + space + 'y"}' if inside else OK.replace(", ", f",{space}", 1)
    pieces = [reply[start : start + size] for start in range(0, len(reply), size)]
    for cut in ([reply], pieces):
        reading = reader()
        for piece in cut:
            reading.feed(piece)
        assert reading.stuck is (run > 512)


@pytest.mark.parametrize("cuts", [None, []], ids=["characters", "one piece"])
@pytest.mark.parametrize("length", [9, 10, 11, 400])
def test_no_more_is_shown_than_may_be(cuts: list[int] | None, length: int) -> None:
    """An answer that is too long is noticed, and at most `most_chars` characters of it are shown, however it comes."""
    reply = HEAD + "x" * length + '"}'
    assert len(shown(reply, cuts, most_chars=10)) <= 10
    reading = reader(most_chars=10)
    reading.feed(reply)
    assert reading.too_long is (length > 10)


def _characters(count: int) -> None:
    reading = reader(most_chars=10**9)
    for character in HEAD + "word [S1] and more " * (count // 19):
        reading.feed(character)


def _held(count: int) -> None:
    reading = reader()
    for character in '{"answer": "' + "word and more " * (count // 14):
        reading.feed(character)


def _escapes(count: int) -> None:
    reader(most_chars=10**9).feed(HEAD + '\\"\\n' * (count // 2) + '"}')


def _items(count: int) -> None:
    reader().feed('{"sources": [' + '"S1", ' * count + '"S1"]}')


def _bad_escape(count: int) -> None:
    reading = reader()
    for character in HEAD + "\\uZ" + "x" * count:
        reading.feed(character)


@pytest.mark.parametrize(
    "run, size",
    [(_characters, 2_000), (_held, 4_000), (_escapes, 6_000), (_items, 12_000), (_bad_escape, 6_000)],
    ids=["characters", "waiting for the verdict", "one piece of escapes", "one piece of items", "a bad escape"],
)
def test_the_cost_of_a_character_is_constant(run: Callable[[int], object], size: int) -> None:
    """Four times the reply takes about four times as long, however it is cut and whatever stands in it."""
    assert_linear(run, size)
