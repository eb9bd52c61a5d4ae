"""Read one JSON object while it is still being written, and hand out a text or the items of a list as they come.

The object is found by the rule that `structured` states for whole replies. Each character is looked at a bounded number
of times, whatever the size of the pieces. Of a reply that begins with words nothing is handed out before a closing tag
has shown that they were reasoning: a draft in it looks like the object itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Iterator, Mapping
from enum import Enum, auto
from typing import Any, cast

from llama_index_grounded.llm.structured import BEFORE_AN_OBJECT, END_OF_THINKING, loads

__all__ = ["ObjectReader", "Part"]

_SPACE = " \t\r\n"
_MOST_SPACE = 512
"""White space in a row after which a model is taken to be stuck; a grammar allows it for ever."""
_STEP = 1024
_ENDLESS = re.compile(rf"[{_SPACE}]{{{_MOST_SPACE + 1}}}")
_FENCE = "```"
_LEADING = re.compile(r"[\ufeff\s]*")
_LONGEST_TAG = len("</thinking>")
_STRING = re.compile(
    r"""[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]|\"""", re.DOTALL
)
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]..\Z")
_HALF_AN_ESCAPE = re.compile(r"\\?\Z|\\u.{0,3}\Z", re.DOTALL)
_PLAIN = re.compile(r"[^\"{}\[\],]+")


Part = str | Mapping[str, Any]
"""The next characters of a text, or a whole object of a list."""


class _State(Enum):
    """Where in the reply the reader is."""

    start = auto()
    words = auto()
    key = auto()
    key_text = auto()
    colon = auto()
    before_value = auto()
    after_value = auto()
    text = auto()
    other = auto()
    done = auto()
    broken = auto()


class ObjectReader:
    """Takes the pieces of one reply and finds the fields of its object.

    Args:
        fields: Names that the object may have; None for any.
        watched: Name of the field whose text is handed out as it comes, or whose objects are, each when it is whole.
    """

    def __init__(self, fields: Container[str] | None, watched: str) -> None:
        self._fields = fields
        self._watched = watched
        self._state = _State.start
        self._pending = ""
        """What has come and is not yet read; short, whatever the reply."""
        self._raw: list[str] = []
        """The value that is being read, as written."""
        self._depth = 0
        self._item = 0
        """Where in it the object of a watched list begins."""
        self._nested_string = False
        self._key = ""
        self._run_of_space = 0
        self.seen: dict[str, Any] = {}
        """The values that are complete, by name; that of the watched field is left empty."""
        self.taken = 0
        """Characters of the reply that were read; what follows them does not count."""
        self._steps: Mapping[_State, Callable[[], Part | None]] = {
            _State.start: self._in_start,
            _State.words: self._in_words,
            _State.key: self._in_key,
            _State.key_text: self._in_key_text,
            _State.colon: self._in_colon,
            _State.before_value: self._in_before_value,
            _State.after_value: self._in_after_value,
            _State.text: self._in_text,
            _State.other: self._in_other,
        }

    @property
    def stuck(self) -> bool:
        """True once the model writes nothing but white space."""
        return self._run_of_space > _MOST_SPACE

    def feed(self, piece: str) -> Iterator[Part]:
        """Take the next piece and yield parts of the watched field, each as soon as it is read."""
        # In steps, since each character that is read copies what is left.
        for start in range(0, len(piece), _STEP):
            self._pending += self._until_stuck(piece[start : start + _STEP])
            yield from self._read()

    def _read(self) -> Iterator[Part]:
        while self._pending and self._state in self._steps:
            before = self._state, len(self._pending)
            part = self._steps[self._state]()
            if part is not None and part != "":
                yield part
            if before == (self._state, len(self._pending)):
                break
        if self._state not in self._steps:
            self._pending = ""

    def _until_stuck(self, piece: str) -> str:
        """Cut a piece where white space has gone on for too long, wherever the pieces end."""
        if self.stuck:
            return ""
        leading = len(piece) - len(piece.lstrip(_SPACE))
        room = _MOST_SPACE - self._run_of_space
        endless = _ENDLESS.search(piece)
        if leading > room:
            piece, self._run_of_space = piece[: room + 1], _MOST_SPACE + 1
        elif endless:
            piece, self._run_of_space = piece[: endless.end()], _MOST_SPACE + 1
        else:
            trailing = len(piece) - len(piece.rstrip(_SPACE))
            self._run_of_space = self._run_of_space + trailing if trailing == len(piece) else trailing
        self.taken += len(piece)
        return piece

    def _take(self, count: int) -> str:
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    def _skip_space(self) -> None:
        self._pending = self._pending.lstrip(_SPACE)

    def _in_start(self) -> None:
        self._pending = _LEADING.sub("", self._pending, count=1)
        before = BEFORE_AN_OBJECT.match(self._pending)
        begun = self._pending[before.end() :] if before else self._pending
        if begun.startswith("{"):
            self._take(len(self._pending) - len(begun) + 1)
            self._state = _State.key
        elif not _FENCE.startswith(begun):
            self._state = _State.words

    def _in_words(self) -> None:
        end = END_OF_THINKING.search(self._pending)
        if end:
            self._take(end.end())
            self._state = _State.start
        else:
            self._take(max(0, len(self._pending) - _LONGEST_TAG))

    def _in_key(self) -> None:
        self._skip_space()
        if self._pending:
            first = self._take(1)
            self._raw = []
            empty = first == "}" and not self.seen
            self._state = _State.key_text if first == '"' else _State.done if empty else _State.broken

    def _in_after_value(self) -> None:
        self._skip_space()
        if self._pending:
            self._state = {",": _State.key, "}": _State.done}.get(self._take(1), _State.broken)

    def _in_key_text(self) -> None:
        if self._read_string():
            self._key = self._decode("".join(self._raw))
            self._state = _State.colon

    def _in_colon(self) -> None:
        self._skip_space()
        if self._pending:
            self._state = _State.before_value if self._take(1) == ":" else _State.broken

    def _in_before_value(self) -> None:
        self._skip_space()
        if not self._pending:
            return
        self._raw, self._depth, self._nested_string = [], 0, False
        if self._key in self.seen or (self._fields is not None and self._key not in self._fields):
            self._state = _State.broken
        elif self._pending[0] == '"':
            self._take(1)
            self._state = _State.text
        else:
            self._state = _State.other

    def _in_text(self) -> str:
        begun = len(self._raw)
        closed = self._read_string()
        text = self._decode_begun(self._raw[begun:]) if self._key == self._watched else ""
        if closed:
            value = "" if self._key == self._watched else self._decode("".join(self._raw))
            self._finish_value(value)
        return text

    def _in_other(self) -> Mapping[str, Any] | None:
        """Read a number, a word, a list or an object up to the comma or brace that ends it, or to an item's end."""
        while self._pending:
            if self._nested_string:
                self._nested_string = not self._read_string()
                if self._nested_string:
                    return None
                self._raw.append('"')
                continue
            plain = _PLAIN.match(self._pending)
            if plain:
                self._raw.append(self._take(plain.end()))
                continue
            sign = self._pending[0]
            if self._depth == 0 and sign in ",}":
                self._finish_value(self._loads("".join(self._raw)))
                return None
            if sign == "{" and self._depth == 1:
                self._item = len(self._raw)
            self._raw.append(self._take(1))
            self._nested_string = sign == '"'
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(sign, 0)
            if sign == "}" and self._depth == 1 and self._key == self._watched and self._raw[0] == "[":
                return cast("Mapping[str, Any] | None", self._loads("".join(self._raw[self._item :])))
        return None

    def _read_string(self) -> bool:
        """Move complete characters of a string from pending to raw; True at its closing quote."""
        while match := _STRING.match(self._pending):
            part = match[0]
            if part == '"':
                self._take(1)
                return True
            # Half of a pair waits for what may be its other half.
            if _HIGH_SURROGATE.search(part) and _HALF_AN_ESCAPE.match(self._pending, match.end()):
                return False
            self._raw.append(self._take(match.end()))
        return False

    def _decode_begun(self, parts: list[str]) -> str:
        """Decode as much as there is before an escape that is none: in smaller pieces it would be out already."""
        text = self._decode("".join(parts))
        if self._state is not _State.broken:
            return text
        decoded = (self._decode(part) for part in parts)
        return "".join(itertools.takewhile(bool, decoded))

    def _decode(self, raw: str) -> str:
        value = self._loads(f'"{raw}"')
        return value if isinstance(value, str) else ""

    def _loads(self, raw: str) -> Any:
        try:
            return loads(raw)
        except (ValueError, RecursionError):
            self._state = _State.broken
            return None

    def _finish_value(self, value: Any) -> None:
        self.seen[self._key] = value
        if self._state is not _State.broken:
            self._state = _State.after_value
