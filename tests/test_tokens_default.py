"""Which tokenizer counts where none is named: the one in LlamaIndex's settings, else our own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import llama_index.core
import pytest
import tiktoken
from llama_index.core import Settings, set_global_tokenizer
from llama_index.core.utils import get_tokenizer

from llama_index_grounded.tokens import TokenCounter

ENCODINGS = ["o200k_base", "cl100k_base"]


def encoding(name: str) -> tiktoken.Encoding:
    """Have tiktoken's own encoding, loaded without a network."""
    TokenCounter(encoding=name).tokens("")
    return tiktoken.get_encoding(name)


@pytest.fixture(autouse=True)
def no_global_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin and end without a tokenizer in LlamaIndex's settings."""
    monkeypatch.setattr(llama_index.core, "global_tokenizer", None)


def test_without_a_setting_the_default_is_o200k() -> None:
    """Nobody chose a tokenizer: o200k_base counts."""
    assert TokenCounter.default() == TokenCounter(encoding="o200k_base")


def test_the_default_of_core_is_no_choice() -> None:
    """The tokenizer that llama-index-core sets by itself on first use is not mistaken for the user's."""
    get_tokenizer()
    assert llama_index.core.global_tokenizer is not None
    assert TokenCounter.default() == TokenCounter()


@pytest.mark.parametrize("set_it", [set_global_tokenizer, lambda chosen: setattr(Settings, "tokenizer", chosen)])
def test_the_tokenizer_of_the_settings_counts(set_it: Callable[[Any], None]) -> None:
    """A callable that the user set, in either way, is the default."""
    set_it(str.split)
    assert TokenCounter.default().count("three short words") == 3


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_of_the_settings_is_known_by_its_name(name: str) -> None:
    """A tiktoken encoding that the user set counts special tokens as plain text, and can be written to JSON."""
    set_global_tokenizer(encoding(name).encode)
    counter = TokenCounter.default()
    assert counter.encoding == name
    assert counter.count("<|endoftext|>") == len(encoding(name).encode_ordinary("<|endoftext|>"))
    assert TokenCounter.model_validate_json(counter.model_dump_json()) == counter


def test_a_partial_of_an_encoding_is_a_choice() -> None:
    """Only core's own form of its default counts as no choice."""
    set_global_tokenizer(functools.partial(encoding("cl100k_base").encode, disallowed_special=()))
    assert TokenCounter.default() == TokenCounter(encoding="cl100k_base")


def test_an_encoding_of_the_users_own() -> None:
    """An encoding that tiktoken does not know by name counts as plain text too."""
    base = encoding("cl100k_base")
    own = tiktoken.Encoding(
        "own", pat_str=base._pat_str, mergeable_ranks=base._mergeable_ranks, special_tokens={"<|x|>": 100_300}
    )
    set_global_tokenizer(own.encode)
    assert TokenCounter.default().count("<|x|>") == base_count("<|x|>")


def base_count(text: str) -> int:
    """Count with cl100k_base."""
    return TokenCounter(encoding="cl100k_base").count(text)


def test_an_object_with_encode_is_a_tokenizer() -> None:
    """What has an ``encode`` method can be set in LlamaIndex and then counts."""

    class Words:
        def encode(self, text: str, *_: object, **__: object) -> list[Any]:
            return text.split()

    set_global_tokenizer(Words())
    assert TokenCounter.default().count("two words") == 2
