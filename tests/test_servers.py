"""The servers that the tests run against behave as the real ones do, seen through the real client classes."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import warnings
from typing import Any

import httpx
import ollama
import pytest
import pytest_socket
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.llms.types import ThinkingBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.llms.ollama import Ollama

from tests import ollama_wire as wire
from tests.ollama_server import OllamaServer, Reply
from tests.postgres import PgStore, Postgres, WordLlamaEmbedding

QUESTION = [ChatMessage(role="user", content="How many days do I have to return a book?")]


def client(server: OllamaServer, context_window: int = 8192, request_timeout: float = 30.0) -> Ollama:
    """Return LlamaIndex's own client for the server; a new one for each event loop."""
    return Ollama(
        model="gemma3:4b",
        base_url=server.url,
        context_window=context_window,
        request_timeout=request_timeout,
    )


def raw_answer(llm: Ollama, message: ChatMessage = QUESTION[0]) -> dict[str, Any]:
    """Ask, and return the answer as the server sent it."""
    raw = llm.chat([message]).raw
    assert isinstance(raw, dict)
    return raw


@given(content=st.text(max_size=60), thinking=st.text(max_size=20), size=st.integers(1, 70))
def test_the_chunks_of_a_stream_join_to_the_reply(content: str, thinking: str, size: int) -> None:
    """Whatever the chunk size, content and thinking arrive whole and only the last chunk is done."""
    chunks = list(wire.chat_chunks({}, Reply(content=content, thinking=thinking), size, 7))
    assert "".join(chunk["message"]["content"] for chunk in chunks) == content
    assert "".join(chunk["message"].get("thinking", "") for chunk in chunks) == thinking
    assert [chunk["done"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


@given(text=st.text(max_size=60), dim=st.integers(1, 40))
def test_an_embedding_has_unit_length(text: str, dim: int) -> None:
    """Every text, also one without words, gets a vector of the wanted size and of length 1."""
    vector = wire.embed(text, dim)
    assert len(vector) == dim
    assert sum(value * value for value in vector) == pytest.approx(1.0)


async def test_the_four_ways_to_ask_get_the_same_answer(ollama_server: OllamaServer) -> None:
    """Sync, async, streamed and async streamed calls return the scripted text."""
    ollama_server.script("Twenty-one days from delivery.")
    llm = client(ollama_server)
    whole = [llm.chat(QUESTION).message.content, (await llm.achat(QUESTION)).message.content]
    parts = [chunk.delta or "" for chunk in llm.stream_chat(QUESTION)]
    aparts = [chunk.delta or "" async for chunk in await llm.astream_chat(QUESTION)]
    assert {*whole, "".join(parts), "".join(aparts)} == {"Twenty-one days from delivery."}
    assert parts[0] == "Twenty-o"


def test_replies_play_in_order_and_the_last_repeats(ollama_server: OllamaServer) -> None:
    """Three calls to a script of two replies get the first, the second and the second again."""
    ollama_server.script("one", {"answer": "iki ğ"})
    llm = client(ollama_server)
    contents = [llm.chat(QUESTION).message.content for _ in range(3)]
    assert contents == ["one", '{"answer": "iki ğ"}', '{"answer": "iki ğ"}']


def test_requests_are_kept(ollama_server: OllamaServer) -> None:
    """Path and body of each request can be read back, format and options included."""
    client(ollama_server).chat(QUESTION, format={"type": "object"})
    (request,) = ollama_server.requests
    assert request.path == "/api/chat"
    assert request.body["format"] == {"type": "object"}
    assert request.body["options"]["num_ctx"] == 8192
    assert ollama_server.chats[0]["messages"][0]["content"] == QUESTION[0].content


def test_thinking_comes_apart_from_the_content(ollama_server: OllamaServer) -> None:
    """Thinking text reaches the client as a thinking block and never as content."""
    ollama_server.script(Reply(content="21 days", thinking="Let me see."))
    message = client(ollama_server).chat(QUESTION).message
    assert [block.content for block in message.blocks if isinstance(block, ThinkingBlock)] == ["Let me see."]
    assert message.content == "21 days"
    streamed = list(client(ollama_server).stream_chat(QUESTION))
    assert "".join(chunk.delta or "" for chunk in streamed) == "21 days"


@pytest.mark.parametrize(
    "reply, status, text",
    [
        (Reply(status=503, error="server busy"), 503, "server busy"),
        (Reply(status=502, content="<html>bad gateway</html>"), 502, "<html>bad gateway</html>"),
        (Reply(error="out of memory"), 500, "out of memory"),
    ],
)
def test_a_scripted_error_reaches_the_client(ollama_server: OllamaServer, reply: Reply, status: int, text: str) -> None:
    """An HTTP status and its body, JSON or not, arrive as the client's own error."""
    ollama_server.script(reply)
    with pytest.raises(ollama.ResponseError) as caught:
        client(ollama_server).chat(QUESTION)
    assert caught.value.status_code == status
    assert text in caught.value.error


def test_an_error_line_ends_a_stream(ollama_server: OllamaServer) -> None:
    """A stream that goes wrong inside Ollama shows its first chunks and then raises."""
    ollama_server.script(Reply(content="0123456789abcdef", error="model runner stopped", drop_after=1))
    shown: list[str | None] = []
    with pytest.raises(ollama.ResponseError, match="model runner stopped"):
        shown.extend(chunk.delta for chunk in client(ollama_server).stream_chat(QUESTION))
    assert shown == ["01234567"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_can_drop_before_the_answer(ollama_server: OllamaServer, streamed: bool) -> None:
    """A server that hangs up without a byte is a protocol error, streamed or not."""
    ollama_server.script(Reply(content="never seen", drop_after=0))
    llm = client(ollama_server)
    with pytest.raises(httpx.RemoteProtocolError):
        list(llm.stream_chat(QUESTION)) if streamed else llm.chat(QUESTION)


def test_a_connection_can_drop_in_the_middle(ollama_server: OllamaServer) -> None:
    """A stream that is cut after two chunks shows these two and then raises."""
    ollama_server.script(Reply(content="0123456789abcdefghij", drop_after=2))
    shown: list[str | None] = []
    with pytest.raises(httpx.RemoteProtocolError):
        shown.extend(chunk.delta for chunk in client(ollama_server).stream_chat(QUESTION))
    assert shown == ["01234567", "89abcdef"]


def test_counts_and_the_reason_of_the_end_can_be_chosen(ollama_server: OllamaServer) -> None:
    """Scripted counts and a cut answer are reported as Ollama reports them."""
    ollama_server.script(Reply(content="{", done_reason="length", prompt_eval_count=4095, eval_count=1))
    raw = raw_answer(client(ollama_server))
    assert raw["done_reason"] == "length"
    assert raw["usage"] == {"prompt_tokens": 4095, "completion_tokens": 1, "total_tokens": 4096}


def test_usage_can_be_left_out(ollama_server: OllamaServer) -> None:
    """A server that reports no counts leaves the client without usage."""
    ollama_server.script(Reply(content="x", report_usage=False))
    assert "usage" not in raw_answer(client(ollama_server))


@pytest.mark.parametrize("truncates, expected", [(False, 1008), (True, 130)])
def test_a_prompt_that_is_too_long(truncates: bool, expected: int) -> None:
    """By default all tokens are reported; a truncating server reports half of the window and says nothing."""
    message = ChatMessage(role="user", content=" word" * 1004)
    with OllamaServer(truncates=truncates) as server:
        assert raw_answer(client(server, context_window=256), message)["prompt_eval_count"] == expected


def test_truncation_can_be_refused() -> None:
    """With truncate=false a truncating server answers 400, as Ollama does."""
    messages = [{"role": "user", "content": "more than eight tokens stand in this message"}]
    body = {"model": "gemma3:4b", "truncate": False, "options": {"num_ctx": 8}, "messages": messages}
    with OllamaServer(truncates=True) as server:
        response = httpx.post(f"{server.url}/api/chat", json=body)
    assert response.status_code == 400
    assert "context length" in response.json()["error"]


def test_the_context_window_is_told(ollama_server: OllamaServer) -> None:
    """LlamaIndex's client that has no window asks /api/show and takes the model's."""
    ollama_server.context_length = 32_768
    assert client(ollama_server, context_window=-1).metadata.context_window == 32_768


def test_tags_and_version(ollama_server: OllamaServer) -> None:
    """The probes that tell whether Ollama runs and what it has are answered; other paths are not."""
    listed = ollama.Client(ollama_server.url).list().models
    assert [model.model for model in listed] == ["gemma3:4b", "nomic-embed-text:latest"]
    assert "version" in httpx.get(f"{ollama_server.url}/api/version").json()
    assert httpx.get(f"{ollama_server.url}/api/nothing").status_code == 404


@pytest.mark.parametrize("model", ["gemma3", "llama3.2:1b"])
def test_a_model_that_is_not_installed(ollama_server: OllamaServer, model: str) -> None:
    """Another model, or another tag of one that is there, gets Ollama's 404."""
    with pytest.raises(ollama.ResponseError, match=f"model '{model}' not found") as caught:
        Ollama(model=model, base_url=ollama_server.url, context_window=8192).chat(QUESTION)
    assert caught.value.status_code == 404


async def test_embeddings_are_the_same_every_time(ollama_server: OllamaServer) -> None:
    """One text has one vector, alone, in a batch and async, of the size that the server was given."""
    ollama_server.embed_dim = 32
    embedder = OllamaEmbedding(model_name="nomic-embed-text", base_url=ollama_server.url)
    alone = embedder.get_text_embedding("Return a book")
    assert len(alone) == 32
    assert embedder.get_text_embedding_batch(["Return a book", "Gift card"])[0] == alone
    assert await embedder.aget_text_embedding("Return a book") == alone


def test_a_path_can_be_made_to_fail(ollama_server: OllamaServer) -> None:
    """Any path answers with the error that the test wants."""
    ollama_server.fail("/api/embed", 500, "no memory for embeddings")
    embedder = OllamaEmbedding(model_name="nomic-embed-text", base_url=ollama_server.url)
    with pytest.raises(ollama.ResponseError, match="no memory for embeddings"):
        embedder.get_text_embedding("x")


def test_a_closed_stream_is_noticed(ollama_server: OllamaServer) -> None:
    """A client that closes its stream after one chunk is counted; one that reads to the end is not."""
    ollama_server.script("short", Reply(content="0123456789" * 50, pause=0.05))
    llm = client(ollama_server)
    list(llm.stream_chat(QUESTION))
    assert ollama_server.closed == 0
    stream = llm.stream_chat(QUESTION)
    next(stream)
    stream.close()
    assert ollama_server.wait_closed(1)


async def test_a_cancelled_task_is_noticed(ollama_server: OllamaServer) -> None:
    """Cancelling a task that waits for its answer closes the connection, which the server sees."""
    ollama_server.script(Reply(content="late", delay=30.0))
    task = asyncio.create_task(client(ollama_server).achat(QUESTION))
    assert await asyncio.to_thread(ollama_server.wait_requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ollama_server.wait_closed)


def test_a_late_answer_runs_into_the_timeout_of_the_client(ollama_server: OllamaServer) -> None:
    """A delay beyond the client's timeout ends in a read timeout."""
    ollama_server.script(Reply(content="late", delay=30.0))
    with pytest.raises(httpx.ReadTimeout):
        client(ollama_server, request_timeout=0.1).chat(QUESTION)


def test_one_client_does_not_survive_its_event_loop() -> None:
    """With connections kept open, as Ollama keeps them, a second event loop breaks LlamaIndex's client."""
    with OllamaServer(keep_alive=True) as server, warnings.catch_warnings():
        # The socket that the first loop left behind can not be closed any more.
        warnings.simplefilter("ignore", ResourceWarning)
        llm = client(server)
        asyncio.run(llm.achat(QUESTION))
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            asyncio.run(llm.achat(QUESTION))
        del llm
        gc.collect()


def test_a_fault_of_the_server_fails_the_test() -> None:
    """What goes wrong inside the server is raised when it stops, and does not pass in silence."""
    server = OllamaServer()
    with pytest.raises(json.JSONDecodeError), server, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{server.url}/api/chat", content=b"{")


def test_nothing_else_can_be_reached() -> None:
    """A connection that leaves the machine is refused before a packet is sent."""
    with pytest.raises(pytest_socket.SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


async def test_postgres_finds_the_same_sync_and_async(pg_store: PgStore, wordllama_embed: WordLlamaEmbedding) -> None:
    """Nodes that were stored in PostgreSQL are found by meaning and filter, the same way sync and async."""
    nodes = [
        TextNode(text="Printed books can be returned.", metadata={"audience": "customer"}),
        TextNode(text="Suppliers take books back, too.", metadata={"audience": "staff"}),
        TextNode(text="Gift cards never expire.", metadata={"audience": "customer"}),
    ]
    storage = StorageContext.from_defaults(vector_store=pg_store("help_pages", 256))
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=wordllama_embed)
    customer = MetadataFilters(filters=[MetadataFilter(key="audience", value="customer")])
    retriever = index.as_retriever(similarity_top_k=3, filters=customer)
    found = [node.text for node in retriever.retrieve("return a book")]
    assert found == [nodes[0].text, nodes[2].text]
    assert [node.text for node in await retriever.aretrieve("return a book")] == found


@pytest.mark.parametrize("dim", [3, 5])
def test_tables_do_not_outlive_their_test(pg_store: PgStore, dim: int) -> None:
    """The same table name serves two tests with vectors of different sizes."""
    store = pg_store("shared_name", dim)
    assert len(store.add([TextNode(text="x", embedding=[1.0] * dim)])) == 1


def test_the_uri_is_for_libpq(postgres: Postgres, postgres_uri: str) -> None:
    """The plain URI reaches the server that the SQLAlchemy URLs name."""
    assert postgres_uri == postgres.uri
    assert postgres.fetch("SELECT extname FROM pg_extension WHERE extname = 'vector'") == [("vector",)]
