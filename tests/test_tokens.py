"""Tokens are counted offline, exactly, and the same everywhere."""

from __future__ import annotations

import copy
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
import tiktoken
import tiktoken.registry
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from llama_index_grounded import CitingSynthesizer, tokens
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.rendering import MarkdownRenderer, Renderer, XmlRenderer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from llama_index_grounded.tokens import TokenCounter
from tests.hostile import texts

ENCODINGS = ["o200k_base", "cl100k_base"]

lines = st.lists(texts(max_pieces=3).map(lambda text: "".join(text.split())[:5]), min_size=1)


def encoding(name: str) -> tiktoken.Encoding:
    """Have tiktoken's own encoding, loaded without a network."""
    TokenCounter(encoding=name).tokens("")
    return tiktoken.get_encoding(name)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every use of the network an error, and forget all encodings that are loaded."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError("no network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    tokens._load.cache_clear()


@pytest.mark.parametrize("name", ENCODINGS)
@given(texts())
def test_counts_are_those_of_tiktoken(name: str, text: str) -> None:
    """A count is the number of tokens that tiktoken makes of the text as plain text."""
    assert TokenCounter(encoding=name).count(text) == len(encoding(name).encode_ordinary(text))


@pytest.mark.parametrize("name", ENCODINGS)
@given(lines)
def test_long_texts_are_cut_where_tokens_split(name: str, lines: list[str]) -> None:
    """A text that is counted in pieces has as many tokens as in one piece, also where slashes follow line ends."""
    text = "".join(f"x{line}\n/{line}\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_PIECE", 16)
        assert len(list(tokens._pieces(text))) > (len(text) > 40)
        assert TokenCounter(encoding=name).tokens(text) == len(encoding(name).encode_ordinary(text))


@given(texts(max_pieces=40), st.integers(1, 20))
def test_pieces_make_up_the_text(text: str, size: int) -> None:
    """Cutting loses nothing, and no piece is longer than twice the size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_PIECE", size)
        pieces = list(tokens._pieces(text))
    assert "".join(pieces) == text
    assert all(len(piece) <= 2 * size for piece in pieces)


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000"])
def test_blanks_without_end(blank: str) -> None:
    """A million blanks are counted, where the regular expression of o200k_base overflows its stack."""
    assert 0 < TokenCounter().tokens(blank * 1_000_000) <= 3_000_000


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("cache", ["empty folder", "", None])
def test_counting_works_offline(name: str, cache: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No network and no cache of the user's own are needed, and the variable that names the cache is left alone."""
    folder = str(tmp_path) if cache == "empty folder" else cache
    if folder is None:
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    else:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", folder)
    assert TokenCounter(encoding=name).count("How many days?") == 4
    assert os.environ.get("TIKTOKEN_CACHE_DIR") == folder
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_network")
def test_an_encoding_that_needs_a_download_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Offline, a further encoding is a clear error that names those which need no download."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"p50k_base.*o200k_base and cl100k_base need no download"):
        TokenCounter(encoding="p50k_base").count("x")


def test_an_unknown_encoding_is_an_error_on_use() -> None:
    """A misspelt encoding is named in the error."""
    with pytest.raises(ConfigurationError, match="o200k_bass"):
        TokenCounter(encoding="o200k_bass").count("x")


@pytest.mark.timeout(180)  # a new process imports LlamaIndex, which a busy machine does slowly
def test_importing_loads_no_encoding() -> None:
    """In a process without a network the package imports, has loaded no encoding, and then counts."""
    code = (
        "import socket\n"
        "def refuse(*_, **__): raise OSError('no network')\n"
        "socket.getaddrinfo = socket.socket.connect = refuse\n"
        "from llama_index_grounded.tokens import TokenCounter, _load\n"
        "print(_load.cache_info().currsize, TokenCounter().count('How many days?'))"
    )
    env = {name: value for name, value in os.environ.items() if name != "TIKTOKEN_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["0", "4"]


def test_another_thread_may_take_the_variable_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama-index-core removes the same variable when it loads its own tokenizer; that is no error for us."""
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setattr(tiktoken, "get_encoding", lambda _: os.environ.pop("TIKTOKEN_CACHE_DIR"))
    assert tokens._load_bundled("o200k_base")
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.parametrize(
    "text, o200k, cl100k",
    [
        ("How many days?", 4, 4),
        ("Merhaba dünya", 3, 5),
        ("see <|endoftext|> here", 9, 8),
        ("<|im_start|>system<|im_end|>", 13, 13),
        ("", 0, 0),
    ],
)
def test_known_counts(text: str, o200k: int, cl100k: int) -> None:
    """Encodings differ, and what looks like a special token is plain text."""
    assert [TokenCounter(encoding=name).count(text) for name in ENCODINGS] == [o200k, cl100k]


@pytest.mark.parametrize("method", ["encode", "encode_ordinary"])
@pytest.mark.parametrize("renderer", [XmlRenderer(), MarkdownRenderer()], ids=["xml", "markdown"])
def test_a_method_of_an_encoding_takes_special_tokens_for_text(method: str, renderer: Renderer) -> None:
    """By itself ``encode`` raises for a text that holds one, in the middle of a query."""
    counter = TokenCounter(tokenizer=getattr(encoding("cl100k_base"), method))
    assert counter.tokens("<|endoftext|>") == TokenCounter(encoding="cl100k_base").tokens("<|endoftext|>")
    synthesizer = CitingSynthesizer(ScriptedLLM(["never asked"]), counter=counter, renderer=renderer)
    plan = synthesizer.preview("What is <|endoftext|>?", make_nodes(["<|endoftext|> ends a text."]))
    assert len(plan.nodes) == 1


@given(st.integers(0, 10**7), st.floats(0.1, 10), st.integers(0, 100))
def test_an_estimate_grows_with_the_count(count: int, margin: float, overhead: int) -> None:
    """One token more never makes the estimate smaller, and without margin and overhead it is the count."""
    counter = TokenCounter(margin=margin, overhead=overhead)
    assert counter.estimate(count) <= counter.estimate(count + 1)
    assert TokenCounter().estimate(count) == count


@pytest.mark.parametrize(
    "count, margin, overhead, estimate",
    [(0, 1.5, 10, 0), (100, 1.1, 0, 110), (4, 1.5, 10, 16), (1, 1.01, 0, 2), (3, 0.5, 0, 2), (1000, 1.15, 7, 1157)],
)
def test_margin_and_overhead_apply_once(count: int, margin: float, overhead: int, estimate: int) -> None:
    """The margin multiplies the sum, rounded up; the overhead is added once; nothing stays nothing."""
    assert TokenCounter(margin=margin, overhead=overhead).estimate(count) == estimate


@pytest.mark.parametrize(
    "options",
    [
        {"margin": float("nan")},
        {"margin": float("inf")},
        {"margin": 0},
        {"margin": -1.0},
        {"overhead": -1},
        {"overhead": 1.5},
        {"tokenizer": "cl100k_base"},
        {"encodings": "cl100k_base"},
        {"encoding": 5},
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """Not-a-number, negative, misspelt and wrongly typed options are refused at construction."""
    with pytest.raises(ValidationError):
        TokenCounter(**options)


@pytest.mark.parametrize("counted", [{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1]}, 3, None, iter([1, 2])])
def test_a_tokenizer_must_return_its_tokens(counted: object) -> None:
    """A mapping, a number or an iterator is no sequence of tokens: counting it would be wrong without a word."""
    with pytest.raises(ConfigurationError, match="sequence of tokens"):
        TokenCounter(tokenizer=lambda _: counted).count("a text")


@given(texts())
def test_copies_count_the_same(text: str) -> None:
    """Pickle, deep copy, dict and JSON give a counter that counts and is named the same."""
    counter = TokenCounter(encoding="cl100k_base", margin=1.2, overhead=3)
    for copied in (
        pickle.loads(pickle.dumps(counter)),  # noqa: S301 - our own bytes
        copy.deepcopy(counter),
        TokenCounter(**counter.model_dump()),
        TokenCounter.model_validate_json(counter.model_dump_json()),
    ):
        assert (copied, copied.name, copied.count(text)) == (counter, counter.name, counter.count(text))


def test_a_tokenizer_survives_pickle_and_deep_copy() -> None:
    """A function is pickled by reference and counts on; one that can not be pickled is an error, not lost."""
    counter = TokenCounter(tokenizer=str.split)
    for copied in (pickle.loads(pickle.dumps(counter)), copy.deepcopy(counter)):  # noqa: S301 - our own bytes
        assert copied.count("two words") == 2
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(TokenCounter(tokenizer=lambda text: text))


def test_a_tokenizer_is_not_lost_in_a_dict() -> None:
    """Writing a counter with a callable to a dict or to JSON fails and says what to do."""
    counter = TokenCounter(tokenizer=str.split)
    for dump in (counter.model_dump, counter.model_dump_json):
        with pytest.raises(ValueError, match="name an encoding instead"):
            dump()


def test_names_tell_tokenizers_apart() -> None:
    """The same tokenizer has one name in every counter; another never gets it, also after the first one is gone."""

    class Words:
        def __call__(self, text: str) -> Sequence[str]:
            return text.split()

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Words)

        __hash__ = None  # type: ignore[assignment]

    words = Words()
    names = [TokenCounter(tokenizer=lambda text, n=n: text * n).name for n in range(5)]
    assert len(set(names)) == 5
    assert TokenCounter(tokenizer=str.split).name == TokenCounter(tokenizer=str.split, margin=1.5).name
    assert TokenCounter(tokenizer=words).name == TokenCounter(tokenizer=words).name
    assert TokenCounter(tokenizer=words).name != TokenCounter(tokenizer=Words()).name


def test_a_counter_can_not_be_changed() -> None:
    """Whoever shares a counter counts the same."""
    with pytest.raises(ValidationError):
        setattr(TokenCounter(), "margin", 2.0)  # noqa: B010 - type checkers know it too
