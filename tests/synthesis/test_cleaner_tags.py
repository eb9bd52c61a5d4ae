"""Source tags that leak into an answer."""

from __future__ import annotations

import pytest

from llama_index_grounded.synthesis.cleaner import AnswerCleaner, clean_answer

KEYS = ["S1", "S2"]


def text_of(text: str) -> str:
    """Return the cleaned text alone."""
    return clean_answer(text, KEYS).text


@pytest.mark.parametrize(
    "tag",
    [
        "<source>",
        "</source>",
        "</SoUrCe >",
        "</ SOURCE >",
        "< source >",
        "<source/>",
        '<source id="S1"/>',
        '<source id="S1" title="a > b">',
        "<source id='S1' title='say \"x\" > y'>",
        '<source id="S1" title="1 < 2 <b>">',
        "<source id=S1>",
        "<source S1>",
        '<source\n  id="S1"\n>',
        "<sources>",
        '\x3ccite index="1-17,2">',
        "</cite>",
        '&lt;source id="S1"/&gt;',
        "<sou<source>rce>",
        "<sou<sou<source>rce>rce>",
        "<sou[S9]rce>",
        "<source [S9]>",
        "</source",
        '<source id="S1" title="x"',
    ],
)
def test_removed(tag: str) -> None:
    """What is shaped like one of our tags goes, whole or cut, and pieces that would join go too."""
    assert text_of(f"Books{tag}, and more") == "Books, and more"


@pytest.mark.parametrize(
    "text",
    [
        "see <source of the Nile",
        "see <source of the Nile>",
        "a < s and b <s",
        "x <",
        "i <c",
        "if a </ 2",
        "<sourcery> <source-map> <source_t> <sauce> </sourced>",
        "<br> <b>x</b> <svg/>",
        "<system foo=<bar>>ignore",
        "source > target",
        "Source: the report. Section 3.",
        "ce>x",
    ],
)
def test_stays(text: str) -> None:
    """Prose, mathematics and other markup are no tags of ours."""
    assert text_of(text) == text


@pytest.mark.parametrize(
    "cut", ["</", "<so", "<source", "</sour", "<source id=", '<source id="S', "<ci", "< /", "<so<so"]
)
def test_cut_at_the_end(cut: str) -> None:
    """At the end of the answer the beginning of a tag goes."""
    assert text_of(f"x {cut}") == "x "


@pytest.mark.parametrize(
    "tail",
    [
        "source>",
        "/source>",
        "ource>",
        "rce>",
        'source id="S1">',
        'id="S1" title="x">',
        "cite>",
        "source>source>",
        "<source>rce>",
    ],
)
def test_cut_at_the_start(tail: str) -> None:
    """At the start of the answer the tail of a tag goes."""
    assert text_of(f"{tail}Books") == "Books"
    assert text_of(f"Books {tail}").startswith("Books ")


def test_what_is_no_tail_is_read_as_text() -> None:
    """A start that only looked like the tail of a tag is searched for markers."""
    assert text_of('id="[S9]"<b>x</b>') == 'id=""<b>x</b>'


@pytest.mark.parametrize(
    "text, left",
    [
        ('<source id="S1" Books may be returned', "Books may be returned"),
        ('<source id="S1 Books may be returned', "Books may be returned"),
        ('<source id="S1" title="Return\nBooks may', "Return\nBooks may"),
        ("</source of truth", " of truth"),
    ],
)
def test_a_cut_tag_leaves_the_prose(text: str, left: str) -> None:
    """A tag that never ends takes no prose with it."""
    assert text_of(text) == left


@pytest.mark.parametrize(
    "text, left",
    [
        ('a\n<source id="S1">\nb\n</source>\nc', "a\nb\nc"),
        ("a\r\n  <source>  \r\nb", "a\r\nb"),
        ("<source>\na", "a"),
        ("<source> <source>\na", "a"),
        ("a <source>\nb", "a \nb"),
    ],
)
def test_line_of_its_own(text: str, left: str) -> None:
    """A tag that stands alone on its line takes the line with it."""
    assert text_of(text) == left


@pytest.mark.parametrize(
    "text, left",
    [
        ('`<source src="a.mp4">`', '`<source src="a.mp4">`'),
        ("`</source>` is a tag", "`</source>` is a tag"),
        ('```html\n<source src="a.mp4">\n</source>\n```', '```html\n<source src="a.mp4">\n</source>\n```'),
        ('```\n<source id="S12">\nls\n```', "```\nls\n```"),
        ('`a <source id="S1" title="t">b`', "`a b`"),
        ('`<source id="main">`', '`<source id="main">`'),
        ("`<source> never closed", "` never closed"),
        ("[`<source>`](http://x)", "[`<source>`](http://x)"),
    ],
)
def test_code(text: str, left: str) -> None:
    """In code tags stay, for a reader may have asked about them; the shape of our own prompt does not."""
    assert text_of(text) == left


def test_removal_does_not_join_code() -> None:
    """Where two code spans would grow together, one space stays."""
    assert text_of("`a`<source>`b`[S9]`c`") == "`a` `b` `c`"


@pytest.mark.parametrize("size", range(6000, 11_000, 500))
def test_pieces_join_late_in_a_long_answer(size: int) -> None:
    """What was shown long ago may be forgotten, what a removal joins may not."""
    cleaner = AnswerCleaner(KEYS)
    assert cleaner.feed("x" * size + "<sou<sou") == "x" * size
    assert cleaner.feed("rce>rce>[S9]") + cleaner.finish() == ""
    assert cleaner.unknown == ("S9",)


def test_stream_waits_for_the_tag() -> None:
    """A tag is never shown in part."""
    cleaner = AnswerCleaner(KEYS)
    assert [cleaner.feed(piece) for piece in ["Yes <", "sour", 'ce id="S1', '"> no']] == ["Yes", "", "", "  no"]
