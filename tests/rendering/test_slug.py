"""A slug is the anchor that a heading gets in a web page."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.rendering import slug
from tests.hostile import texts


@given(texts())
def test_a_slug_holds_letters_digits_and_single_dashes(text: str) -> None:
    """Nothing but letters, digits, their combining marks and dashes between them is left."""
    made = slug(text)
    assert all(ch == "-" or ch.isalnum() or unicodedata.category(ch).startswith("M") for ch in made)
    assert made == made.strip("-")
    assert "--" not in made


@given(texts())
def test_a_slug_of_a_slug_is_itself(text: str) -> None:
    """Making an anchor of an anchor changes nothing."""
    assert slug(slug(text)) == slug(text)


@given(st.one_of(texts(), st.text("Iİiıa\u0307\u0327 ")))
def test_both_unicode_spellings_give_one_slug(text: str) -> None:
    """Composed and decomposed spellings of a heading lead to the same anchor."""
    assert slug(unicodedata.normalize("NFD", text)) == slug(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    "heading, anchor",
    [
        ("Return window", "return-window"),
        ("  §4.2 — E-books & audio!  ", "4-2-e-books-audio"),
        ("İade Süresi", "iade-süresi"),
        ("I\u0307ade", "iade"),
        ("ISPARTA", "isparta"),
        ("退货期限（21天）", "退货期限-21天"),
        ("मूल्य सूची", "मूल्य-सूची"),
        ("Straße/Größe", "straße-größe"),
        ("/Returns/Return window/", "returns-return-window"),
        ("***", ""),
        ("", ""),
    ],
)
def test_headings_in_many_scripts(heading: str, anchor: str) -> None:
    """Letters of every script stay, lower-cased; every other run is one dash."""
    assert slug(heading) == anchor
