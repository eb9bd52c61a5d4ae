"""Count tokens offline, with special tokens as the plain text that they are in a document."""

from __future__ import annotations

import functools
import math
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llama_index.core
from pydantic import BaseModel, ConfigDict, Field, field_serializer, model_validator

from llama_index_grounded.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    import tiktoken

__all__ = ["TokenCounter"]

DEFAULT_ENCODING = "o200k_base"
_BUNDLED = ("o200k_base", "cl100k_base")
_cache_variable = threading.Lock()


class TokenCounter(BaseModel):
    """Counts the tokens of a text, or estimates the prompt tokens that another tokenizer will report.

    Args:
        encoding: Name of a tiktoken encoding. ``o200k_base`` and ``cl100k_base`` need no network: llama-index-core
            brings their files.
        margin: Factor on the count for models with another tokenizer, at least 1 token per token: 1.15 adds 15 %.
        overhead: Tokens that a chat template adds to a prompt, counted once.
        tokenizer: Any callable from a text to its tokens, in place of the encoding. It is pickled by reference and
            can not be written to a dict or to JSON.

    Raises:
        ConfigurationError: On use, when the encoding is unknown or its file can not be had.

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

    @model_validator(mode="after")
    def _check_tokenizer(self) -> TokenCounter:
        if self.tokenizer is not None and not callable(self.tokenizer):
            msg = f"tokenizer must be a callable from a text to its tokens, not {type(self.tokenizer).__name__}"
            raise ConfigurationError(msg)
        return self

    @field_serializer("tokenizer")
    def _refuse_to_lose_it(self, value: object) -> None:
        if value is not None:
            msg = "a tokenizer callable can not be written to a dict or to JSON; name an encoding instead"
            raise ConfigurationError(msg)

    @classmethod
    def default(cls) -> TokenCounter:
        """Count with the tokenizer that the user set in LlamaIndex's ``Settings``, else with ``o200k_base``."""
        chosen = llama_index.core.global_tokenizer
        encoding = _encoding_behind(chosen)
        if chosen is None or (encoding is not None and _is_cores_own_default(chosen, encoding)):
            return cls()
        return cls(tokenizer=chosen if encoding is None else encoding.encode_ordinary)

    @property
    def name(self) -> str:
        """Name what counts: two counters of the same name give the same plain counts."""
        return self.encoding if self.tokenizer is None else f"tokenizer {id(self.tokenizer)}"

    def tokens(self, text: str) -> int:
        """Return the plain token count of a text, without margin and overhead."""
        return len(self._encode(text))

    def estimate(self, tokens: int) -> int:
        """Apply margin and overhead to a sum of plain counts, once; 0 stays 0."""
        # Ten decimals: 100 × 1.1 must not become 111 by a rounding error.
        return math.ceil(round(tokens * self.margin, 10)) + self.overhead if tokens else 0

    def count(self, text: str) -> int:
        """Return the estimated prompt tokens of a text: `tokens`, then `estimate`."""
        return self.estimate(self.tokens(text))

    @property
    def _encode(self) -> Callable[[str], Any]:
        return _load(self.encoding).encode_ordinary if self.tokenizer is None else self.tokenizer


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
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
