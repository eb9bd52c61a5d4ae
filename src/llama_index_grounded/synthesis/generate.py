"""Generate an answer: the two drivers, one sync and one async, that carry a session out and call its model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

from llama_index_grounded.llm.call import AsyncModelStream, Call, Deadline, ModelStream
from llama_index_grounded.synthesis.conversation import Want

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from llama_index_grounded.schema import StreamEvent
    from llama_index_grounded.synthesis.conversation import Sent
    from llama_index_grounded.synthesis.session import Session

__all__ = ["drive", "drive_async"]


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
    steps, stream, deadline = session.steps(), None, begun or Deadline(timeout)
    sent: Sent = None
    try:
        while not session.stopping:
            step, sent = steps.send(sent), None
            if isinstance(step, Call):
                stream = ModelStream(_needed(llm), step, deadline)
                sent = stream.next()
            elif stream is not None and step is Want.more:
                sent = stream.next()
            elif stream is not None and step is Want.stop:
                sent = stream.stop()
            elif not isinstance(step, Want):
                yield step
        session.close()
    except StopIteration:
        return
    except BaseException as error:
        if not isinstance(error, Exception):  # the stream was closed, or the program is being stopped
            session.close()
        raise
    finally:
        if stream is not None:
            stream.close()


async def drive_async(
    session: Session, llm: LLM | None, timeout: float | None, begun: Deadline | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a query as they come; see `drive`. A cancellation reaches the model."""
    steps, stream, deadline = session.steps(), None, begun or Deadline(timeout)
    sent: Sent = None
    try:
        while not session.stopping:
            step, sent = steps.send(sent), None
            if isinstance(step, Call):
                stream = AsyncModelStream(_needed(llm), step, deadline)
                sent = await stream.next()
            elif stream is not None and step is Want.more:
                sent = await stream.next()
            elif stream is not None and step is Want.stop:
                sent = await stream.stop()
            elif not isinstance(step, Want):
                yield step
        session.close()
    except StopIteration:
        return
    except BaseException as error:
        if not isinstance(error, Exception):  # the stream was closed, or the task was cancelled
            session.close()
        raise
    finally:
        if stream is not None:
            await stream.close()


def _needed(llm: LLM | None) -> LLM:
    if llm is None:
        raise RuntimeError("a session that calls a model was driven without one")
    return llm
