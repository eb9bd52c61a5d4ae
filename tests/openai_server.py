"""A small HTTP server on the loopback that speaks OpenAI's chat protocol and plays scripted replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests import ollama_wire as wire
from tests.ollama_server import OllamaServer, Request, _cut, _Handler
from tests.ollama_wire import Json

__all__ = ["OpenAIReply", "OpenAIServer"]

_CHAT, _TEXT = "/v1/chat/completions", "/v1/completions"
_HEAD = {"id": "reply-1", "created": 1_772_000_000}


@dataclass(frozen=True, kw_only=True)
class OpenAIReply(wire.Reply):
    """One scripted answer. What it shares with `ollama_wire.Reply` means the same; thinking is ``reasoning_content``.

    Args:
        call: Arguments of a function call, a mapping or the JSON text as the model writes it; None for plain content.
        call_name: The function; by default the first that the request offers.
        calls: How many calls with these arguments.
    """

    call: str | Mapping[str, object] | None = None
    call_name: str | None = None
    calls: int = 1

    @property
    def arguments(self) -> str | None:
        """The arguments as JSON text."""
        return self.call if self.call is None or isinstance(self.call, str) else json.dumps(self.call)


Scripted = wire.Reply | str | Mapping[str, object]


class OpenAIServer(OllamaServer):
    """Stands in for OpenAI and the servers that speak its protocol: chat and plain completions, whole or streamed.

    Scripting, delays, drops and the notice of clients that leave are those of `OllamaServer`. Usage is streamed in
    a last chunk of its own, and only to who asks with ``stream_options``.

    Args:
        replies: Answers: a text, a mapping that becomes JSON text, or an `OpenAIReply`.
        chunk_size: Characters per chunk of a stream, of content and of a call's arguments.
        keep_alive: Keep connections open between requests; tests must then close clients.

    Example:
        with OpenAIServer("Hello.") as server:
            OpenAILike(model="m", api_base=server.base, api_key="k", is_chat_model=True).complete("Hi")
    """

    def __init__(self, *replies: Scripted, chunk_size: int = 8, keep_alive: bool = False) -> None:
        super().__init__(*replies, chunk_size=chunk_size, models=(), keep_alive=keep_alive)
        self._http.RequestHandlerClass = _OpenAIHandler

    @property
    def base(self) -> str:
        """What LlamaIndex calls ``api_base``."""
        return f"{self.url}/v1"

    @property
    def chats(self) -> list[Json]:
        """The bodies of all requests for an answer, in order."""
        return [request.body for request in self.requests if request.path in (_CHAT, _TEXT)]

    def take(self, path: str, body: Json) -> wire.Reply:
        """Note a request and return the reply that is next."""
        with self._changed:
            self.requests.append(Request(path, body))
            self._changed.notify_all()
            return self._replies[0] if len(self._replies) == 1 else self._replies.pop(0)


class _OpenAIHandler(_Handler):
    def do_POST(self) -> None:  # noqa: N802 - http.server calls it by this name
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self._model = str(body["model"])
        # Any model that is asked for is there.
        self.owner.models.append(self._model)
        self._answer({_CHAT: self._chat, _TEXT: self._chat}, body)

    def _chat(self, body: Json, reply: wire.Reply) -> None:
        self._wait(reply.delay)
        if reply.status >= 400:
            error = {"message": reply.error, "type": "invalid_request_error"}
            self._send(reply.status, {"error": error} if reply.error else reply.text)
        elif body.get("stream"):
            self._stream(body, reply, wire.prompt_tokens(body))
        elif reply.drop_after is not None:
            self._drop()
        else:
            self._send(200, self._whole_object(body, reply))

    def _stream(self, body: Json, reply: wire.Reply, prompt_count: int) -> None:
        if reply.drop_after == 0 and not reply.error:
            self._drop()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self._end_headers()
        for number, chunk in enumerate(self._chunks(body, reply)):
            self._wait(reply.pause)
            if reply.error and number == (reply.drop_after or 0):
                self._write_event(json.dumps({"error": {"message": reply.error}}))
                break
            if number == reply.drop_after:
                self.close_connection = True
                _cut(self.connection)
                return
            self._write_event(json.dumps({**_HEAD, "model": self._model, **chunk}, ensure_ascii=False))
        self._write_event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _write_event(self, data: str) -> None:
        line = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))

    def _chunks(self, body: Json, reply: wire.Reply) -> Iterator[Json]:
        plain, size = self.path == _TEXT, self.owner.chunk_size
        for delta in _pieces(reply.text, size) if plain else _deltas(body, reply, size):
            yield _choice(plain, delta, None)
        yield _choice(plain, "" if plain else {}, _reason(reply))
        if reply.report_usage and (body.get("stream_options") or {}).get("include_usage"):
            yield {"object": "chat.completion.chunk", "choices": [], "usage": _usage(body, reply)}

    def _whole_object(self, body: Json, reply: wire.Reply) -> Json:
        whole: Json = {**_HEAD, "model": self._model, "object": "chat.completion"}
        if reply.report_usage:
            whole["usage"] = _usage(body, reply)
        if self.path == _TEXT:
            return {**whole, "choices": [{"index": 0, "text": reply.text, "finish_reason": _reason(reply)}]}
        message: Json = {"role": "assistant", "content": reply.text or None}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if isinstance(reply, OpenAIReply) and reply.arguments is not None:
            message["tool_calls"] = [_call(body, reply, place, reply.arguments) for place in range(reply.calls)]
        return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": _reason(reply)}]}


def _choice(plain: bool, delta: str | Json, reason: str | None) -> Json:
    if plain:
        return {"object": "text_completion", "choices": [{"index": 0, "text": delta, "finish_reason": reason}]}
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _deltas(body: Json, reply: wire.Reply, size: int) -> Iterator[Json]:
    """Yield what a chat streams: the role, the thinking, the content, and each call with its arguments in fragments."""
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": part} for part in _pieces(reply.thinking, size))
    yield from ({"content": part} for part in _pieces(reply.text, size))
    if not isinstance(reply, OpenAIReply) or reply.arguments is None:
        return
    for place in range(reply.calls):
        yield {"tool_calls": [_call(body, reply, place, "")]}
        for part in _pieces(reply.arguments, size):
            yield {"tool_calls": [{"index": place, "function": {"arguments": part}}]}


def _call(body: Json, reply: OpenAIReply, place: int, arguments: str) -> Json:
    offered: list[Json] = body.get("tools") or []
    name = reply.call_name or (offered[0]["function"]["name"] if offered else "nothing")
    function = {"name": name, "arguments": arguments}
    return {"index": place, "id": f"call-{place}", "type": "function", "function": function}


def _reason(reply: wire.Reply) -> str:
    calls = isinstance(reply, OpenAIReply) and reply.call is not None and reply.done_reason == "stop"
    return "tool_calls" if calls else reply.done_reason


def _usage(body: Json, reply: wire.Reply) -> dict[str, Any]:
    messages = body.get("messages") or [{"content": body.get("prompt", "")}]
    written = reply.text + ((reply.arguments or "") if isinstance(reply, OpenAIReply) else "")
    prompt = wire.prompt_tokens({"messages": messages}) if reply.prompt_eval_count is None else reply.prompt_eval_count
    # About four characters to a token: nobody counts on the exact number.
    completion = len(written) // 4 + 1 if reply.eval_count is None else reply.eval_count
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
