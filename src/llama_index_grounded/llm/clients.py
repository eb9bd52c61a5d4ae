"""The connections of one call, for the two kinds of client whose handling decides whether a deadline and a stop hold.

LlamaIndex keeps clients in private attributes and has no public place for them; all that touches these stands here.
"""
# ruff: noqa: SLF001

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import AsyncGenerator, Generator
from types import SimpleNamespace
from typing import Any

__all__ = ["limit_ollama", "own_ollama", "own_openai", "watch_openai"]


def limit_ollama(llm: Any, own: Any, seconds: float | None) -> None:
    """Use the LLM's own connections, but wait for no longer than the deadline allows."""
    own._client = copy.copy(llm.client)
    if seconds is not None and (llm.request_timeout is None or seconds < llm.request_timeout):
        # The copy shares the pool of connections; only its time limit is its own.
        own._client._client = copy.copy(own._client._client)
        own._client._client.timeout = seconds


@contextlib.contextmanager
def watch_openai(llm: Any, own: Any, seconds: float | None) -> Generator[None, None, None]:
    """Give a copy of the LLM a client that remembers its streams, and close them in the end.

    With a deadline the client repeats no failed request by itself: each repetition would take the whole time again.
    """
    client = llm._get_client()
    watched = _Watched(client if seconds is None else client.with_options(max_retries=0))
    own.reuse_client = True
    own._client = watched
    try:
        yield
    finally:
        watched.release()


class _Watched:
    """An OpenAI client whose streams can be closed; openai's own end with the garbage collector."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._streams: list[Any] = []
        self.chat = SimpleNamespace(completions=self._remembering(client.chat.completions))
        self.completions = self._remembering(client.completions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _remembering(self, resource: Any) -> Any:
        def create(**options: Any) -> Any:
            reply = resource.create(**options)
            self._streams.append(reply)
            return reply

        return SimpleNamespace(create=create)

    def release(self) -> None:
        """Close what is still open."""
        for stream in self._streams:
            close = getattr(stream, "close", None)
            if close is not None:
                close()


@contextlib.asynccontextmanager
async def own_ollama(llm: Any, own: Any) -> AsyncGenerator[None, None]:
    """Give one call an async client of its own: a client can not serve several event loops.

    A client that the user made, with a transport or credentials of its own, is used as it is.
    """
    inner = getattr(llm._async_client, "_client", None)
    if inner is not None and (type(inner._transport).__name__ != "AsyncHTTPTransport" or inner.auth is not None):
        yield
        return
    from ollama import AsyncClient

    timeout, headers = llm.request_timeout, llm.headers or {}
    own._async_client = AsyncClient(host=llm.base_url, timeout=timeout, headers=headers, verify=_certificates())
    try:
        yield
    finally:
        await own._async_client.close()


@contextlib.asynccontextmanager
async def own_openai(llm: Any, own: Any) -> AsyncGenerator[None, None]:
    """Give one call an async client of its own, with the settings of the LLM's; see `own_ollama`."""
    given = llm._aclient
    if llm._async_http_client is not None or type(getattr(given, "_client", None)).__name__ not in _PLAIN:
        yield
        return
    from openai import DefaultAsyncHttpxClient

    own.reuse_client = True
    http_client = DefaultAsyncHttpxClient(verify=_certificates())
    if given is None:
        # The LLM's own way to make its client, Azure's too, but with our connections.
        own._aclient, own._async_http_client = None, http_client
        own._aclient = own._get_aclient()
    else:
        own._aclient = given.copy(http_client=http_client)
    try:
        yield
    finally:
        await own._aclient.close()


_PLAIN = ("AsyncHttpxClientWrapper", "NoneType")


@functools.cache
def _certificates() -> Any:
    """Read the certificates once: a client that does it for itself takes some 60 ms of the event loop."""
    import httpx

    return httpx.create_ssl_context()
