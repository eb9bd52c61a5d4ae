"""Carry one answer check out, within the time of its query; what can not be carried out is skipped, never passed."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index_grounded.llm.waiting import wait_for
from llama_index_grounded.schema import CheckResult
from llama_index_grounded.synthesis.checked import sound

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index_grounded.llm.call import Deadline
    from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext

__all__ = ["aperform", "check_name", "perform"]

_logger = logging.getLogger(__name__)
_LATE = "the time for this query is over"
_LOCAL_SECONDS = 2.0
"""What a check that asks nobody may take though the time is over."""
_GRACE = 0.25
"""What a check that keeps to its time may need to say so."""


def check_name(check: object) -> str:
    """Return the name under which a check reports."""
    name = _read(check, "name")
    return name if isinstance(name, str) and name else type(check).__name__


def _read(check: object, attribute: str) -> object:
    """Read an attribute of somebody else's object; None where it can not be read."""
    try:
        return getattr(check, attribute, None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a property may raise anything
        return None


def perform(check: AnswerCheck, context: CheckContext, deadline: Deadline) -> CheckResult:
    """Run a check. With a deadline it runs in a thread, which is left behind where it takes longer."""
    left = _left(check, deadline)
    if left is None:
        return _safely(check, context, lambda: check.check(context), deadline)
    if left <= 0:
        return _skipped(check, _LATE)
    timed = replace(context, seconds=left)
    name = f"check {check_name(check)}"
    found = wait_for(lambda: _safely(check, context, lambda: check.check(timed), deadline), left + _GRACE, name)
    return found or _skipped(check, _LATE)


async def aperform(check: AnswerCheck, context: CheckContext, deadline: Deadline) -> CheckResult:
    """Run a check; see `perform`. Its coroutine method ``acheck`` is awaited where it has one."""
    method: Any = _read(check, "acheck")
    if not inspect.iscoroutinefunction(method):
        # The thread keeps to the deadline, which a task around it could not make it do.
        return await asyncio.to_thread(perform, check, context, deadline)
    left = _left(check, deadline)
    if left is not None and left <= 0:
        return _skipped(check, _LATE)
    task = asyncio.ensure_future(_guarded(check, context, method, deadline))
    try:
        await asyncio.wait({task}, timeout=None if left is None else left + _GRACE)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
    if not task.done():
        return _skipped(check, _LATE)
    return _failed(check, asyncio.CancelledError(), deadline) if task.cancelled() else task.result()


async def _guarded(check: AnswerCheck, context: CheckContext, method: Any, deadline: Deadline) -> CheckResult:
    """Await a check; what would end the loop, such as SystemExit, becomes a result like any other error."""
    try:
        return _checked(check, context, await method(replace(context, seconds=_left(check, deadline))))
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - a check may raise anything; the answer does not fall with it
        return _failed(check, error, deadline)


def _left(check: AnswerCheck, deadline: Deadline) -> float | None:
    left = deadline.left
    return left if left is None or _read(check, "local") is not True else max(left, _LOCAL_SECONDS)


def _forget(task: asyncio.Future[Any]) -> None:
    """Take the outcome of a task that nobody waits for any more, so that it is not reported as lost."""
    if not task.cancelled():
        task.exception()


def _safely(check: AnswerCheck, context: CheckContext, run: Callable[[], object], deadline: Deadline) -> CheckResult:
    try:
        return _checked(check, context, run())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(check, error, deadline)


def _checked(check: AnswerCheck, context: CheckContext, result: object) -> CheckResult:
    if not isinstance(result, CheckResult):
        return _skipped(check, f"the check returned {type(result).__name__} in place of a CheckResult")
    # It may have been made without validation, and in a class with further fields, which the record can not hold.
    fields = result.model_dump(include=set(CheckResult.model_fields), warnings=False)
    whole = CheckResult.model_validate(fields)
    if not sound(whole, context):
        return _skipped(check, "the check reported a place that does not exist, or a count below zero")
    if whole.score is None or 0 <= whole.score <= 1:
        return whole
    _logger.warning("the check %s gave the score %s, which is not within 0 to 1", check_name(check), whole.score)
    return whole.model_copy(update={"score": None})


def _failed(check: AnswerCheck, error: BaseException, deadline: Deadline) -> CheckResult:
    left = deadline.left
    if isinstance(error, TimeoutError) and left is not None and left <= 0:
        return _skipped(check, _LATE)  # it kept to the time that it was given
    _logger.error("the check %s failed", check_name(check), exc_info=error)
    return _skipped(check, f"the check could not run ({type(error).__name__})")


def _skipped(check: AnswerCheck, why: str) -> CheckResult:
    return CheckResult(name=check_name(check), status="skipped", detail=why)
