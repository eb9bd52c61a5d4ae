"""Pages of the documentation, their Python blocks, and what these print."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

__all__ = ["DOCS", "PAGES", "Block", "blocks", "prose", "run_page"]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n`]*\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block.

    Args:
        first: Number of its first line in the page, from 1.
        follows: Nothing but white space stands between it and the block before.
    """

    language: str
    text: str
    first: int
    follows: bool

    @property
    def is_output(self) -> bool:
        """Whether it may show what the block above it prints."""
        return self.follows and self.language == "text"


def blocks(page: str) -> list[Block]:
    """Return all fenced blocks of a page's text."""
    found: list[Block] = []
    end = 0
    for match in _BLOCK.finditer(page):
        found.append(
            Block(
                language=match["language"],
                text=textwrap.dedent(match["body"]),
                first=page.count("\n", 0, match.start("body")) + 1,
                follows=bool(found) and not page[end : match.start()].strip(),
            )
        )
        end = match.end()
    return found


def prose(page: str) -> str:
    """Return a page's text without its fenced blocks."""
    return _BLOCK.sub("", page)


def run_page(page: str, name: str, module: ModuleType) -> list[str]:
    """Run the Python blocks of a page in one module, and say where they do not print what the page says.

    A comment behind a ``print(…)`` is what that call printed: its lines, over all times that it ran, with ``" | "``
    between them. A block of ``text`` right below is what all other calls of the block printed. ``…`` stands for
    anything within a line. Blocks may await; those that do share one event loop.

    Args:
        page: The Markdown.
        name: The file, for tracebacks.
        module: Where the names live; those of the reader are in it.
    """
    found = blocks(page)
    loop = asyncio.new_event_loop()
    try:
        faults: list[str] = []
        for place, block in enumerate(found):
            if block.language == "python":
                below = next((one.text for one in found[place + 1 : place + 2] if one.is_output), None)
                faults += [f"{name}:{fault}" for fault in _run_block(block, below, name, module, loop)]
        return faults
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _run_block(
    block: Block, below: str | None, name: str, module: ModuleType, loop: asyncio.AbstractEventLoop
) -> list[str]:
    # Empty lines in front make line numbers those of the page.
    code = "\n" * (block.first - 1) + block.text
    printed: list[tuple[int, str]] = []

    def note(*values: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        printed.append((sys._getframe(1).f_lineno, sep.join(map(str, values)) + end))

    module.__dict__["print"] = note
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    _execute(compiled, module.__dict__, loop)
    return _faults(code, below, printed)


def _execute(compiled: CodeType, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
    if compiled.co_flags & inspect.CO_COROUTINE:
        loop.run_until_complete(eval(compiled, names))  # noqa: S307 - our own pages
    else:
        exec(compiled, names)  # noqa: S102 - our own pages


def _faults(code: str, below: str | None, printed: list[tuple[int, str]]) -> list[str]:
    calls = _calls(code)
    by_call: dict[ast.Call, str] = defaultdict(str)
    rest, first_rest = "", 0
    for line, text in printed:
        call = next((call for call in calls if call.lineno <= line <= _end(call)), None)
        if call is None or calls[call] is None:
            rest, first_rest = rest + text, first_rest or line
        else:
            by_call[call] += text
    faults = [
        f"{call.lineno}: says {promised!r}, prints {_joined(by_call[call])!r}"
        for call, promised in calls.items()
        if promised is not None and not _agrees(promised, _joined(by_call[call]))
    ]
    if rest.strip() and below is None:
        faults.append(f"{first_rest}: prints {rest!r}, and neither a comment nor a block of text says so")
    elif below is not None and not _agrees(below.rstrip(), rest.rstrip()):
        faults.append(f"{first_rest}: the block of text below says {below!r}, it prints {rest!r}")
    return faults


def _calls(code: str) -> dict[ast.Call, str | None]:
    """Return the calls of ``print``, innermost first, with what stands in a comment behind each."""
    lines = code.split("\n")
    tree = compile(code, "page", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    found.sort(key=lambda call: _end(call) - call.lineno)
    return {call: _comment(lines[_end(call) - 1], call) for call in found}


def _comment(line: str, call: ast.Call) -> str | None:
    behind = line.encode()[call.end_col_offset or 0 :].decode()
    match = re.fullmatch(r"\s*#\s*(.*?)\s*", behind)
    return match[1] if match else None


def _end(call: ast.Call) -> int:
    return call.end_lineno or call.lineno


def _joined(text: str) -> str:
    return " | ".join(line.strip() for line in text.strip("\n").split("\n"))


def _agrees(promised: str, printed: str) -> bool:
    pattern = "".join("[^\n]*" if part == "…" else re.escape(part) for part in re.split("(…)", promised))
    return re.fullmatch(pattern, printed) is not None
