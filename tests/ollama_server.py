"""A small HTTP server on the loopback that speaks Ollama's wire protocol and plays scripted replies."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

import pytest
from typing_extensions import Self

from tests import ollama_wire as wire
from tests.ollama_wire import Json, Reply

__all__ = ["OllamaServer", "Reply", "Request", "ollama_server"]

Scripted = Reply | str | Mapping[str, object]


class Request(NamedTuple):
    """One request that the server received."""

    path: str
    body: Json


class OllamaServer:
    """Stands in for Ollama: chat, embed, show, tags and version, in a thread of its own.

    Replies are played in order and the last one repeats. A client that leaves before the end of its answer is
    seen between two chunks, so a stream that shall be closed early needs a ``pause``.

    Args:
        replies: Answers of ``/api/chat``: a text, a mapping that becomes JSON text, or a `Reply`.
        chunk_size: Characters per chunk of a stream.
        models: Installed models; any other is answered as Ollama does, with 404.
        context_length: Context window in tokens that ``/api/show`` tells.
        embed_dim: Number of components of the vectors of ``/api/embed``.
        truncates: Report about half of ``num_ctx`` for a prompt that is longer, as Ollama silently does.
        keep_alive: Keep connections open between requests, as Ollama does; tests must then close clients.

    Example:
        with OllamaServer("Hello.") as server:
            Ollama(model="gemma3:4b", base_url=server.url).complete("Hi")
    """

    def __init__(
        self,
        *replies: Scripted,
        chunk_size: int = 8,
        models: Sequence[str] = ("gemma3:4b", "nomic-embed-text"),
        context_length: int = 8192,
        embed_dim: int = 64,
        truncates: bool = False,
        keep_alive: bool = False,
    ) -> None:
        self.chunk_size = chunk_size
        self.models = list(models)
        self.context_length = context_length
        self.embed_dim = embed_dim
        self.truncates = truncates
        self.keep_alive = keep_alive
        self.failures: dict[str, tuple[int, str]] = {}
        self.requests: list[Request] = []
        self.closed = 0
        self.faults: list[BaseException] = []
        self._changed = threading.Condition()
        self.script(*replies or ("ok",))
        self._http = _HttpServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def chats(self) -> list[Json]:
        """The bodies of the requests to ``/api/chat``, in order."""
        return [request.body for request in self.requests if request.path == "/api/chat"]

    def script(self, *replies: Scripted) -> None:
        """Play these replies from now on."""
        with self._changed:
            self._replies = [wire.as_reply(reply) for reply in replies]

    def fail(self, path: str, status: int, error: str) -> None:
        """Answer each request to a path with an HTTP error; ``/api/chat`` can also be scripted."""
        self.failures[path] = (status, error)

    def wait_closed(self, count: int = 1, seconds: float = 10.0) -> bool:
        """Wait until so many clients have left before the end of their answer; tell whether they did."""
        with self._changed:
            return self._changed.wait_for(lambda: self.closed >= count, seconds)

    def wait_requests(self, count: int = 1, seconds: float = 10.0) -> bool:
        """Wait until so many requests have arrived; tell whether they did."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, seconds)

    def take(self, path: str, body: Json) -> Reply:
        """Note a request; for a chat, return the reply that is next."""
        with self._changed:
            self.requests.append(Request(path, body))
            self._changed.notify_all()
            if path != "/api/chat" or len(self._replies) == 1:
                return self._replies[0]
            return self._replies.pop(0)

    def note_closed(self) -> None:
        """Count a client that left early."""
        with self._changed:
            self.closed += 1
            self._changed.notify_all()

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cut what is open, stop, and report what went wrong inside the server."""
        self._http.shutdown()
        self._http.cut_all()
        self._http.server_close()
        self._thread.join()
        if self.faults and error is None:
            raise self.faults[0]


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    """A running server that answers "ok" until the test scripts it."""
    with OllamaServer() as server:
        yield server


class _HttpServer(ThreadingHTTPServer):
    # Threads are joined at the end, so that none outlives its test.
    daemon_threads = False

    def __init__(self, owner: OllamaServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        for connection in list(self._open):
            _cut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, ConnectionError):
            self.owner.faults.append(error)


class _ClientGoneError(Exception):
    """The client closed its side before the answer was complete."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def owner(self) -> OllamaServer:
        assert isinstance(self.server, _HttpServer)
        return self.server.owner

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing: the tests read the list of requests."""

    def do_GET(self) -> None:
        self._answer({"/api/tags": self._tags, "/api/version": self._version}, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self._answer({"/api/chat": self._chat, "/api/embed": self._embed, "/api/show": self._show}, body)

    def _answer(self, routes: dict[str, Callable[[Json, Reply], None]], body: Json) -> None:
        owner = self.owner
        reply = owner.take(self.path, body)
        model = body.get("model")
        try:
            if self.path in owner.failures:
                status, error = owner.failures[self.path]
                self._send(status, {"error": error})
            elif self.path not in routes:
                self._send(404, {"error": f"no such path: {self.path}"})
            elif model is not None and wire.full_name(model) not in map(wire.full_name, owner.models):
                self._send(404, {"error": f"model '{model}' not found"})
            else:
                routes[self.path](body, reply)
        except (_ClientGoneError, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            owner.note_closed()

    def _tags(self, body: Json, reply: Reply) -> None:
        self._send(200, wire.tags_object(self.owner.models))

    def _version(self, body: Json, reply: Reply) -> None:
        self._send(200, {"version": "0.13.0"})

    def _show(self, body: Json, reply: Reply) -> None:
        self._send(200, wire.show_object(self.owner.context_length))

    def _embed(self, body: Json, reply: Reply) -> None:
        self._send(200, wire.embed_object(body, self.owner.embed_dim))

    def _chat(self, body: Json, reply: Reply) -> None:
        self._wait(reply.delay)
        truncates = self.owner.truncates
        too_long = truncates and wire.prompt_tokens(body) > wire.num_ctx(body)
        if reply.status >= 400:
            self._send(reply.status, {"error": reply.error} if reply.error else reply.text)
        elif too_long and body.get("truncate") is False:
            self._send(400, {"error": "the input length exceeds the context length"})
        else:
            count = wire.kept_tokens(body) if truncates else wire.prompt_tokens(body)
            send = self._stream if body.get("stream", True) else self._whole
            send(body, reply, count)

    def _whole(self, body: Json, reply: Reply, prompt_count: int) -> None:
        if reply.drop_after is not None:
            self._drop()
        elif reply.error:
            self._send(500, {"error": reply.error})
        else:
            self._send(200, wire.chat_object(body, reply, prompt_count))

    def _stream(self, body: Json, reply: Reply, prompt_count: int) -> None:
        if reply.drop_after == 0 and not reply.error:
            self._drop()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self._end_headers()
        for number, chunk in enumerate(wire.chat_chunks(body, reply, self.owner.chunk_size, prompt_count)):
            self._wait(reply.pause)
            if reply.error and (chunk["done"] or number == reply.drop_after):
                self._write_chunk({"error": reply.error})
                break
            if number == reply.drop_after:
                self._drop()
                return
            self._write_chunk(chunk)
        self.wfile.write(b"0\r\n\r\n")

    def _write_chunk(self, chunk: Json) -> None:
        line = json.dumps(chunk, ensure_ascii=False).encode() + b"\n"
        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))

    def _send(self, status: int, payload: Json | str) -> None:
        data = (payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(payload, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self._end_headers()
        self.wfile.write(data)

    def _end_headers(self) -> None:
        if not self.owner.keep_alive:
            # The base class reads this header back and closes after the answer.
            self.send_header("Connection", "close")
        self.end_headers()

    def _wait(self, seconds: float) -> None:
        """Wait, and stop early when the client goes away: its socket becomes readable and holds nothing."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise _ClientGoneError

    def _drop(self) -> None:
        self.close_connection = True
        _cut(self.connection)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The other side was faster.
        return
