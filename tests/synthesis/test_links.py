"""A citation links to our own table: to a checked URL from metadata or `url_for`, never to one that a model wrote."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llama_index_grounded import Citation, CitingSynthesizer, GroundedResponse, SourceRef
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import slug
from llama_index_grounded.synthesis.links import UrlFor
from llama_index_grounded.testing import ScriptedLLM, make_nodes

OK = {"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}
TEMPLATE = "/help/{document_id}#{section_slug}"


def cite(metadata: dict[str, Any], url_for: UrlFor | None = None, answer: str = "Within 21 days [S1].") -> Citation:
    """Answer from one source with this metadata and return its citation."""
    synthesizer = CitingSynthesizer(ScriptedLLM([{**OK, "answer": answer}]), url_for=url_for)
    response = synthesizer.synthesize("How long?", make_nodes(["Within 21 days."], metadata=metadata))
    assert isinstance(response, GroundedResponse)
    (citation,) = response.citations
    (source,) = response.grounded.sources
    assert citation.url == source.url
    return citation


def is_safe(url: str) -> bool:
    """Tell whether a browser can only read it as http, https, mailto or a path on the same site."""
    parts = urlsplit(url)
    same_site = parts.scheme in ("http", "https", "mailto") or not parts.netloc
    plain = not any(ch in '\\<>"' or ch <= " " or "\x7f" <= ch <= "\xa0" for ch in url)
    return parts.scheme in ("", "http", "https", "mailto") and same_site and plain and not url.startswith("//")


@settings(max_examples=40)
@given(url=st.text(max_size=20) | st.from_regex(r"\s?(java\s?script|data|file|https?|//|/)[:/\\]{0,3}.{0,9}"))
@example(url="//evil.example")
@example(url="/\\evil.example")
@example(url="https://[broken")
def test_a_url_is_safe_or_none(url: str) -> None:
    """Whatever stands in the metadata, only a URL that can not run code or change sites silently comes out."""
    found = cite({"url": url}).url
    assert found is None or is_safe(found)


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/help#returns",
        "HTTP://shop.example",
        "mailto:help@shop.example",
        "/help/returns#return-window",
        "help/returns",
        "#return-window",
        "?page=2",
        "https://shop.example/iade?gün=21",
    ],
)
def test_a_harmless_url_stays_as_it_is(url: str) -> None:
    """http, https, mailto and relative URLs pass unchanged."""
    assert cite({"url": url}).url == url


@pytest.mark.parametrize(
    "url",
    [
        "/help\u202egnp.exe",
        "https://example.org/\u2066a",
        "javascript:alert(1)",
        " JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://shop.example",
        "//evil.example/x",
        "\\\\evil.example",
        '/x"onclick="y',
        "/x<script>",
        "",
        "   ",
        None,
        True,
        ["https://shop.example"],
    ],
)
def test_any_other_url_is_none(url: object) -> None:
    """Other schemes, foreign sites in disguise, quotes, tags, blanks and what is no text give no link."""
    assert cite({"url": url}).url is None


def test_without_a_url_there_is_no_link() -> None:
    """A source whose metadata names no URL is cited without one."""
    assert cite({"title": "Returns"}).url is None


def test_a_template_wins_over_the_metadata() -> None:
    """Where `url_for` is given, the URL in the metadata does not count."""
    metadata = {"document_id": "returns", "section": "Return window (21 days)", "url": "https://other.example"}
    assert cite(metadata, TEMPLATE).url == "/help/returns#return-window-21-days"


def test_a_template_knows_turkish_headings() -> None:
    """The slug of a section keeps Turkish letters, percent-encoded in the link."""
    url = cite({"document_id": "iade", "section": "İade Koşulları"}, TEMPLATE).url
    assert url is not None
    assert unquote(url) == "/help/iade#iade-koşulları"


def test_no_section_means_no_anchor() -> None:
    """A source without a section links to its page, not to an empty anchor."""
    assert cite({"document_id": "returns"}, TEMPLATE).url == "/help/returns"


@settings(max_examples=25)
@given(document=st.text(min_size=1, max_size=20).filter(str.strip), section=st.text(max_size=20))
@example(document="../../admin?x=1#y", section="a/b")
@example(document="javascript:alert(1)", section="<b>")
def test_a_value_can_not_leave_its_place_in_the_template(document: str, section: str) -> None:
    """Ids and headings are percent-encoded, so that they add no path, query, host or second anchor."""
    citation = cite({"document_id": document, "section": section}, TEMPLATE)
    assert citation.url is not None
    path, _, anchor = citation.url.partition("#")
    assert path.startswith("/help/")
    assert path.count("/") == 2
    assert "?" not in citation.url
    assert unquote(path.removeprefix("/help/")) == citation.document_id
    assert unquote(anchor) == slug(citation.section or "")


def test_every_field_of_a_source_can_stand_in_a_template() -> None:
    """Ids, key, revision, version, section, title, page and both slugs are known names."""
    names = ("key", "node_id", "document_id", "chunk_id", "revision", "version", "section", "title", "page")
    template = "/" + "/".join(f"{{{name}}}" for name in (*names, "section_slug", "title_slug"))
    metadata = {"document_id": "d", "chunk_id": "c", "revision": 3, "chunking_version": "v1"}
    metadata |= {"section": "Return window", "title": "Returns A", "page": 7}
    expected = "/S1/n0/d/c/3/v1/Return%20window/Returns%20A/7/return-window/returns-a"
    assert cite(metadata, template).url == expected


def test_a_callable_gets_the_source() -> None:
    """A callable sees the `SourceRef`, and may say that there is no link."""
    seen: list[SourceRef] = []

    def link(source: SourceRef) -> str | None:
        seen.append(source)
        return f"https://shop.example/{source.document_id}" if source.title else None

    assert cite({"document_id": "returns", "title": "Returns"}, link).url == "https://shop.example/returns"
    assert cite({"document_id": "returns", "url": "https://other.example"}, link).url is None
    assert seen[0].key == "S1"


def test_the_link_of_a_callable_is_checked_too() -> None:
    """What `url_for` returns passes the same check as metadata."""
    assert cite({}, lambda _: "/a\ud800").url is None
    assert cite({}, lambda source: f"javascript:open('{source.key}')").url is None


@pytest.mark.parametrize(
    "template",
    [
        "/{nope}",
        "/{document_id.__class__}",
        "/{document_id[0]}",
        "/{}",
        "/{0}",
        "/{document_id",
        "/{document_id:{nope}}",
    ],
)
def test_a_template_that_can_not_work_is_refused_at_once(template: str) -> None:
    """Unknown names, attribute access and broken braces fail at construction, not in front of a user."""
    with pytest.raises(ConfigurationError, match="url_for"):
        CitingSynthesizer(url_for=template)


@pytest.mark.parametrize(
    "words",
    ["See https://evil.example/x [S1].", "See [the page](https://evil.example/x) [S1].", "<https://evil.example> [S1]"],
)
def test_a_url_of_the_model_never_becomes_a_link_of_ours(words: str) -> None:
    """An address that the model writes stays text; the citation has the URL of its source."""
    citation = cite({"url": "/help/returns"}, answer=words)
    assert citation.url == "/help/returns"
