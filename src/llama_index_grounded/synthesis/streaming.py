"""Streaming responses that can be read twice, closed early, and asked for everything at their end.

What comes from the model is kept on a tape. Every reader plays the tape and asks for more where it ends, so a log
handler that prints the response takes nothing away from the user. Closing a reader stops the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index_grounded.errors import GroundedError
from llama_index_grounded.schema import TextEvent
from llama_index_grounded.synthesis.respond import for_readers
from llama_index_grounded.synthesis.shortcuts import Shortcuts

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from llama_index_grounded.schema import GroundedResult, StreamEvent
    from llama_index_grounded.synthesis.answer import AnswerModel
    from llama_index_grounded.synthesis.respond import GroundedResponse
    from llama_index_grounded.synthesis.session import Session

__all__ = ["AsyncGroundedStreamingResponse", "GroundedStreamingResponse"]


class _Ending(Shortcuts):
    """What both kinds of stream know once they have ended."""

    _session: Session

    @property
    def response_txt(self) -> str | None:
        """The whole text, once the stream has ended."""
        return None if self._session.response is None else self._session.response.response

    @response_txt.setter
    def response_txt(self, text: str | None) -> None:
        """Leave it: LlamaIndex's constructor sets the field, whose value is known to the session."""

    def _ended(self) -> GroundedResponse:
        response = self._session.response
        if response is None:
            raise GroundedError("the stream has not ended: read it to its end or close it first")
        return response

    @property
    def grounded(self) -> GroundedResult:
        """Everything about the answer, once the stream has ended."""
        return self._ended().grounded

    @property
    def parsed(self) -> AnswerModel | None:
        """The model's accepted reply, once the stream has ended; None for a refusal."""
        return self._ended().parsed

    def _nodes(self) -> list[NodeWithScore]:
        """Return the source nodes, and note their metadata, which is known before the stream has begun."""
        nodes, metadata = for_readers(self._session.plan, self._session.additional)
        self._session.metadata |= metadata
        return nodes


class _Tape:
    """The events so far, and the driver that brings more. It does not know the response, so dropping that ends it."""

    def __init__(self, session: Session, events: Generator[StreamEvent, None, None]) -> None:
        self._session = session
        self._driver = events
        self._events: list[StreamEvent] = []
        self._error: Exception | None = None
        """What the stream ended with, for every reader."""
        self._lock = threading.Lock()

    def play(self) -> Generator[StreamEvent, None, None]:
        """Yield the events from the first one on."""
        place = 0
        try:
            while place < len(self._events) or self._pull(place):
                yield self._events[place]
                place += 1
        except GeneratorExit:
            self.stop()
            raise

    def texts(self) -> Generator[str, None, None]:
        """Yield the text of the events."""
        with contextlib.closing(self.play()) as events:
            for event in events:
                if isinstance(event, TextEvent):
                    yield event.text

    def stop(self) -> None:
        """Stop the model; a thread that is waiting for its next piece ends with that piece."""
        self._session.stopping = True
        if self._lock.acquire(blocking=False):
            try:
                self._driver.close()
                self._session.close()
            finally:
                self._lock.release()

    def _pull(self, place: int) -> bool:
        with self._lock:
            if place < len(self._events):
                return True
            if self._error is not None:
                raise self._error
            try:
                event = next(self._driver, None)
            except Exception as error:
                self._error = error
                raise
            if event is not None:
                self._events.append(event)
            return event is not None


class GroundedStreamingResponse(_Ending, StreamingResponse):  # pyright: ignore[reportIncompatibleVariableOverride] - read late
    """A LlamaIndex streaming response whose text is validated before it is shown.

    ``grounded``, its shortcuts and ``parsed`` read the stream to its end first.
    """

    def __init__(self, session: Session, events: Generator[StreamEvent, None, None]) -> None:
        self._session = session
        self._tape = _Tape(session, events)
        super().__init__(response_gen=self._tape.texts(), source_nodes=self._nodes(), metadata=session.metadata)

    def events(self) -> Generator[StreamEvent, None, None]:
        """Yield a `SourcesEvent`, then `TextEvent` as the model writes, then a `ResultEvent`."""
        return self._tape.play()

    def close(self) -> None:
        """Stop the model, if it is still writing; the result then says ``stream_closed``."""
        self._tape.stop()

    def _ended(self) -> GroundedResponse:
        if self._session.response is None:
            for _ in self._tape.play():
                pass
        return super()._ended()

    def get_response(self) -> GroundedResponse:
        """Read the stream to its end and return the whole response."""
        return self._ended()

    def __str__(self) -> str:
        """Read the stream to its end and return its text."""
        return str(self._ended())

    def print_response_stream(self) -> None:
        """Print the text as it comes."""
        # LlamaIndex's own way of printing, over a reading from the beginning.
        StreamingResponse(self._tape.texts()).print_response_stream()


class _AsyncTape:
    """The async twin of `_Tape`."""

    def __init__(self, session: Session, events: AsyncGenerator[StreamEvent, None]) -> None:
        self._session = session
        self._driver = events
        self._events: list[StreamEvent] = []
        self._error: Exception | None = None
        self._lock = asyncio.Lock()
        self._step: asyncio.Future[StreamEvent | None] | None = None
        self._closing = False

    async def play(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events from the first one on."""
        place = 0
        try:
            while place < len(self._events) or await self._pull(place):
                yield self._events[place]
                place += 1
        except (GeneratorExit, asyncio.CancelledError):
            await self.stop()
            raise

    async def texts(self) -> AsyncGenerator[str, None]:
        """Yield the text of the events."""
        async with contextlib.aclosing(self.play()) as events:
            async for event in events:
                if isinstance(event, TextEvent):
                    yield event.text

    async def stop(self) -> None:
        """Stop the model, and a task that is waiting for its next piece."""
        self._session.stopping = True
        if self._step is not None and not self._step.done():
            self._closing = True
            self._step.cancel()
            await asyncio.wait({self._step})
        await self._driver.aclose()
        self._session.close()

    async def _pull(self, place: int) -> bool:
        async with self._lock:
            if place < len(self._events):
                return True
            if self._error is not None:
                raise self._error
            self._step = asyncio.ensure_future(anext(self._driver, None))
            try:
                event = await self._step
            except asyncio.CancelledError:
                if self._closing:  # by another task; this one was not cancelled
                    return False
                raise
            except Exception as error:
                self._error = error
                raise
            if event is not None:
                self._events.append(event)
            return event is not None


class AsyncGroundedStreamingResponse(_Ending, AsyncStreamingResponse):  # pyright: ignore[reportIncompatibleVariableOverride] - read late
    """The async twin of `GroundedStreamingResponse`; read it to its end before asking for ``grounded``."""

    def __init__(self, session: Session, events: AsyncGenerator[StreamEvent, None]) -> None:
        self._session = session
        self._tape = _AsyncTape(session, events)
        super().__init__(response_gen=self._tape.texts(), source_nodes=self._nodes(), metadata=session.metadata)

    def aevents(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield a `SourcesEvent`, then `TextEvent` as the model writes, then a `ResultEvent`."""
        return self._tape.play()

    async def aclose(self) -> None:
        """Stop the model, if it is still writing; the result then says ``stream_closed``."""
        await self._tape.stop()

    def _yield_response(self) -> AsyncGenerator[str, None]:
        return self._tape.texts()

    def async_response_gen(self) -> AsyncGenerator[str, None]:
        """Yield the text as it comes."""
        return self._tape.texts()

    async def _async_str(self) -> str:
        return str(await self.get_response())

    async def get_response(self) -> GroundedResponse:
        """Read the stream to its end and return the whole response."""
        if self._session.response is None:
            async with contextlib.aclosing(self._tape.play()) as events:
                async for _ in events:
                    pass
        return self._ended()
