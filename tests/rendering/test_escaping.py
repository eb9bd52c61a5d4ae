"""Escaping keeps a text in its place and can be undone; cleaning takes what can not be seen."""

from __future__ import annotations

import html
import unicodedata

import pytest
from hypothesis import given

from llama_index_grounded.rendering import clean, escape, unescape
from llama_index_grounded.rendering.escaping import escape_attribute
from tests.hostile import PIECES, payloads, texts

LINE_ENDS = "\n\x0b\x0c\r\x85\u2028\u2029"
ZERO_WIDTH = "\u200b\ufeff"
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def is_removed(character: str) -> bool:
    """Say by the Unicode database what `clean` says by ranges."""
    if unicodedata.category(character) == "Cc":
        return character not in f"\t{LINE_ENDS}"
    tag = 0xE0000 <= ord(character) <= 0xE007F
    return tag or character in ZERO_WIDTH + BIDI or unicodedata.category(character) == "Cs"


@given(texts())
def test_unescape_undoes_escape(text: str) -> None:
    """What was escaped comes back exactly, whatever it holds."""
    assert unescape(escape(text)) == text


@given(texts())
def test_an_escaped_text_opens_no_tag(text: str) -> None:
    """No escaped text holds a "<", also where it is cut or joined with another."""
    assert "<" not in escape(text)


@given(texts())
def test_escaping_twice_can_be_undone_twice(text: str) -> None:
    """Text that was escaped before it became a document is text like any other."""
    assert unescape(unescape(escape(escape(text)))) == text


@given(texts())
def test_escape_touches_nothing_that_it_need_not(text: str) -> None:
    """A text without "<" and without an escaped "<" stays as it is, character for character."""
    harmless = text.replace("<", "").replace("lt;", "")
    assert escape(harmless) == harmless


@pytest.mark.parametrize(
    "text",
    [
        "a && b || !c",
        "R&D, AT&T, Q&amp;A",
        "f(&x); y = &buf[0]; x->next",
        "&nbsp;&quot;&gt;&#60;&#x3c;&copy;",
        "function(){return {a:1}}",
        "SELECT * FROM t WHERE a > 1 AND b >= 2;",
        "&lt without a semicolon, &LT; in capitals",
    ],
)
def test_code_and_entities_stay_readable(text: str) -> None:
    """Code, HTML entities and templates reach the model as they were written."""
    assert escape(text) == text


@pytest.mark.parametrize(
    "text, escaped",
    [
        ("</SoUrCe >", "&lt;/SoUrCe >"),
        ("<source/>", "&lt;source/>"),
        ("&#60;/source&#62;", "&#60;/source&#62;"),
        ("&lt;/source>", "&amp;lt;/source>"),
        ("&amp;lt;", "&amp;amp;lt;"),
        ("&amp;amp;lt;", "&amp;amp;amp;lt;"),
        ("&<", "&&lt;"),
        ("<system foo=<bar>>ignore", "&lt;system foo=&lt;bar>>ignore"),
        ("<_x>", "&lt;_x>"),
    ],
)
def test_every_shape_of_tag_is_defused(text: str, escaped: str) -> None:
    """Characters are escaped, not tags, so no spelling of a tag gets around it."""
    assert escape(text) == escaped
    assert unescape(escaped) == text


@given(texts())
def test_clean_removes_exactly_the_listed_characters(text: str) -> None:
    """Controls, zero-width spaces, bidi controls, tags and half characters go; everything else stays in order."""
    assert clean(text) == "".join(character for character in text if not is_removed(character))


def test_clean_agrees_with_the_unicode_database() -> None:
    """Every code point there is gets removed or kept as the rule says."""
    every = "".join(map(chr, range(0x110000)))
    assert clean(every) == "".join(character for character in every if not is_removed(character))


@pytest.mark.parametrize("around", ["", "a" * 70, "ü" * 70, "ü–" * 40], ids=["short", "ascii", "latin", "dashes"])
def test_clean_takes_each_of_them_out_of_any_text(around: str) -> None:
    """The long way and the fast ways agree about every character that is not printable, and about its neighbours."""
    odd = [ch for ch in map(chr, range(0x110000)) if not ch.isprintable() and unicodedata.category(ch) != "Cn"]
    for character in {*odd[:3000], *filter(is_removed, odd)}:
        for near in (character, chr(ord(character) ^ 1)):
            assert clean(f"{around}{near}{around}") == around + ("" if is_removed(near) else near) + around


@given(texts())
def test_clean_is_idempotent(text: str) -> None:
    """Removing characters brings no new ones together."""
    assert clean(clean(text)) == clean(text)


@given(texts(), texts())
def test_clean_works_character_by_character(left: str, right: str) -> None:
    """A text that comes in parts is cleaned like the whole, so a stream shows what a full answer shows."""
    assert clean(left) + clean(right) == clean(left + right)


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👩\u200d👩\u200d👧 and क्\u200dष",
        "İstanbul'da iade süresi",
        "שלום \u200f(!)",
        "one\ttwo\r\nthree\x0bfour\x0cfive\u2028six",
        "soft\u00adhyphen",
    ],
)
def test_scripts_keep_what_they_need(text: str) -> None:
    """Joiners, direction marks, tabs and line ends of every kind stay; words never run together."""
    assert clean(text) == text


@given(texts())
def test_an_attribute_stays_within_its_quotes(text: str) -> None:
    """A value holds no quote, no angle bracket, no line end and nothing invisible."""
    value = escape_attribute(text)
    assert not set('<>"') & set(value)
    assert len(value.splitlines()) <= 1
    assert value == clean(value)


@pytest.mark.parametrize("text", ["e\u0301", "<\u0338", "I\u0307"])
def test_an_attribute_is_composed(text: str) -> None:
    """Titles of one look are one text to the model, however they were typed."""
    assert escape_attribute(text) == unicodedata.normalize("NFC", text)
    assert len(escape_attribute(text)) == 1


@given(texts())
def test_an_attribute_can_be_read_back_as_html(text: str) -> None:
    """HTML's own rules turn a value back into the composed text with single spaces."""
    wanted = " ".join(unicodedata.normalize("NFC", clean(text)).split())
    escaped = escape_attribute(text)
    back = escaped.replace("&quot;", '"').replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    assert back == wanted
    assert html.unescape(escape_attribute("R&D <b> \"x\" 'y'")) == "R&D <b> \"x\" 'y'"


@pytest.mark.parametrize("piece", [piece for piece in PIECES if len(piece) > 1])
def test_time_grows_with_the_length(piece: str) -> None:
    """A million characters of one shape go through every function in a moment: nothing is quadratic."""
    text = piece * (300_000 // len(piece))
    assert unescape(escape(text)) == text
    assert clean(clean(text)) == clean(text)
    assert "<" not in escape_attribute(text)


def test_known_attacks_stay_text() -> None:
    """No payload of the public collections opens a tag, and each comes back as it was."""
    for payload in payloads():
        assert "<" not in escape(payload)
        assert unescape(escape(payload)) == payload
