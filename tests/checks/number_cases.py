"""Answers with one or more sources, notations of one number, and texts full of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from llama_index_grounded.checks.numbers import NumberCheck
from llama_index_grounded.schema import AnswerClaim, CheckResult, QuoteMatch, SourceRef
from llama_index_grounded.synthesis.checking import CheckContext, ShownSource
from tests import hostile

PIECES = (
    *("1", "22", "120", "1.200", "1,200", "1 200", "1.200,50", "0.5", "٣", "１", "²", "½", "1/2", "-5", "−5", "007"),
    *(
        "%",
        " %",
        "% ",
        "yüzde ",
        " percent",
        "$",
        "€",
        "₺",
        " TL",
        " dollars",
        " milyon",
        "M",
        "k",
        "st",
        "'üncü",
        "'i",
    ),
    *("2026-03-01", "1 March 2026", "March ", "1/3/2026", "01.03.2026", "2026", "Mart ", "14:30", "2 pm", "25:99"),
    *("3.6.1", "v3.6", "3.6.x", "1.1.1.1.1.1.1.1.1.1.x", "-rc1", "+90 212 555 01 01", "978-0-306-40615-7", "555-0101"),
    *(
        "one ",
        "two ",
        "twenty-",
        "hundred ",
        "and ",
        "thousand ",
        "on ",
        "bin ",
        "yüz ",
        "yirmi",
        "iki",
        "buçuk ",
        "altı",
    ),
    *(
        "-",
        "–",
        " to ",
        " ile ",
        "between ",
        " and ",
        ",",
        ".",
        " ",
        "\n",
        "\u00a0",
        "'",
        "/",
        ":",
        "(",
        ")",
        "[S1]",
        "S1",
    ),
    *(
        ".5",
        "1e6",
        "2020/21",
        "minus ",
        "eksi ",
        "saat 14.00",
        "10.30",
        " buçuk",
        " cents",
        "¢",
        " weeks",
        " iş günü",
        "covid-19",
        "H2O",
    ),
    *(
        "twenty-",
        "first",
        "birinci",
        "yirmibirinci",
        "+902125551234",
        "(S1, p. 4)",
        "[1]",
        "^1^",
        "Source 1 ",
        "1) a 2) b ",
    ),
    *("# ", "## 3.1 ", "1. ", "2) ", "`", "```", "https://a.b/22?c=3", "](/p/22)", "a", "x", "İ", "ş", "days", " gün"),
)


def numerals(max_pieces: int = 10) -> st.SearchStrategy[str]:
    """Mix what numbers and their surroundings are made of with any characters."""
    piece = st.one_of(st.sampled_from(PIECES), hostile.texts(max_pieces=2))
    return st.lists(piece, max_size=max_pieces).map("".join)


def context(
    answer: str,
    sources: Sequence[str] | Mapping[str, str],
    *,
    question: str = "",
    cited: Sequence[str] | None = None,
    claims: Sequence[tuple[str, tuple[str, ...]]] = (),
    shown: Mapping[str, str] | None = None,
    quotes: Sequence[str] = (),
    found: Sequence[QuoteMatch] = (),
) -> CheckContext:
    """Return an answer with its sources, all of them cited unless `cited` says which."""
    texts = sources if isinstance(sources, Mapping) else {f"S{at}": text for at, text in enumerate(sources, 1)}
    sources_shown = {
        key: ShownSource(
            ref=SourceRef(key=key, node_id=key, document_id=key, chunk_id=key), text=text, shown=shown or {}
        )
        for key, text in texts.items()
    }
    return CheckContext(
        question=question,
        answer=answer,
        sources=sources_shown,
        cited=tuple(sources_shown if cited is None else cited),
        claims=tuple(
            AnswerClaim(text=text, start=answer.index(text), end=answer.index(text) + len(text), keys=keys, quote=quote)
            for (text, keys), quote in zip(claims, [*quotes, *[""] * len(claims)], strict=False)
        ),
        found=tuple(found),
    )


def supported(answer: str, source: str) -> bool:
    """Return whether every number of the answer stands in its one source."""
    return NumberCheck().check(context(answer, [source])).status == "passed"


def failing(result: CheckResult, answer: str) -> list[str]:
    """Return the parts of the answer that failed."""
    return [answer[span.start : span.end] for span in result.spans]


def grouped(number: int, mark: str) -> str:
    """Return the digits in groups of three."""
    return f"{number:,}".replace(",", mark)


_ENGLISH = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TURKISH = ["", "bir", "iki", "üç", "dört", "beş", "altı", "yedi", "sekiz", "dokuz"]
_TURKISH_TENS = ["", "on", "yirmi", "otuz", "kırk", "elli", "altmış", "yetmiş", "seksen", "doksan"]


def english(number: int) -> str:
    """Spell a number below a billion."""
    for scale, name in ((1_000_000, "million"), (1_000, "thousand"), (100, "hundred")):
        if number >= scale:
            rest = number % scale
            joint = " and " if rest and (scale == 100 or rest < 100) else " "
            return f"{english(number // scale)} {name}{joint}{english(rest) if rest else ''}".strip()
    tens, unit = divmod(number, 10)
    return (
        _ENGLISH[number] if number < 20 else "-".join(filter(None, (_ENGLISH_TENS[tens], _ENGLISH[unit] * bool(unit))))
    )


def turkish(number: int, space: str = " ") -> str:
    """Spell a number from 1 below a billion."""
    words: list[str] = []
    for scale, name in ((1_000_000, "milyon"), (1_000, "bin")):
        if number >= scale:
            many = number // scale
            words += [*([] if many == 1 and name == "bin" else [turkish(many, space)]), name]
            number %= scale
    hundreds, tens, unit = number // 100, number // 10 % 10, number % 10
    words += ["" if hundreds == 1 else _TURKISH[hundreds], "yüz"] if hundreds else []
    return space.join(filter(None, [*words, _TURKISH_TENS[tens], _TURKISH[unit]]))


NOTATIONS: dict[str, Callable[[int], str]] = {
    "digits": str,
    "comma": lambda number: grouped(number, ","),
    "dot": lambda number: grouped(number, "."),
    "apostrophe": lambda number: grouped(number, "’"),
    "no-break space": lambda number: grouped(number, "\u00a0"),
    "thin space": lambda number: grouped(number, "\u2009"),
    "comma and decimals": lambda number: grouped(number, ",") + ".00",
    "dot and decimals": lambda number: grouped(number, ".") + ",00",
    "arabic digits": lambda number: str(number).translate({48 + at: 0x660 + at for at in range(10)}),
    "full-width digits": lambda number: str(number).translate({48 + at: 0xFF10 + at for at in range(10)}),
    "english words": english,
    "turkish words": turkish,
    "turkish words in one": lambda number: turkish(number, ""),
}
"""Ways to write a number from 1 below a billion."""


def sentence(notation: str, number: int) -> str:
    """Return a sentence with the number, Turkish around Turkish words: "on" and "bin" are English words too."""
    written = NOTATIONS[notation](number)
    return f"Değeri şu: {written}." if notation.startswith("turkish") else f"It was found that {written} is the value."
