"""Streaming responses that can be read twice, closed early, and asked for everything at their end.

What comes from the model is kept on a tape. Every reader plays the tape and asks for more where it ends, so a log
handler that prints the response takes nothing away from the user. Closing a reader stops the model.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, Any

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index_grounded.errors import GroundedError
from llama_index_grounded.evidence import strip
from llama_index_grounded.schema import TextEvent

if TYPE_CHECKING:
    from llama_index_grounded.schema import Citation, GroundedResult, Refusal, StreamEvent, Verdict
    from llama_index_grounded.synthesis.respond import GroundedResponse
    from llama_index_grounded.synthesis.session import Session

__all__ = ["AsyncGroundedStreamingResponse", "GroundedStreamingResponse"]


class _Ending:
    """What both kinds of stream know once they have ended."""

    _session: Session
    metadata: dict[str, Any] | None
    response_txt: str | None

    def _ended(self) -> GroundedResponse:
        response = self._session.response
        if response is None:
            raise GroundedError("the stream has not ended: read it to its end or close it first")
        return response

    def _note_end(self) -> None:
        response = self._session.response
        if response is not None:
            self.response_txt = response.response
            self.metadata = response.metadata

    @property
    def grounded(self) -> GroundedResult:
        """Everything about the answer, once the stream has ended."""
        return self._ended().grounded

    @property
    def answerable(self) -> bool:
        """True where there is an answer."""
        return self.grounded.answerable

    @property
    def verdict(self) -> Verdict | None:
        """The model's verdict; None where no valid answer came from a model."""
        return self.grounded.verdict

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The valid citations; none for a refusal."""
        return self.grounded.citations

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no answer; None where there is one."""
        return self.grounded.refusal


class GroundedStreamingResponse(_Ending, StreamingResponse):
    """A LlamaIndex streaming response whose text is validated before it is shown.

    ``grounded`` and its shortcuts read the stream to its end first.
    """

    def __init__(self, session: Session, events: Generator[StreamEvent, None, None]) -> None:
        nodes = [strip(scored) for scored in (*session.plan.nodes, *session.additional)]
        super().__init__(
            response_gen=self._texts(),
            source_nodes=nodes,
            metadata={scored.node.node_id: scored.node.metadata for scored in nodes},
        )
        self._session = session
        self._events = events
        self._tape: list[StreamEvent] = []
        self._lock = threading.Lock()

    def events(self) -> Generator[StreamEvent, None, None]:
        """Yield a `SourcesEvent`, then `TextEvent` as the model writes, then a `ResultEvent`."""
        place = 0
        try:
            while place < len(self._tape) or self._pull(place):
                yield self._tape[place]
                place += 1
        except GeneratorExit:
            self.close()
            raise

    def close(self) -> None:
        """Stop the model, if it is still writing; the result then says ``stream_closed``."""
        self._events.close()
        self._session.close()
        self._note_end()

    def _pull(self, place: int) -> bool:
        with self._lock:
            if place < len(self._tape):
                return True
            event = next(self._events, None)
            if event is None:
                self._note_end()
                return False
            self._tape.append(event)
            return True

    def _texts(self) -> Generator[str, None, None]:
        with contextlib.closing(self.events()) as events:
            for event in events:
                if isinstance(event, TextEvent):
                    yield event.text

    def _ended(self) -> GroundedResponse:
        for _ in self.events():
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
        for text in self._texts():
            print(text, end="", flush=True)  # noqa: T201 - LlamaIndex's method is there to print


class AsyncGroundedStreamingResponse(_Ending, AsyncStreamingResponse):
    """The async twin of `GroundedStreamingResponse`; read it to its end before asking for ``grounded``."""

    def __init__(self, session: Session, events: AsyncGenerator[StreamEvent, None]) -> None:
        nodes = [strip(scored) for scored in (*session.plan.nodes, *session.additional)]
        super().__init__(
            response_gen=self._yield_response(),
            source_nodes=nodes,
            metadata={scored.node.node_id: scored.node.metadata for scored in nodes},
        )
        self._session = session
        self._events = events
        self._tape: list[StreamEvent] = []
        self._lock = asyncio.Lock()

    async def aevents(self) -> AsyncGenerator[StreamEvent, None]:
        """Yield a `SourcesEvent`, then `TextEvent` as the model writes, then a `ResultEvent`."""
        place = 0
        try:
            while place < len(self._tape) or await self._pull(place):
                yield self._tape[place]
                place += 1
        except (GeneratorExit, asyncio.CancelledError):
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Stop the model, if it is still writing; the result then says ``stream_closed``."""
        await self._events.aclose()
        self._session.close()
        self._note_end()

    async def _pull(self, place: int) -> bool:
        async with self._lock:
            if place < len(self._tape):
                return True
            event = await anext(self._events, None)
            if event is None:
                self._note_end()
                return False
            self._tape.append(event)
            return True

    async def _yield_response(self) -> AsyncGenerator[str, None]:
        async with contextlib.aclosing(self.aevents()) as events:
            async for event in events:
                if isinstance(event, TextEvent):
                    yield event.text

    async def async_response_gen(self) -> AsyncGenerator[str, None]:
        """Yield the text as it comes."""
        async with contextlib.aclosing(self._yield_response()) as texts:
            async for text in texts:
                yield text

    async def _async_str(self) -> str:
        return str(await self.get_response())

    async def get_response(self) -> GroundedResponse:
        """Read the stream to its end and return the whole response."""
        async with contextlib.aclosing(self.aevents()) as events:
            async for _ in events:
                pass
        return self._ended()
