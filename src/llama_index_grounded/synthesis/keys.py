"""Source ids as a model writes them, and what they stand for.

The model is shown sources keyed ``S1`` to ``Sn`` and names them again in its ``sources`` field, in many shapes.
The rule, in this order:

1. **Value.** A list (or tuple) holds strings and integers; a string is read as in 2; an integer becomes its decimal
   string. Anything else (``None``, a mapping, a nested list, a boolean, a float) raises ``ValueError``.
2. **String.** A JSON list inside a string is read as a list. Otherwise the string is cut at white space, ``,`` ``;``
   ``、`` ``،`` ``，`` ``；`` ``&``, "and", "ve", quotes, and brackets ``() [] （） 【】 ［］``, but only where *every*
   part looks like an id: ``S1``, ``1``, a range such as ``S1-S3`` or ``S1–3``, or OpenAI's ``1†S1`` (which is its
   ``S1``). Where one part does not look like an id, the whole string is one id.
3. **Id.** White space, brackets and quotes that enclose it are dropped, and a leading ``s`` in front of a numeral
   becomes ``S``. Nothing else is folded: ``S01``, ``S１``, ``S²``, ``S 1`` and ``1`` stay as they are. Empty ids are
   dropped; order is kept; a repeated id counts once. A range stays one id.
4. **Membership** is exact. A range stands for its keys only if both ends are keys and the first does not come after
   the second in prompt order; so a range can't name more than the sources that exist. Otherwise it is one unknown id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, cast

# Python's isnumeric() characters are word characters; the caller checks the rest with isnumeric() itself.
NUMERAL: Final = r"[^\W_a-zA-Z]+"
DASH: Final = "[-\u2010-\u2013]"
SEPARATORS: Final = ",;、،，；&"

_RANGE = re.compile(rf"([Ss]{NUMERAL})\s?{DASH}\s?[Ss]?({NUMERAL})")
_OPENAI_PREFIX = re.compile(r"[0-9]+†(?=[Ss])")
_LOOKS_LIKE_ID = re.compile(rf"(?:[0-9]+†)?[Ss]?({NUMERAL})(?:{DASH}[Ss]?({NUMERAL}))?")
# Most ids by far; the rest of the rule is for what this does not know.
_COMMON_ID = re.compile(rf"[Ss]?[0-9]+(?:{DASH}[Ss]?[0-9]+)?")
_PAIRS = ("()", "[]", "（）", "【】", "［］", '""', "''", "``", "“”", "‘’", "«»")
_WRAPPING = "".join(_PAIRS)
_CUTS = re.compile(rf"(?:[\s{SEPARATORS}{re.escape(_WRAPPING)}]|(?<!\w)(?:and|ve)(?!\w))+")
_SPACED_DASH = re.compile(rf"(?<=\w)(?:\s({DASH})\s?|({DASH})\s)(?=\w)")


class KeyIndex:
    """The valid keys in prompt order, and exact look-up of what was written.

    Args:
        valid_keys: The keys that the prompt showed, in prompt order; a repeated key counts once.
    """

    def __init__(self, valid_keys: Iterable[str]) -> None:
        """Remember the keys and their order."""
        self._order = tuple(dict.fromkeys(valid_keys))
        self._place = {key: place for place, key in enumerate(self._order)}

    def __len__(self) -> int:
        """Return the number of different keys."""
        return len(self._order)

    def lookup(self, written: str) -> tuple[str, ...]:
        """Return the keys that a written id stands for: one, those of a valid range, or none if it is unknown.

        Args:
            written: An id or a range without white space around it, such as ``"S1"``, ``"s1"`` or ``"S1–3"``.
        """
        name = capital(written)
        if name in self._place:
            return (name,)
        ends = _RANGE.fullmatch(name)
        if ends is None:
            return ()
        first, last = self._place.get(capital(ends[1])), self._place.get(f"S{ends[2]}")
        if first is None or last is None:
            return ()
        return self._order[first : last + 1]


def capital(written: str) -> str:
    """Return the id with a leading ``s`` in front of a numeral as ``S``; nothing else changes."""
    return f"S{written[1:]}" if written[:1] == "s" and written[1:2].isnumeric() else written


def without_prefix(written: str) -> str:
    """Return the id without the ``1†`` that OpenAI's models put in front."""
    return _OPENAI_PREFIX.sub("", written, count=1)


def normalise_ids(value: object) -> list[str]:
    """Return the ids that a model's ``sources`` field holds, by the rule in the module's docstring.

    Args:
        value: What the field held: a list or tuple of strings and integers, a string, or an integer.

    Returns:
        The ids in their order, each once. Which of them exist is for `resolve_ids` to say.

    Raises:
        ValueError: The value, or an item of a list, is of another type.

    Example:
        >>> normalise_ids(["s1", " S2 ", "[S3][S4]"])
        ['S1', 'S2', 'S3', 'S4']
    """
    if isinstance(value, str):
        return list(dict.fromkeys(_ids_of_string(value)))
    if isinstance(value, (list, tuple)):
        return list(dict.fromkeys(_ids_of_list(cast("Sequence[object]", value))))
    return [_decimal(value, "source ids")]


def resolve_ids(ids: Sequence[str], valid_keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide ids into the keys that exist and the ids that do not.

    Args:
        ids: Ids as `normalise_ids` returns them.
        valid_keys: The keys that the prompt showed, in prompt order.

    Returns:
        The valid keys, ranges expanded, and the unknown ids, both in order of first appearance and without
        repetition.

    Example:
        >>> resolve_ids(["S2", "S9", "S1-S3"], ["S1", "S2", "S3"])
        (['S2', 'S1', 'S3'], ['S9'])
    """
    index = KeyIndex(valid_keys)
    valid: dict[str, None] = {}
    unknown: list[str] = []
    for written in dict.fromkeys(ids):
        keys = index.lookup(written)
        if not keys:
            unknown.append(written)
        elif len(valid) < len(index):
            valid.update(dict.fromkeys(keys))
    return list(valid), unknown


def _ids_of_list(items: Sequence[object]) -> list[str]:
    found: list[str] = []
    for place, item in enumerate(items):
        found.extend(_cut(item) if isinstance(item, str) else [_decimal(item, f"source id {place}")])
    return found


def _ids_of_string(text: str) -> list[str]:
    if text.lstrip()[:1] == "[":
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return _cut(text)
        return _ids_of_list(cast("list[object]", value))
    return _cut(text)


def _cut(text: str) -> list[str]:
    if _COMMON_ID.fullmatch(text):
        return [capital(text)]
    joined = _SPACED_DASH.sub(lambda dash: dash[1] or dash[2], text)
    parts = dict.fromkeys(part for part in _CUTS.split(joined) if part)
    if all(map(_looks_like_id, parts)):
        return [capital(without_prefix(part)) for part in parts]
    return [capital(_unwrapped(text))]


def _looks_like_id(part: str) -> bool:
    if _COMMON_ID.fullmatch(part):
        return True
    shape = _LOOKS_LIKE_ID.fullmatch(part)
    return shape is not None and all(numeral is None or numeral.isnumeric() for numeral in shape.groups())


def _unwrapped(text: str) -> str:
    """Return the text without the white space, brackets and quotes that enclose it."""
    text = text.strip()
    first, last = 0, len(text) - 1
    while first < last and (text[first] + text[last] in _PAIRS or text[first].isspace() or text[last].isspace()):
        paired = text[first] + text[last] in _PAIRS
        first += paired or text[first].isspace()
        last -= paired or text[last].isspace()
    return text[first : last + 1]


def _decimal(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{what} must be strings or integers, not {type(value).__name__}"
        raise ValueError(message)  # noqa: TRY004 - pydantic turns a ValueError into a validation error, a TypeError not
    return str(value)
