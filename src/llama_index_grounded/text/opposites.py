"""Words that say the opposite of each other, English and Turkish: by a list, prefix (in-, un-) or ending (-siz)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

__all__ = ["TURKISH_WITHOUT", "opposites"]

TURKISH_WITHOUT = re.compile(r"(?P<stem>\w{3,24})s[ıiuü]z(?:d[ıiuü]r|l[ae]r)?")
_TURKISH_WITH = re.compile(r"(?P<stem>\w{3,24})l[ıiuü](?:d[ıiuü]r|l[ae]r)?")

_PAIRS = """
must:may must:can must:should must:optional shall:may shall:can shall:should required:optional mandatory:optional
enable:disable enabled:disabled enables:disables enabling:disabling allow:deny allowed:denied allowed:forbidden
allowed:prohibited permit:forbid permitted:prohibited permitted:forbidden accept:reject accepted:rejected
include:exclude included:excluded includes:excludes including:excluding before:after maximum:minimum most:least
more:less more:fewer increase:decrease increases:decreases increased:decreased above:below over:under upper:lower
true:false yes:no open:closed always:sometimes all:some free:paid public:private higher:lower with:without
latest:earliest start:end starts:ends approved:rejected active:inactive obligatory:voluntary encrypted:plaintext
açık:kapalı zorunlu:isteğe zorunlu:ihtiyari önce:sonra en:az fazla:az çok:az dahil:hariç serbest:yasak
"""
_OPPOSITES: dict[str, set[str]] = {}
for _one, _other in (pair.split(":") for pair in _PAIRS.split()):
    _OPPOSITES.setdefault(_one, set()).add(_other)
    _OPPOSITES.setdefault(_other, set()).add(_one)
_AGAINST = ("un", "in", "im", "ir", "il", "non", "dis", "mis")


def opposites(one: Collection[str], other: Collection[str]) -> tuple[str, str] | None:
    """Return the first word of one that has an opposite in the other, and that opposite; None if there is none.

    Args:
        one: Words in lower case that a text has more of than another; looked at in their order.
        other: Those that the other has more of; a set or a mapping, for speed.

    Example:
        >>> opposites(["returns", "are", "allowed"], {"forbidden": 1})
        ('allowed', 'forbidden')
    """
    for word in one:
        found = next((opposite for opposite in _opposites_of(word) if opposite in other), None)
        if found is None:
            found = next((base for base in _bases(word) if base in other), None)
        if found is not None:
            return word, found
    return None


def _opposites_of(word: str) -> Iterator[str]:
    yield from sorted(_OPPOSITES.get(word, ()))
    yield from (prefix + word for prefix in _AGAINST)
    yield from (f"non-{word}",)
    if with_it := _TURKISH_WITH.fullmatch(word):
        yield from (f"{with_it['stem']}s{vowel}z" for vowel in "ıiuü")


def _bases(word: str) -> Iterator[str]:
    yield from (word.removeprefix(prefix) for prefix in _AGAINST if word.startswith(prefix))
    if without := TURKISH_WITHOUT.fullmatch(word):
        yield from (f"{without['stem']}l{vowel}" for vowel in "ıiuü")
