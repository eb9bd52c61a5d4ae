"""What must not differ between two texts for them to say the same: numbers, dates, negations and opposites.

1. **Numbers and dates** are those that `quantities` finds, in their order, each with the unit of measure right behind
   it ("days", "gün", "MB"). Notation does not matter: "1,500" is "1500", "21" is "twenty-one", "v3.5" is "3.5". A unit
   counts where both have one. A lone "one" or "first" counts only in front of a unit, since it is mostly an article.
   Links count as a whole where they hold a digit; "http", "https" and "www" do not matter.
2. **Negations** count with the word that they deny, wherever they stand: "not returned", "isn't returned" and "never
   returned" are one. English: not, n't, no, never, nor, neither, none …; without; except and excluding; unless.
   Turkish: değil and yok with the word in front; verbs in -mez, -medi, -miyor, -meyecek, -meden …; hariç, dışında;
   adjectives in -siz. The plain negations of six more languages are here for a text that is in none of the two.
3. **Opposites** count where one text has a word more and the other its opposite: must and may, enabled and disabled,
   valid and invalid, ücretli and ücretsiz.

It does not see other names, other conditions, or the same words in another order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from llama_index_grounded.text.case import any_case, lower
from llama_index_grounded.text.measures import MEASURES
from llama_index_grounded.text.number_forms import Quantity
from llama_index_grounded.text.opposites import TURKISH_WITHOUT, opposites
from llama_index_grounded.text.quantities import quantities
from llama_index_grounded.text.scripts import CJK

__all__ = ["Difference", "Mark", "Signature", "differences", "differs", "signature", "with_unit"]

_SHOWN = 3
_STEM = 5
_LONGEST = 40
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+(?:['’][^\W\d_]+)*")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DIGIT = re.compile(r"\d")
_MAYBE_NUMBER = re.compile(r"\d|[¼-¾⅐-⅞]")
_LINK = re.compile(r"(?:https?://(?:www\.)?|(?<![^\s(<\[\"])www\.)([^\s<>()\[\]\"]+)", re.IGNORECASE)
_NUMBER_STARTS = frozenset(
    word[:3]
    for word in _set(
        """
        zero two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty forty fifty hundred
        thousand million billion trillion second ninth half quarter one first ilk sıfır bir iki üç dört beş altı yedi
        sekiz dokuz onb onı oni onü ond ona ony ons yirmi otuz kırk elli yetmiş doksan yüz bin milyon milyar buçuk yarım
        """
    )
)
_TURKISH_UNITS = _set("lira tl kez kere adet tane saat hafta ay dakika kopya")

_MEASURES = {
    "ms": "ms msec millisecond milliseconds milisaniye",
    "second": "s sec secs second seconds saniye",
    "minute": "min mins minute minutes dakika",
    "hour": "h hr hrs hour hours saat",
    "day": "d day days gün",
    "week": "week weeks hafta",
    "month": "month months ay",
    "year": "year years yr yrs yıl",
    **{f"{name[0]}b": f"{name[0]}b {name}byte {name}bytes" for name in ("kilo", "mega", "giga", "tera")},
    **{unit: unit for unit in ("kib", "mib", "gib", "tib")},
    "byte": "byte bytes",
    **{unit: unit for unit in ("mm", "cm", "km", "kg", "mg", "ml")},
}
_MEASURE_OF = {
    any_case(word): measure
    for table in (MEASURES, _MEASURES)
    for measure, words in table.items()
    for word in words.split()
}
_WORKING = frozenset({"business", "working", "iş"})
_ENDINGS = r"(?:l[ıiuü][kğ]\w{0,6}|[üıui]|[dt][ae]n?|[ae]|s[ıi])?"
_BEHIND = re.compile(
    rf"[\s-]?(?P<of>(?:full |clear )?(?:business|working|calendar|iş|takvim)[\s-])?"
    rf"(?P<unit>{'|'.join(sorted(_MEASURE_OF, key=len, reverse=True))}){_ENDINGS}(?![^\W_])",
    re.IGNORECASE,
)

_NEXT = _set(
    """
    not no never cannot nor neither none nobody nothing nowhere hardly barely scarcely cant dont wont isnt arent wasnt
    doesnt didnt wouldnt shouldnt couldnt mustnt nicht kein keine keinen nie ohne pas jamais sans nunca sin non mai
    senza niet geen nooit não ikke inte nem не нет нельзя никогда नहीं 不 没 沒 无 無 未 非 لا لم لن ليس
    """
)
_LIMITS = {
    **dict.fromkeys(("without",), "without"),
    **dict.fromkeys(("except", "excepting", "excluding", "hariç", "dışında"), "except"),
    "unless": "unless",
}
_LAST = _set("değil yok yoktur değildir")
_PASSED_OVER = _set(
    "a an the any be been being is are was were am has have had do does did to yet also of bir herhangi"
)
_TURKISH_VERB = re.compile(
    r"(?P<stem>\w{2,24}?)m(?:[ae](?:z(?:l[ae]r|s[ae]|d[ıi]|ken|s[ıi]n(?:[ıi]z)?)?|d[ıi](?:l[ae]r)?|y[ae]c[ae][kğ]\w{0,8}"
    r"|m[ıi]ş\w{0,6}|m[ae]l[ıi]\w{0,6}|y[ae]n\w{0,8}|d[ae]n|m[ae]k\w{0,6}|ks[ıi]z[ıi]n|y[ıi]z)"
    r"|[ıiuü]yor\w{0,6})"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A number or date as it is compared."""

    kind: str
    unit: str
    measure: str
    readings: frozenset[tuple[Decimal | None, ...]]
    numeral: str
    written: str
    """As it stands in the text, with its unit."""
    span: tuple[int, int]
    """Where it begins and ends there."""

    def agrees(self, other: Mark) -> bool:
        """Return whether the two may stand for the same."""
        if self.measure and other.measure and self.measure != other.measure:
            return False
        if self.kind != other.kind:
            return {self.kind, other.kind} <= {"number", "version", "digits"} and self.numeral == other.numeral != ""
        return self.unit == other.unit and not self.readings.isdisjoint(other.readings)


@dataclass(frozen=True, slots=True)
class Signature:
    """What must not differ. Compare two with `differences`."""

    numbers: tuple[Mark, ...] = ()
    negations: Counter[str] = field(default_factory=Counter[str])
    """How often each negation stands there, with the word that it denies."""
    words: Counter[str] = field(default_factory=Counter[str])
    links: Counter[str] = field(default_factory=Counter[str])
    """Addresses with a digit in them, without what they begin with."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What two texts have different."""

    what: str
    """``numbers``, ``dates``, ``links``, ``negation`` or ``opposites``."""
    one: str
    """What the first text has; empty for nothing."""
    other: str

    def __str__(self) -> str:
        """Say it in a few words."""
        return f"{self.what}: {self.one or 'nothing'} against {self.other or 'nothing'}"


def signature(text: str) -> Signature:
    """Work out what must not differ, in linear time; nothing in a text makes this raise.

    Args:
        text: Any text, English and Turkish ones in full.

    Example:
        >>> found = signature("Within 21 days; sealed music is not returned.")
        >>> [mark.written for mark in found.numbers], list(found.negations)
        (['21 days'], ['not retur'])
    """
    written = [word[:_LONGEST] for word in _WORD.findall(lower(text.replace("’", "'")))]
    words = Counter(written)
    numbers = tuple(_numbers(text)) if _may_hold_numbers(text, words) else ()
    return Signature(numbers, Counter(_negations(written)), words, Counter(_links(text)))


def differs(one: Signature, other: Signature) -> str:
    """Name the first thing that differs, with both values; empty where nothing does.

    Example:
        >>> differs(signature("Return it within 21 days."), signature("Return it within two weeks."))
        'numbers: 21 days against two weeks'
        >>> differs(signature("It costs 1,500 TL."), signature("It costs ₺1500."))
        ''
    """
    return next((str(found) for found in differences(one, other)), "")


def differences(one: Signature, other: Signature) -> Iterator[Difference]:
    """Yield what differs: numbers or dates first, then links, negations and opposites."""
    if one is other:
        return
    yield from _number_differences(one.numbers, other.numbers)
    if one.links != other.links:
        mine, theirs = one.links - other.links, other.links - one.links
        yield Difference("links", _listed(mine.elements()), _listed(theirs.elements()))
    if one.negations != other.negations:
        mine, theirs = one.negations - other.negations, other.negations - one.negations
        yield Difference("negation", _listed(mine.elements()), _listed(theirs.elements()))
    if one.words != other.words:
        found = opposites(one.words - other.words, other.words - one.words)
        if found is not None:
            yield Difference("opposites", *found)


def _links(text: str) -> Iterator[str]:
    if "://" in text or "www." in text:
        for link in _LINK.findall(text):
            if _DIGIT.search(link):
                yield link.rstrip(".,;:!?'*_")


def _may_hold_numbers(text: str, words: Counter[str]) -> bool:
    """Spare most texts without a number the search for one."""
    # "onuncu" is tenth; "onu" and "onun" are it and its.
    if _MAYBE_NUMBER.search(text) or any(word[:3] in _NUMBER_STARTS or word.startswith("onunc") for word in words):
        return True
    return ("on" in words or any(word.startswith("üç") for word in words)) and not (
        text.isascii() and _TURKISH_UNITS.isdisjoint(words)
    )


def _numbers(text: str) -> Iterator[Mark]:
    for found in quantities(text):
        behind = _BEHIND.match(text, found.end)
        if not found.certain and behind is None and _is_one(found):
            continue
        end, measure = found.end, ""
        if behind is not None:
            end, of = behind.end(), any_case(behind["of"] or "")
            measure = _MEASURE_OF[any_case(behind["unit"])]
            working = not _WORKING.isdisjoint(of.replace("-", " ").split())
            measure = f"working {measure}" if working else measure
        yield Mark(
            "number" if found.kind == "ordinal" else found.kind,
            found.unit,
            measure,
            frozenset(found.readings),
            found.numeral.lstrip("v"),
            " ".join(text[found.start : end][:_LONGEST].split()),
            (found.start, end),
        )


def with_unit(text: str, end: int) -> int:
    """Return where the unit of measure behind a number that ends at a place ends, or that place."""
    behind = _BEHIND.match(text, end)
    return end if behind is None else behind.end()


def _is_one(found: Quantity) -> bool:
    return all(value == 1 for reading in found.readings for value in reading)


def _number_differences(one: Sequence[Mark], other: Sequence[Mark]) -> Iterator[Difference]:
    """Yield what is between the numbers that both begin and both end with."""
    start, shortest = 0, min(len(one), len(other))
    while start < shortest and one[start].agrees(other[start]):
        start += 1
    end = 0
    while end < shortest - start and one[-1 - end].agrees(other[-1 - end]):
        end += 1
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if left or right:
        dates = all(mark.kind in {"date", "time"} for mark in (*left, *right))
        listed = (_listed(mark.written for mark in marks) for marks in (left, right))
        yield Difference("dates" if dates else "numbers", *listed)


def _negations(words: Sequence[str]) -> Iterator[str]:
    pending = ""
    for place, word in enumerate(words):
        if pending and word not in _PASSED_OVER:
            yield f"{pending} {word[:_STEM]}"
            pending = ""
        if word in _NEXT or word.endswith("n't"):
            pending = "not"
        elif word in _LIMITS:
            pending = _LIMITS[word]
        elif word in _LAST:
            yield f"not {words[place - 1][:_STEM] if place else ''}"
        elif verb := _TURKISH_VERB.fullmatch(word):
            yield f"not {verb['stem'][:_STEM]}"
        elif adjective := TURKISH_WITHOUT.fullmatch(word):
            yield f"without {adjective['stem'][:_STEM]}"
    if pending:
        yield pending


def _listed(written: Iterable[str]) -> str:
    values = list(written)
    return ", ".join(values[:_SHOWN]) + (" …" if len(values) > _SHOWN else "")
