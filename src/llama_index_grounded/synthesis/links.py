"""Where a citation points: to the URL of our own table, never to one that a model or a document's text made up."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import slug
from llama_index_grounded.schema import SourceRef

__all__ = ["UrlFor", "check_url_for", "safe_url", "with_url"]

UrlFor = str | Callable[[SourceRef], str | None]

_SCHEMES = frozenset({"", "http", "https", "mailto"})
# Marks of direction show the parts of a URL in another order than the browser reads them.
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\\<>\"]")
_FIELDS = ("key", "node_id", "document_id", "chunk_id", "revision", "version", "section", "title", "page")
_SLUGS = ("section_slug", "title_slug")


def check_url_for(url_for: UrlFor | None) -> None:
    """Refuse a template that names a field that does not exist."""
    if url_for is None or callable(url_for):
        return
    if not isinstance(url_for, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError("url_for must be a template or a callable that takes a SourceRef")
    try:
        parsed = list(string.Formatter().parse(url_for))
    except ValueError as error:
        msg = f"url_for is no valid template: {error}"
        raise ConfigurationError(msg) from None
    if any(spec or conversion for _, _, spec, conversion in parsed):
        raise ConfigurationError("url_for takes plain fields such as {document_id}, without a format or a conversion")
    for name in (name for _, name, _, _ in parsed if name is not None):
        if name not in (*_FIELDS, *_SLUGS):
            msg = f"url_for names the unknown field {name!r}; known are {', '.join((*_FIELDS, *_SLUGS))}"
            raise ConfigurationError(msg)


def safe_url(url: str | None) -> str | None:
    """Return a URL that is http, https, mailto or relative, and None for any other.

    Example:
        >>> safe_url("/help/returns#window"), safe_url("javascript:alert(1)")
        ('/help/returns#window', None)
    """
    text = (url or "").strip().replace(" ", "%20")
    # Browsers drop tabs and line ends inside a URL and read "//host" and "/\\host" as another site.
    if not text or _UNSAFE.search(text) or text.startswith("//"):
        return None
    try:
        return text if urlsplit(text).scheme in _SCHEMES else None
    except ValueError:
        return None


def with_url(source: SourceRef, url_for: UrlFor | None) -> SourceRef:
    """Return the source with its checked URL: from ``url_for`` where given, else from its metadata."""
    if url_for is None:
        url = source.url
    elif isinstance(url_for, str):
        url = _fill(url_for, source)
    else:
        url = url_for(source)
        if not isinstance(url, (str, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"url_for must return a text or None, not {type(url).__name__}")
    return source.model_copy(update={"url": safe_url(url)})


def _fill(template: str, source: SourceRef) -> str:
    values = {name: quote(str(getattr(source, name) or ""), safe="") for name in _FIELDS}
    values |= {"section_slug": quote(slug(source.section or "")), "title_slug": quote(slug(source.title or ""))}
    # A source without a section must not link to an empty anchor.
    return template.format(**values).removesuffix("#")
