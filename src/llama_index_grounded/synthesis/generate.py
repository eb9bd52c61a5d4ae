"""Generate an answer: the two drivers, one sync and one async, that carry a session out and call its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING, TypeVar

from llama_index_grounded.llm.call import AsyncModelStream, Call, Deadline, ModelStream
from llama_index_grounded.synthesis.conversation import Check, Want
from llama_index_grounded.synthesis.perform import aperform, perform

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from llama_index_grounded.schema import StreamEvent
    from llama_index_grounded.synthesis.conversation import Sent
    from llama_index_grounded.synthesis.session import Session

__all__ = ["drive", "drive_async"]

T = TypeVar("T")


def drive(
    session: Session, llm: LLM | None, timeout: float | None, begun: Deadline | None = None
) -> Generator[StreamEvent, None, None]:
    """Yield the events of a query as they come. Closing the generator stops the model.

    Args:
        session: The query.
        llm: Its model; None where none will be called.
        timeout: Seconds from the first event on, in place of ``begun``.
        begun: A deadline that runs already.
    """
    steps, work = session.steps(), _Work(llm, begun or Deadline(timeout))
    sent: Sent = None
    try:
        while not session.stopping:
            step, sent = steps.send(sent), None
            if isinstance(step, (Call, Want, Check)):
                sent = work.do(step)
            else:
                yield step
        session.close()
    except StopIteration:
        return
    except BaseException as error:
        if not isinstance(error, Exception):  # the stream was closed, or the program is being stopped
            session.close()
        raise
    finally:
        work.close()


async def drive_async(
    session: Session, llm: LLM | None, timeout: float | None, begun: Deadline | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a query as they come; see `drive`. A cancellation reaches the model."""
    steps, work = session.steps(), _AsyncWork(llm, begun or Deadline(timeout))
    sent: Sent = None
    try:
        while not session.stopping:
            step, sent = steps.send(sent), None
            if isinstance(step, (Call, Want, Check)):
                sent = await work.do(step)
            else:
                yield step
        session.close()
    except StopIteration:
        return
    except BaseException as error:
        if not isinstance(error, Exception):  # the stream was closed, or the task was cancelled
            session.close()
        raise
    finally:
        await work.close()


class _Work:
    """The calls and checks of one query."""

    def __init__(self, llm: LLM | None, deadline: Deadline) -> None:
        self._llm = llm
        self._deadline = deadline
        self._stream: ModelStream | None = None

    def do(self, step: Call | Want | Check) -> Sent:
        if isinstance(step, Check):
            return perform(step.check, step.context, self._deadline)
        if isinstance(step, Call):
            self._stream = ModelStream(_needed(self._llm), step, self._deadline)
        stream = _needed(self._stream)
        return stream.stop() if step is Want.stop else stream.next()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()


class _AsyncWork:
    """The async twin of `_Work`."""

    def __init__(self, llm: LLM | None, deadline: Deadline) -> None:
        self._llm = llm
        self._deadline = deadline
        self._stream: AsyncModelStream | None = None

    async def do(self, step: Call | Want | Check) -> Sent:
        if isinstance(step, Check):
            return await aperform(step.check, step.context, self._deadline)
        if isinstance(step, Call):
            self._stream = AsyncModelStream(_needed(self._llm), step, self._deadline)
        stream = _needed(self._stream)
        return await (stream.stop() if step is Want.stop else stream.next())

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.close()


def _needed(part: T | None) -> T:
    if part is None:
        raise RuntimeError("a session wants a model that it was not given")
    return part
