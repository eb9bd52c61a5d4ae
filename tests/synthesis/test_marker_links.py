"""No marker is a link of the model's: what stands behind it to make one goes, or is kept apart."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llama_index_grounded.synthesis.cleaner import AnswerCleaner, clean_answer
from llama_index_grounded.synthesis.lookahead import LIMIT
from tests.synthesis.cleaner_cases import FRAMES, KEYS, MARKDOWN, MARKERS, TAGS, clean_in_pieces, mixtures
from tests.timing import assert_linear

LINKS = (
    "[S1]",
    "[S9]",
    "[[S1]]",
    "[S2, S9]",
    "【S1】",
    "\n[S1]: ",
    "\n[S9]:",
    "\n> - [S2]:\n",
    "\n[ſ1]: ",
    "\n[S1 AND S2]",
    "[S1 and S2]",
    "[S1 | Document: R]",
    "(http://e.example/x)",
    "(/p 't')",
    "(<http://e>",
    "http://e",
    "//e/x",
    "<http://e>",
    "www.e",
    "(\n",
    " \n",
    '"t"',
    "'t'",
    ' "t',
    "(as of",
    ": ",
    ":",
    "[note]",
    "[",
    "]",
    "(",
    ")",
    "\\",
    "!",
    "<source>",
    "<sou",
    "rce>",
    '<source id="S1"',
    " ",
    "\n",
    "\n\n",
    "a",
)
every = mixtures(LINKS, LINKS, TAGS, MARKERS, FRAMES, MARKDOWN)
# Neither code nor mathematics, in which brackets are text.
plain = mixtures([fragment for fragment in LINKS if fragment != "\\"], size=10)
cuts = st.lists(st.integers(0, 60), max_size=6)

_ITEM = r"[Ss\u017f]\s*[0-9]+"
_NAME = rf"\[\s*{_ITEM}(?:\s*(?:[-,;&]|and|ve)\s*{_ITEM})*\s*\]"
# What Markdown reads as a link behind a marker, as somebody else would look for it.
A_TARGET = re.compile(
    rf"(?<!!){_NAME}\(\s*(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
A_REFERENCE = re.compile(rf"(?<!!){_NAME}\[(?!\s*[Ss][0-9])[^\[\]]*\]")
A_DEFINITION = re.compile(
    rf"^[ >]*(?:[-*+] )?\s*{_NAME}:[ \t]*\n?[ \t]*(?:<[^<>\n]*>|[^\s<]\S*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)


@given(plain)
@example("[S1](http://e)(http://e)")
@example("[S1]<sou<source>rce>(http://e)")
@example("[S1][S9](http://e)(http://e)")
@example("[S1] [S9](http://e)")
@example("[S9][S1]: http://e")
@example("[S1]: ht [S9]tp://e")
@example("[S1]: <source>http://e")
@example("[S1]:\n<source>\nhttp://e")
@example("[S1](a <source>'t')")
@example("[S1](\nhttp://e\n't'\n)")
@example("[S1][n[S9]ote]")
@example("[S1][<source>note]")
@example("[[S1]<sou<source>rce>](http://e)")
@example("](u)[[S1]]<source>(http://e)")
@example("[ſ<source>1]: http://e")
@example("[S1 AND S2]<source>: http://e")
def test_no_marker_is_a_link_of_the_model(text: str) -> None:
    """Outside of images, no marker is followed by a target or by brackets that name one, and no line defines one."""
    cleaned = clean_answer(text, KEYS, escapes="none").text
    assert not A_TARGET.search(cleaned)
    assert not A_DEFINITION.search(cleaned)
    assert not A_REFERENCE.search(cleaned)


@given(every, cuts, st.booleans())
@example("[S1](http://e", [7], True)
@example("[S1]: http://e\n", [13], True)
@example('[S1](\\"a "', [6], True)
def test_cuts_do_not_matter(text: str, cuts: list[int], inline: bool) -> None:
    """Text, keys and unknown ids are the same for the whole answer, for single characters and for any pieces."""
    whole = clean_answer(text, KEYS, inline_citations=inline)
    assert clean_in_pieces(text, range(1, len(text)), inline_citations=inline) == whole
    assert clean_in_pieces(text, [cut for cut in cuts if cut < len(text)], inline_citations=inline) == whole


@given(every, st.booleans())
@example("[S1](u <source>'t')", True)
@example("[[S1]<sou<source>rce>](u)", True)
@example("[[S9]<sou<source>rce>](u)", True)
@example("[[S9]]<source>(u)", True)
@example("[a [S9]<source>(u) b](v)", True)
@example("[a [S9](u) b](v)", False)
@example("[x](a/[S1](b", True)
@example("[see [S1]][S9](v)(w)", True)
def test_nothing_is_left_to_remove(text: str, inline: bool) -> None:
    """A second cleaning changes nothing and finds no unknown id."""
    first = clean_answer(text, KEYS, inline_citations=inline, escapes="none")
    second = clean_answer(first.text, KEYS, inline_citations=inline, escapes="none")
    assert (second.text, second.unknown) == (first.text, ())
    assert inline or not second.keys


@given(st.sampled_from(["[S1]", "[S9]", "[S1, S9]", "[[S1]]", "[[S9]]", "【S2】", "[S1 | Document: R]"]), st.booleans())
def test_the_marker_is_judged_as_if_it_stood_alone(marker: str, inline: bool) -> None:
    """What is behind a marker to make a link of it changes neither what stays nor what is counted."""
    alone = clean_answer(f"x {marker} y", KEYS, inline_citations=inline)
    for target in ("(http://e)", "()", "(</p> 't')", '(\nhttp://e "t"\n)', "(/a(b(c))\\))", "(u)(v)"):
        assert clean_answer(f"x {marker}{target} y", KEYS, inline_citations=inline) == alone


class TestTargets:
    """Links whose text is a marker."""

    @pytest.mark.parametrize(
        "text, left",
        [
            ("21 days [S1](http://evil.example/x).", "21 days [S1]."),
            ("21 days [S9](http://evil.example/x).", "21 days."),
            ("[S1](http://e)[S2](/p), [S3](mailto:a@b)", "[S1][S2], [S3]"),
            ("[S1](javascript:alert(1))", "[S1]"),
            ("a \\![S1](http://e)", "a \\![S1]"),
            ("[see [S1](u) here](v)", "[see [S1] here](v)"),
        ],
    )
    def test_the_target_goes(self, text: str, left: str) -> None:
        """Of the link its marker is left, if that stays."""
        assert clean_answer(text, KEYS).text == left

    @pytest.mark.parametrize(
        "text",
        ["[see [S1]](u)", "[x](http://a/[S1](b))", "![S1](x.png)", "![[S1]](x.png)", "`[S1](u)`", "$[S1](u)$"],
    )
    def test_links_around_and_images_stay(self, text: str) -> None:
        """In a longer text, in a target, in an image, in code and in mathematics a marker is plain text as before."""
        cleaned = clean_answer(text, KEYS)
        assert (cleaned.text, cleaned.keys) == (text, ())

    @pytest.mark.parametrize(
        "behind",
        [
            "(http://e as of)",
            '(http://e "a\nb")',
            "(((((((u)))))))",
            "(http://e",
            f"(http://e/{'x' * LIMIT})",
            "(u\n\n)",
        ],
    )
    def test_what_may_be_a_target_is_kept_apart(self, behind: str) -> None:
        """Where readers of Markdown differ, or a look ends, a space stands between, and nothing is lost."""
        cleaned = clean_answer(f"[S1]{behind}", KEYS)
        assert (cleaned.text, cleaned.keys) == (f"[S1] {behind}", ("S1",))

    def test_prose_stays(self) -> None:
        """Words in parentheses are no target."""
        text = "[S1](as of 2024), [S2](see\nbelow)"
        assert clean_answer(text, KEYS).text == text

    def test_brackets_behind_are_kept_apart(self) -> None:
        """Whether a name is defined somewhere can't be known while the answer comes: a space tells it from a link."""
        assert clean_answer("[S1][note] [S1][S2] [S1][]", KEYS).text == "[S1] [note] [S1][S2] [S1] []"


class TestDefinitions:
    """Lines that give a marker a target."""

    @pytest.mark.parametrize(
        "line",
        [
            "[S1]: http://e",
            '   [S1]:   <http://e>  "t"  ',
            "[S1]:/p#a (t)",
            "[S1]: www.e.example",
            "[S1]:\n  mailto:a@b",
            '[S1]: http://e\n"t"',
            "[ s1 ]: //e",
            "> [S1]: http://e",
            "1. - [S1, S2]: http://e",
            "\u00a0[S1]: http://e",
            "[ſ1]: http://e",
            "[S1  -  S2]: http://e",
        ],
    )
    def test_the_definition_goes(self, line: str) -> None:
        """Only its name is left of the line, whatever white space, quote or list it stands in."""
        text = clean_answer(f"see [S1].\n\n{line}\n\nx", KEYS).text
        assert text.startswith("see [S1].\n\n")
        assert text.endswith("\n\nx")
        assert not re.search(r"]:|http|//|mailto|www|/p", text)

    def test_the_line_of_an_unknown_marker_goes(self) -> None:
        """Nothing is left of a definition of an unknown marker, which is listed."""
        cleaned = clean_answer("a [S1]\n\n[S9]: http://e\n", KEYS)
        assert (cleaned.text, cleaned.unknown) == ("a [S1]\n\n\n", ("S9",))

    @pytest.mark.parametrize(
        "text",
        [
            "[S1]: Books can be returned.",
            "[S1]: Note: maps.",
            "[S1]: https://e says so",
            "[S1]:\n\nBooks",
            "[S1]:",
            "a [S1]: http://e",
            "`[S1]: http://e`",
            "```\n[S1]: http://e\n```",
            "[S] [SS] [and] [12]",
        ],
    )
    def test_prose_stays(self, text: str) -> None:
        """A colon behind a marker is one of prose where words or nothing follow."""
        assert clean_answer(text, KEYS).text == text

    @pytest.mark.parametrize("rest", ["Yes.", "Maps (two)", 'http://e "t" or', "<b>x</b>", '/a "b\nc"'])
    def test_what_may_be_a_definition_is_kept_apart(self, rest: str) -> None:
        """A line that Markdown would hide but that has no address, or may be prose, loses nothing: a space parts it."""
        assert clean_answer(f"[S1]: {rest}", KEYS).text == f"[S1] : {rest}"


def feed_characters(text: str) -> None:
    """Clean a text that arrives character by character."""
    cleaner = AnswerCleaner(KEYS)
    for character in text:
        cleaner.feed(character)
    cleaner.finish()


HOSTILE = [
    "[S1](",
    "[S1](u)",
    "(u)",
    "[S1](a\\",
    "[S1]((a",
    "[S1](a 'b",
    "[S1]( ",
    "\n[S1]: ",
    "\n[S1]: /a",
    "\n[S1]: /a '",
    "\n[S1]:\n",
    "\n[S1]:" + " " * 40,
    "\n[s 1, ",
    "\n>>>> - [S1]",
    "![S1](u)",
    "[[S1]](u)",
    "[S1][a]",
    "[S1][<",
    "[S1]<sou",
    "[S1] [S9]",
    "\\![S1]",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_whole_answers(part: str) -> None:
    """Four times the characters of anything take about four times as long."""
    assert_linear(lambda size: clean_answer("[S1]" + part * (size // len(part)), KEYS), 5_000)


@pytest.mark.parametrize("part", HOSTILE)
def test_single_characters(part: str) -> None:
    """Four times the characters, one by one, take about four times as long."""
    assert_linear(lambda size: feed_characters("[S1]" + part * (size // len(part))), 1_000)


@pytest.mark.parametrize(
    "begun", ["[S1](", "[S1](a", "[S1](a '", "[S1](<a", "\n[S1]:", "\n[S1]: /a", "\n[S1]: /a '", "\n[S1", "[S1](\\"]
)
@pytest.mark.parametrize("filler", [" ", "a", "1", "\\"])
def test_one_that_never_ends(begun: str, filler: str) -> None:
    """What never closes takes linear time and holds back no more than other shapes."""
    assert_linear(lambda size: feed_characters(begun + filler * size), 1_000)
    cleaner = AnswerCleaner(KEYS)
    for _ in range(60):
        # A letter, since a backslash in front of a bracket would open mathematics.
        cleaner.feed("x" + begun + filler * 97 + "x")
        assert len(copy.deepcopy(cleaner).finish()) <= 4 * LIMIT
