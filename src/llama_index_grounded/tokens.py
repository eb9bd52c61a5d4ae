"""Count tokens offline, with special tokens as the plain text that they are in a document."""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_index.core
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from llama_index_grounded.errors import ConfigurationError

if TYPE_CHECKING:
    import tiktoken

__all__ = ["TokenCounter"]

DEFAULT_ENCODING = "o200k_base"
_BUNDLED = ("o200k_base", "cl100k_base")
_PIECE = 200_000
_LINE_START = re.compile(r"(?<=\n)[^\s/]")
_numbers = itertools.count(1)
_cache_variable = threading.Lock()


class TokenCounter(BaseModel):
    """Counts the tokens of a text, or estimates the prompt tokens that another tokenizer will report.

    Args:
        encoding: Name of a tiktoken encoding. ``o200k_base`` and ``cl100k_base`` need no network: llama-index-core
            brings their files.
        margin: Factor on the count, 0.1 to 10, for models with another tokenizer: 1.15 adds 15 %.
        overhead: Tokens that a chat template adds to a prompt, counted once.
        tokenizer: Any callable from a text to a sequence of its tokens, in place of the encoding. It is pickled by
            reference and can not be written to a dict or to JSON. ``encode`` of a tiktoken encoding, with whatever
            options, stands for its ``encode_ordinary``.

    Raises:
        ConfigurationError: On use, when the encoding is unknown or its file can not be had, or when the tokenizer
            does not return a sequence.

    Example:
        >>> TokenCounter().count("How many days?")
        4
        >>> TokenCounter(margin=1.5, overhead=10).count("How many days?")
        16
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    encoding: str = DEFAULT_ENCODING
    margin: float = Field(default=1.0, ge=0.1, le=10.0, allow_inf_nan=False)
    overhead: int = Field(default=0, ge=0)
    tokenizer: Any = Field(default=None)

    @field_validator("tokenizer")
    @classmethod
    def _read_plainly(cls, tokenizer: object) -> object:
        """Refuse what can not count; of tiktoken, count with the method that takes special tokens for plain text."""
        if tokenizer is not None and not callable(tokenizer):
            msg = f"tokenizer must be a callable from a text to its tokens, not {type(tokenizer).__name__}"
            raise ConfigurationError(msg)
        encoding = _encoding_behind(tokenizer)
        return tokenizer if encoding is None else encoding.encode_ordinary

    @field_serializer("tokenizer")
    def _refuse_to_lose_it(self, value: object) -> None:
        if value is not None:
            msg = "a tokenizer callable can not be written to a dict or to JSON; name an encoding instead"
            raise ConfigurationError(msg)

    @classmethod
    def default(cls) -> TokenCounter:
        """Count with the tokenizer that the user set in LlamaIndex's ``Settings``, else with ``o200k_base``.

        One that is made just like llama-index-core's own default can not be told from it and counts as not set.
        """
        chosen = llama_index.core.global_tokenizer
        encoding = _encoding_behind(chosen)
        if chosen is None or (encoding is not None and _is_cores_own_default(chosen, encoding)):
            return cls()
        if encoding is not None and encoding.name in _BUNDLED:
            return cls(encoding=encoding.name)
        return cls(tokenizer=chosen)

    @property
    def name(self) -> str:
        """Name what counts: two counters of the same name give the same plain counts."""
        if self.tokenizer is None:
            return self.encoding
        hashable = self.tokenizer if isinstance(self.tokenizer, Hashable) else self.tokenizer.__call__
        return f"tokenizer {_number_of(hashable)}"

    @property
    def counts_in_threes(self) -> bool:
        """True where any number of up to three digits is one token."""
        return self.tokenizer is None and self.encoding in _BUNDLED

    def tokens(self, text: str) -> int:
        """Return the plain token count of a text, without margin and overhead."""
        if self.tokenizer is None:
            encode = _load(self.encoding).encode_ordinary
            return len(encode(text)) if len(text) <= _PIECE else sum(len(encode(piece)) for piece in _pieces(text))
        found = self.tokenizer(text)
        # The mapping that Hugging Face tokenizers return has two or three entries for a text of any length.
        if isinstance(found, Mapping) or not isinstance(found, Sized):
            msg = f"the tokenizer must return a sequence of tokens, not {type(found).__name__}; pass its encode method"
            raise ConfigurationError(msg)
        return len(found)

    def estimate(self, tokens: int) -> int:
        """Apply margin and overhead to a sum of plain counts, once; 0 stays 0."""
        # Ten decimals: 100 × 1.1 must not become 111 by a rounding error.
        if not tokens:
            return 0
        margin = self.margin
        return (tokens if margin == 1.0 else math.ceil(round(tokens * margin, 10))) + self.overhead

    def count(self, text: str) -> int:
        """Return the estimated prompt tokens of a text: `tokens`, then `estimate`."""
        return self.estimate(self.tokens(text))


def _pieces(text: str) -> Iterator[str]:
    """Cut a very long text where the pre-tokenizers split anyway: between a line end and what can not belong to it.

    A run of 700,000 blanks overflows the stack of tiktoken's regular expressions. Where no such place is near, the cut
    may cost a token.
    """
    start = 0
    while len(text) - start > _PIECE:
        cut = _LINE_START.search(text, start + _PIECE, start + 2 * _PIECE)
        end = cut.start() if cut else start + 2 * _PIECE
        yield text[start:end]
        start = end
    yield text[start:] if start else text


@functools.lru_cache(maxsize=64)
def _number_of(tokenizer: Callable[[str], Any]) -> int:  # noqa: ARG001 - the cache looks at it
    """Number a tokenizer. The cache holds it, so that no other can come to have its number, as with an id."""
    return next(_numbers)


def _encoding_behind(tokenizer: object) -> tiktoken.Encoding | None:
    """Find the tiktoken encoding that a bound method or a partial of one belongs to."""
    method = tokenizer.func if isinstance(tokenizer, functools.partial) else tokenizer
    owner = getattr(method, "__self__", None)
    return owner if type(owner).__module__.startswith("tiktoken") else None


def _is_cores_own_default(tokenizer: object, encoding: tiktoken.Encoding) -> bool:
    """Tell the tokenizer that llama-index-core sets by itself on first use from one that a user chose."""
    return (
        isinstance(tokenizer, functools.partial)
        and tokenizer.keywords == {"allowed_special": "all"}
        and encoding.name == "cl100k_base"
    )


@functools.cache
def _load(name: str) -> tiktoken.Encoding:
    import tiktoken

    try:
        if name not in _BUNDLED:
            return tiktoken.get_encoding(name)
        with _cache_variable:
            return _load_bundled(name)
    except Exception as error:
        msg = f"the encoding {name!r} could not be loaded ({error}); {' and '.join(_BUNDLED)} need no download"
        raise ConfigurationError(msg) from error


def _load_bundled(name: str) -> tiktoken.Encoding:
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache")
    try:
        return tiktoken.get_encoding(name)
    finally:
        if before is None:
            # llama-index-core does the same in another thread and may have been faster.
            os.environ.pop("TIKTOKEN_CACHE_DIR", None)
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
