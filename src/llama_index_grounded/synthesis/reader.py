"""Read a reply while it is still being written: verdict and sources first, then the answer, character by character.

The reader finds the same object as `answer.read_reply` and the same text as `validate.judge`, whatever the size of the
pieces; those two judge the whole reply in the end. What it adds is when a character may be shown: not before a verdict
that answers and a valid source are known, and not while it may still become part of a tag or a marker. A model that
writes its fields in another order makes the text wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from llama_index_grounded.rendering import clean
from llama_index_grounded.schema import Verdict
from llama_index_grounded.synthesis.answer import loads
from llama_index_grounded.synthesis.cleaner import AnswerCleaner
from llama_index_grounded.synthesis.keys import normalise_ids, resolve_ids
from llama_index_grounded.synthesis.validate import has_words

__all__ = ["ReplyReader"]

_SPACE = " \t\r\n"
_MOST_SPACE = 512
"""White space in a row after which a model is taken to be stuck; a grammar allows it for ever."""
_STEP = 1024
_ENDLESS = re.compile(rf"[{_SPACE}]{{{_MOST_SPACE + 1}}}")
_THINK, _END_OF_THINK = "<think>", "</think>"
_STRING = re.compile(
    r"""[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]|\"""", re.DOTALL
)
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]..\Z")
_HALF_AN_ESCAPE = re.compile(r"\\?\Z|\\u.{0,3}\Z", re.DOTALL)
_PLAIN = re.compile(r"[^\"{}\[\],]+")


class _State(Enum):
    """Where in the reply the reader is."""

    start = auto()
    thinking = auto()
    after_thinking = auto()
    prose = auto()
    key = auto()
    key_text = auto()
    colon = auto()
    before_value = auto()
    after_value = auto()
    text = auto()
    other = auto()
    done = auto()
    broken = auto()


class ReplyReader:
    """Takes the pieces of one reply and returns what may be shown.

    Args:
        keys: The keys that were in the prompt.
        fields: Names that the object may have; None for any.
        inline_citations: Keep ``[S1]`` markers.
        most_chars: Stop after that many shown characters.
    """

    def __init__(
        self, keys: Sequence[str], *, fields: Container[str] | None, inline_citations: bool, most_chars: int
    ) -> None:
        self._keys = keys
        self._fields = fields
        self._most_chars = most_chars
        self._cleaner = AnswerCleaner(keys, inline_citations=inline_citations)
        self._state = _State.start
        self._pending = ""
        """What has come and is not yet read; short, whatever the reply."""
        self._raw: list[str] = []
        """The value that is being read, as written."""
        self._depth = 0
        self._nested_string = False
        self._key = ""
        self._seen: dict[str, Any] = {}
        self._held: list[str] = []
        self._open = False
        """True once a verdict that answers and a valid source are known."""
        self._waiting = ""
        """White space, and markers before the first word: shown only if something follows."""
        self._begun = False
        self._bare = AnswerCleaner(keys, inline_citations=False)
        """Tells whether there is a word besides the markers."""
        self._run_of_space = 0
        self.taken = 0
        """Characters of the reply that were read; what follows them does not count."""
        self.shown = 0
        """Characters that were handed out."""
        self._steps: Mapping[_State, Callable[[], str | None]] = {
            _State.start: self._in_start,
            _State.thinking: self._in_thinking,
            _State.after_thinking: self._in_after_thinking,
            _State.prose: self._in_prose,
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

    @property
    def too_long(self) -> bool:
        """True once more than ``most_chars`` characters were to be shown."""
        return self.shown > self._most_chars

    def feed(self, piece: str) -> str:
        """Take the next piece and return what may be shown now."""
        # In steps, since each character that is read copies what is left.
        return "".join(self._feed(piece[start : start + _STEP]) for start in range(0, len(piece), _STEP))

    def _feed(self, piece: str) -> str:
        self._pending += self._until_stuck(piece)
        shown: list[str] = []
        while self._pending and self._state in self._steps:
            before = self._state, len(self._pending)
            text = self._steps[self._state]()
            if text:
                shown.append(self._show(text))
            if before == (self._state, len(self._pending)):
                break
        if self._state not in self._steps:
            self._pending = ""
        text = "".join(shown)
        room = self._most_chars - self.shown
        self.shown += len(text)
        return text[: max(room, 0)]

    def _take(self, count: int) -> str:
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    def _skip_space(self) -> None:
        self._pending = self._pending.lstrip(_SPACE)

    def _in_start(self) -> None:
        body = self._pending.lstrip("\ufeff").lstrip()
        if body and not _THINK.startswith(body[: len(_THINK)]):
            self._state = _State.prose
        elif len(body) >= len(_THINK):
            self._pending, self._state = body[len(_THINK) :], _State.thinking

    def _in_thinking(self) -> None:
        end = self._pending.find(_END_OF_THINK)
        if end >= 0:
            self._take(end + len(_END_OF_THINK))
            self._state = _State.after_thinking
        else:
            self._take(max(0, len(self._pending) - len(_END_OF_THINK)))

    def _in_after_thinking(self) -> None:
        body = self._pending.lstrip()
        if body.startswith(_THINK):
            self._state = _State.broken
        elif body and not _THINK.startswith(body):
            self._state = _State.prose

    def _in_prose(self) -> None:
        start = self._pending.find("{")
        if start < 0:
            self._pending = ""
            return
        self._take(start + 1)
        self._state = _State.key

    def _in_key(self) -> None:
        self._skip_space()
        if self._pending:
            first = self._take(1)
            self._raw = []
            empty = first == "}" and not self._seen
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
        if self._key in self._seen or (self._fields is not None and self._key not in self._fields):
            self._state = _State.broken
        elif self._pending[0] == '"':
            self._take(1)
            self._state = _State.text
        else:
            self._state = _State.other

    def _in_text(self) -> str:
        begun = len(self._raw)
        closed = self._read_string()
        text = self._decode("".join(self._raw[begun:])) if self._key == "answer" else ""
        if closed:
            value = "" if self._key == "answer" else self._decode("".join(self._raw))
            self._finish_value(value)
        return text

    def _in_other(self) -> None:
        """Read a number, a word, a list or an object up to the comma or brace that ends it."""
        while self._pending:
            if self._nested_string:
                self._nested_string = not self._read_string()
                if self._nested_string:
                    return
                self._raw.append('"')
                continue
            plain = _PLAIN.match(self._pending)
            if plain:
                self._raw.append(self._take(plain.end()))
                continue
            sign = self._pending[0]
            if self._depth == 0 and sign in ",}":
                self._finish_value(self._loads("".join(self._raw)))
                return
            self._raw.append(self._take(1))
            self._nested_string = sign == '"'
            self._depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(sign, 0)

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
        self._seen[self._key] = value
        if self._state is not _State.broken:
            self._state = _State.after_value

    def _show(self, text: str) -> str:
        """Pass on what is cleaned and certain, without white space at either end."""
        self._held.append(text)
        self._open = self._open or self._may_show()
        if not self._open:
            return ""
        held, self._held = clean("".join(self._held)), []
        cleaned = self._waiting + self._cleaner.feed(held)
        if not self._begun:
            cleaned = cleaned.lstrip()
            self._begun = has_words(self._bare.feed(held))
        body = cleaned.rstrip() if self._begun else ""
        self._waiting = cleaned[len(body) :]
        return body

    def _may_show(self) -> bool:
        """Tell whether a verdict that answers and a valid source are known."""
        if "verdict" not in self._seen or "sources" not in self._seen:
            return False
        verdict = self._seen["verdict"]
        try:
            answers = Verdict(str(verdict).strip().lower()) is not Verdict.not_in_sources
            valid, _ = resolve_ids(normalise_ids(self._seen["sources"]), self._keys)
        except ValueError:
            return False
        return answers and bool(valid)
