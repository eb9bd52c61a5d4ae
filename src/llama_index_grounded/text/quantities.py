"""Find the numbers, percentages, amounts, dates, times and versions of a text, in English and Turkish notation.

The rules; `number_words` tells what single numerals, words and dates stand for, `places` what words for places do:

1. Decimal digits of every script count (``٣``, ``１``); ``²`` does not. ``½`` and ``1/2`` are 0.5, ``2½`` is 2.5,
   ``.5`` is 0.5, ``1e6`` a million. A fraction that does not end (``1/3``) has 28 digits. Numbers in URLs and link
   targets are left out; code is text.
2. A sign counts where ``-`` or ``−`` stands right in front of the digits and behind no letter, digit or bracket: ``-5``
   is not ``5``. "minus 5" and "eksi 5" have it too, behind a number they subtract.
3. **Percent**: ``%22``, ``22 %``, ``22 percent``, ``yüzde 22``. **Currency**: a symbol, code or word on either side
   (``$5``, ``5 USD``, ``5 dollars``, ``₺5``, ``5 TL``); the unit is the code. "5 kuruş" is 0.05 TRY, "5 cents" 0.05 ¢,
   of whatever currency. Units of time, length and weight: `measures`.
4. **Multipliers**: ``2.5M``, ``5k``, ``2,5 milyon``, ``5 thousand``. ``5m`` and ``5B`` are 5, too. ``2 milyon 500 bin``
   is two numbers. ``2 buçuk`` is 2.5. Other suffixes do not matter: ``21-day``, ``24'lük``, ``15'i``, ``1990s``.
5. **Ordinals**: ``1st``, ``3üncü``, and words: twenty-first, yirmi birinci. "twenty second" without a hyphen is 20.
6. **Dates** and **times** are read as a whole. A time is the second of its day; ``am`` and ``pm`` are its unit;
   ``14.00`` is one behind "saat" or "at", and a number too. The year of a full date also stands alone.
7. **Ranges**: two quantities joined by a dash, "to", "ile", "ila", "through", or "between … and". The first has the
   second's percent sign or currency, and the other way round. ``2010-12`` is a range, its end 2012 or 12, and
   ``2026-03`` a month. ``2020/21`` is the range of two years that follow each other.
8. **Versions**: three or more groups (``3.6.1``), two behind ``v``, "version", "release" or "sürüm", and ``3.6.x``.
   ``1.200.500`` is a number.
9. **Digit strings** (telephone numbers, ISBNs): what is grouped by hyphens, or begins with ``+``, ``(`` or 0.
   Digits behind letters in one word ("covid-19", "CO2") know the word; between letters (``B2B``) they are not certain.
10. A word that is often no number, or the answer's own count ("two films are described"), is not ``certain``: half,
    one to three, first to third, bir, iki, üç, ilk, yarım, altı, yedi, yüz, elli … on their own, unless a unit such as
    "days" or "gün" or a percent sign follows; one, bir and half not even then. Nor is a place with a comma ("Fifth,").
    "on" and "bin" are numbers only in a Turkish text, in front of such a unit, or beside other number words. "two
    dozen" is two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal

from llama_index_grounded.text import number_shapes as shapes
from llama_index_grounded.text.case import any_case, lower
from llama_index_grounded.text.measures import measure_at
from llama_index_grounded.text.number_forms import READERS, Kind, Quantity, Reading, date, seconds_of
from llama_index_grounded.text.number_phrases import Spoken, lone_word
from llama_index_grounded.text.number_words import shifted

__all__ = ["Quantity", "quantities"]

_NO_SIGN = frozenset(")]}%.-–_'\"")
_BETWEEN, _AND = "between ", " and "
_LOOK_BACK, _BIG_DAY, _YEAR, _SHORT_YEAR = 12, 2, 4, 2
_LONGEST_NAME = 60


def quantities(text: str) -> list[Quantity]:
    """Return the quantities of a text in their order, in linear time.

    Example:
        >>> [(found.kind, str(found.readings[0][0])) for found in quantities("yüzde 22, yirmi iki")]
        [('percent', '22'), ('number', '22')]
    """
    folded = _fold(text)
    return list(_with_ranges(folded, _named(folded, _measured(folded))))


def _fold(text: str) -> str:
    """Make digits, dashes, spaces and apostrophes uniform, character for character, and blank what is no text."""
    folded = shapes.OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text).translate(shapes.FOLDED)
    return shapes.URL.sub(lambda url: "\ufffc" * len(url[0]), folded)


def _measured(folded: str) -> Iterator[Quantity]:
    """Yield the quantities with their signs, multipliers and units."""
    turkish = shapes.TURKISH.search(folded) is not None and shapes.ENGLISH.search(folded) is None
    floor = 0
    for bare in _bare(folded):
        if bare.start < floor:
            # A multiplier, which belongs to the number in front of it.
            continue
        found = bare
        if bare.kind == "number":
            found = _with_unit(folded, _multiplied(folded, _with_half(folded, bare)), floor)
            measure = measure_at(folded, found.end)
            found = _as_clock(folded, replace(found, measure=measure) if measure else found)
        if not found.numeral and found.kind != "ordinal":
            words = set(lower(folded[bare.start : bare.end]).split())
            counted = not words & shapes.NEVER_ALONE and (
                found.measure != "" or shapes.MEASURE.match(folded, found.end) is not None
            )
            certain = found.certain or counted or found.kind != "number"
            found = replace(found, certain=certain)
            if words <= shapes.ENGLISH_TOO and not (certain or turkish):
                continue
        floor = found.end
        yield found


def _bare(folded: str) -> Iterator[Quantity]:
    """Yield what the patterns find, and what number words add up to."""
    spoken: Spoken | None = None
    for atom in shapes.ATOM.finditer(folded):
        kind = atom.lastgroup or "word"
        if spoken is not None and (kind != "word" or not spoken.goes_on(folded, atom)):
            yield spoken.quantity()
            spoken = None
        elif spoken is not None:
            continue
        if kind == "word" and folded[max(0, atom.start() - 1) : atom.start()] == "'":
            # A Turkish ending: "1984'ten".
            continue
        if kind == "word":
            spoken = Spoken.begin(atom)
            yield from lone_word(atom)
        else:
            yield from READERS[kind](atom[0], atom.start())
    if spoken is not None:
        yield spoken.quantity()


def _with_half(folded: str, found: Quantity) -> Quantity:
    """Return "2 buçuk" as 2,5."""
    behind = shapes.AND_A_HALF.match(folded, found.end) if found.numeral.isdigit() else None
    if behind is None:
        return found
    numeral = f"{found.numeral},5"
    return replace(found, end=behind.end(), readings=((Decimal(f"{found.numeral}.5"),),), numeral=numeral)


def _as_clock(folded: str, found: Quantity) -> Quantity:
    """Return a number such as "14.00" as a time where "saat" or "at" stands in front of it."""
    if found.kind != "number" or found.measure or shapes.CLOCK.fullmatch(found.numeral) is None:
        return found
    near = shapes.CLOCK_BEFORE.search(folded, max(0, found.start - _LOOK_BACK), found.start)
    return found if near is None else _clock(found)


def _clock(found: Quantity) -> Quantity:
    return replace(found, kind="time", readings=((seconds_of(found.numeral),),), parts=(found,))


def _named(folded: str, found: Iterable[Quantity]) -> Iterator[Quantity]:
    """Yield the quantities; digits within a word that begins with letters know it, and within letters mean nothing."""
    names = shapes.NAME.finditer(folded)
    name = next(names, None)
    for quantity in found:
        while name is not None and name.end() <= quantity.start:
            name = next(names, None)
        inside = name is not None and name.start() < quantity.start < name.end() and quantity.kind == "number"
        if name is None or not inside or not quantity.numeral or len(name[0]) > _LONGEST_NAME:
            yield quantity
            continue
        # "-" in front of digits is a hyphen here: no sign stands behind a letter.
        before = folded[quantity.start - 1] if folded[quantity.start - 1] != "-" else folded[quantity.start - 2]
        letters = _cased(folded[quantity.start - 1]) and _cased(folded[quantity.end : quantity.end + 1])
        named = lower(name[0]) if _cased(before) else ""
        yield replace(quantity, name=named, certain=quantity.certain and not letters)


def _multiplied(folded: str, found: Quantity) -> Quantity:
    """Return the quantity with a multiplier behind it taken in."""
    behind = shapes.MULTIPLIER.match(folded, found.end)
    if behind is None or not found.numeral or (not behind["word"] and _in_letters(folded, found.start)):
        return found
    zeros = shapes.ZEROS[any_case(behind["sure"] or behind["maybe"] or behind["short"] or behind["word"])]
    times = tuple((shifted(value, zeros),) for (value,) in found.readings if value is not None)
    return replace(
        found,
        end=behind.end(),
        readings=(*times, *found.readings) if behind["maybe"] else times,
        numeral="",
        certain=True,
        parts=(),
    )


def _cased(letter: str) -> bool:
    """Return whether a letter has a capital form: Chinese and Arabic write words and numbers without a space."""
    return letter.lower() != letter.upper()


def _in_letters(folded: str, at: int) -> bool:
    """Return whether a letter that is no currency's stands right in front of a place."""
    return _cased(folded[at - 1 : at]) and shapes.BEFORE.search(folded, max(0, at - _LOOK_BACK), at) is None


def _with_unit(folded: str, found: Quantity, floor: int) -> Quantity:
    """Return the number with its sign and its percent sign, currency or ordinal ending; `floor` ends the one before."""
    before = shapes.BEFORE.search(folded, max(floor, found.start - _LOOK_BACK), found.start)
    start = found.start if before is None else before.start()
    behind = shapes.AFTER.match(folded, found.end) if before is None else None
    unit = before or behind
    sign = _sign(folded, start, floor, spoken=not found.numeral)
    start -= sign
    if (before is not None and before[0].endswith("-") and found.numeral) or sign:
        found = replace(found, readings=tuple((-value,) for (value,) in found.readings if value is not None), parts=())
    if unit is None:
        place = shapes.PLACE.match(folded, found.end)
        kind: Kind = "number" if place is None else "ordinal"
        return replace(found, start=start, end=found.end if place is None else place.end(), kind=kind)
    end = found.end if behind is None else behind.end()
    money = unit["money"]
    if money is None:
        return replace(found, start=start, end=end, kind="percent", parts=())
    code = shapes.SYMBOLS.get(money) or shapes.SYMBOLS.get(lower(money)) or money.upper()
    if code in shapes.MINOR:
        code = shapes.MINOR[code]
        found = replace(
            found, readings=tuple((shifted(value, -2),) for (value,) in found.readings if value is not None)
        )
    return replace(found, start=start, end=end, kind="currency", unit=code, parts=())


def _sign(folded: str, at: int, floor: int, *, spoken: bool) -> int:
    """Return how many characters in front of `at` are a sign, and no dash of a range or a compound, nor a sum's."""
    word = shapes.MINUS.search(folded, max(floor, at - _LOOK_BACK), at)
    if word is not None and not (floor and folded[floor : word.start()].isspace()):
        return at - word.start()
    if spoken or folded[at - 1 : at] != "-" or at <= floor:
        return 0
    # At the start of the text nothing stands before the sign.
    before = folded[max(0, at - 2) : at - 1]
    return int(not (before.isalnum() or before in _NO_SIGN))


def _with_ranges(folded: str, found: Iterable[Quantity]) -> Iterator[Quantity]:
    """Yield the quantities, two that a dash or a word joins as a range."""
    held: Quantity | None = None
    for quantity in found:
        if held is not None and _joined(folded, held, quantity):
            yield _range(held, quantity)
            held = None
            continue
        if held is not None:
            yield held
        held = quantity
    if held is not None:
        yield held


def _joined(folded: str, first: Quantity, second: Quantity) -> bool:
    if {first.kind, second.kind} & {"version", "digits"} or not (first.certain and second.certain):
        return False
    if shapes.JOINT.fullmatch(folded, first.end, second.start) is not None:
        return True
    lead = folded[max(0, first.start - len(_BETWEEN)) : first.start]
    return lead.lower() == _BETWEEN and folded[first.end : second.start].lower() == _AND


def _range(first: Quantity, second: Quantity) -> Quantity:
    """Return two quantities as the ends of a range, each with the unit of the other if it has none."""
    if not first.measure and first.kind == "number":
        first = replace(first, measure=second.measure)
    if first.kind == "time" and second.kind == "number" and shapes.CLOCK.fullmatch(second.numeral):
        second = _clock(second)
    elif first.kind == "number" and second.kind in {"percent", "currency"}:
        first = replace(first, kind=second.kind, unit=second.unit)
    elif second.kind == "number" and first.kind in {"percent", "currency"}:
        second = replace(second, kind=first.kind, unit=first.unit)
    elif first.kind == "number" and second.kind == "date" and len(first.numeral) in {1, _BIG_DAY}:
        day = first.readings[0][0]
        days = tuple((year, month, day) for year, month, other in second.readings if other is not None)
        first = date(first.start, first.numeral, days) if days else first
    elif len(first.numeral) == _YEAR and second.kind == "number" and len(second.numeral) == _SHORT_YEAR:
        second = replace(second, readings=(*_same_century(first, second), *second.readings))
    readings = tuple((*low, *high) for low in first.readings for high in second.readings)
    return Quantity(start=first.start, end=second.end, kind="range", readings=readings, parts=(first, second))


def _same_century(first: Quantity, second: Quantity) -> tuple[Reading, ...]:
    """Return what the second number of "1922-26" stands for."""
    written = f"{first.numeral[:_SHORT_YEAR]}{second.numeral}"
    return ((Decimal(written),),) if written.isdigit() and written > first.numeral else ()
