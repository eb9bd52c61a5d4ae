"""Carry one answer check out, within the time of its query; what can not be carried out is skipped, never passed."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index_grounded.llm.call import within
from llama_index_grounded.schema import CheckResult

if TYPE_CHECKING:
    from llama_index_grounded.llm.call import Deadline
    from llama_index_grounded.synthesis.checking import AnswerCheck, CheckContext

__all__ = ["aperform", "check_name", "perform"]

_logger = logging.getLogger(__name__)
_LATE = "the time for this query is over"


def check_name(check: object) -> str:
    """Return the name under which a check reports."""
    name = getattr(check, "name", None)
    return name if isinstance(name, str) and name else type(check).__name__


def perform(check: AnswerCheck, context: CheckContext, deadline: Deadline) -> CheckResult:
    """Run a check. With a deadline it runs in a thread, which is left behind where it takes longer."""
    left = deadline.left
    if left is None:
        return _safely(check, lambda: check.check(context))
    if left <= 0:
        return _skipped(check, _LATE)
    found: list[CheckResult] = []
    timed = replace(context, seconds=left)
    here = contextvars.copy_context()

    def run() -> None:
        found.append(here.run(_safely, check, lambda: check.check(timed)))

    thread = threading.Thread(target=run, name=f"check {check_name(check)}", daemon=True)
    thread.start()
    thread.join(left)
    return found[0] if found else _skipped(check, _LATE)


async def aperform(check: AnswerCheck, context: CheckContext, deadline: Deadline) -> CheckResult:
    """Run a check; see `perform`. Its coroutine method ``acheck`` is awaited where it has one."""
    left = deadline.left
    if left is not None and left <= 0:
        return _skipped(check, _LATE)
    method = getattr(check, "acheck", None)
    if not inspect.iscoroutinefunction(method):
        # The thread keeps to the deadline, which a task around it could not make it do.
        return await asyncio.to_thread(perform, check, context, deadline)
    try:
        return _checked(check, await within(method(replace(context, seconds=left)), left))
    except TimeoutError:
        return _skipped(check, _LATE)
    except Exception as error:  # noqa: BLE001 - a check may raise anything; the answer does not fall with it
        return _failed(check, error)


def _safely(check: AnswerCheck, run: Callable[[], Any]) -> CheckResult:
    try:
        return _checked(check, run())
    except Exception as error:  # noqa: BLE001 - as above
        return _failed(check, error)


def _checked(check: AnswerCheck, result: object) -> CheckResult:
    if isinstance(result, CheckResult):
        return result
    return _skipped(check, f"the check returned {type(result).__name__} in place of a CheckResult")


def _failed(check: AnswerCheck, error: Exception) -> CheckResult:
    _logger.error("the check %s failed", check_name(check), exc_info=error)
    return _skipped(check, f"the check could not run ({type(error).__name__})")


def _skipped(check: AnswerCheck, why: str) -> CheckResult:
    return CheckResult(name=check_name(check), status="skipped", detail=why)
