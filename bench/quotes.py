"""Cut quotes from real passages, set them otherwise or change what they say, and count what is found.

    python -m bench.quotes --data FOLDER --quotes 400

The first three columns are shares that must be found: the quote as it is, from a passage with new line breaks and
broken words, and with other quote marks, dashes, spaces and Unicode form. The others must not be found: one digit, one
negation, one name or one date changed, and quotes that begin or end inside a quantity or right beside a negation. A
changed quote that stands in its passage after all proves nothing; it is left out and counted, as is a quote that was
drawn with such a cut, which the check refuses on purpose.

FOLDER holds the sets as ``NAME.corpus.jsonl`` (``text``) or ``NAME.dev.jsonl`` (``docs`` with ``text``).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.quote_cuts import MONTHS, NEGATIONS, NEGATIVE, letters, negations, quantity_cuts
from bench.sets import parse_with_data, rows_of
from llama_index_grounded.checks.quotes import find_quote

SETS = {
    "clapnq.dev": "en",
    "expertqa_cited.dev": "en",
    "site_policy_versions.corpus": "en",
    "etcd_versions.corpus": "en",
    "xquad_en.corpus": "en",
    "xquad_tr.corpus": "tr",
    "xquad_ar.corpus": "ar",
    "xquad_zh.corpus": "zh",
}
YEAR = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d(?!\d)")
NAME = re.compile(r"(?<=[\w,] )[A-ZÇĞİÖŞÜ]\w{3,}(?!\w)")
WORD = re.compile(r"\S+")
# Chinese needs no spaces between words: cut at any character that is not part of a number or a foreign word.
CHARACTER = re.compile(
    r"[〇零一二三四五六七八九十百千万亿]+|-?[^\W\u3400-\u9fff]+(?:[.,/-][^\W\u3400-\u9fff]+)*-?(?: ?[%％])?|\S-?"
)
WIDTH = 60
SHORTEST, LONGEST, LEAST_LETTERS = 5, 40, 12
CLOSERS = tuple(".!?;:,。！？；：，、)\"'”’–—")
BROKEN_WORD = 4
Change = Callable[[str, "Sample"], "str | None"]


class Sample:
    """One quote with its passage, and the random numbers for what is done to it."""

    def __init__(self, lang: str, text: str, names: list[str], drawn: random.Random) -> None:
        self.lang, self.text, self.names, self.drawn = lang, text, names, drawn
        places = [(found.start(), found.end()) for found in (CHARACTER if lang == "zh" else WORD).finditer(text)]
        length = min(len(places), drawn.randint(SHORTEST, LONGEST))
        first = drawn.randrange(len(places) - length + 1)
        self.start, self.end = places[first][0], places[first + length - 1][1]
        self.quote = text[self.start : self.end]

    def beside_negation(self) -> bool:
        """Say whether a negation stands directly before or behind the quote."""
        before, behind = (
            part.strip().lower().replace("’", "'") for part in (self.text[: self.start], self.text[self.end :])
        )
        words = NEGATIONS[self.lang]
        if self.lang == "zh":
            return before.endswith(tuple(words)) or behind.startswith(tuple(words))
        near = {*before.rsplit(maxsplit=1)[-1:], *re.findall(r"^[\w']+", behind)}
        return any(word.strip('*_"(') in words or NEGATIVE.search(word) for word in near)

    def in_quantity(self) -> bool:
        """Say whether the quote begins or ends inside a quantity."""
        return any(first <= at <= second for first, second in quantity_cuts(self.text) for at in (self.start, self.end))

    def cut(self) -> str | None:
        """Return a quote that begins or ends inside a quantity or beside a negation, if the passage has one."""
        edges = [edge for left, right in quantity_cuts(self.text) for edge in ((left, "end"), (right, "start"))]
        edges += negations(self.text, self.lang)
        if not edges:
            return None
        at, side = self.drawn.choice(edges)
        words, length = (
            list((CHARACTER if self.lang == "zh" else WORD).finditer(self.text)),
            self.drawn.randint(SHORTEST, LONGEST),
        )
        if side == "end":
            starts = [word.start() for word in words if word.start() < at][-length:]
            quote = self.text[starts[0] : at].strip() if starts else ""
        else:
            ends = [word.end() for word in words if word.start() >= at][:length]
            quote = self.text[at : ends[-1]].strip() if ends else ""
        closed = side == "end" and quote.endswith(CLOSERS)
        return None if closed or len(letters(quote)) < LEAST_LETTERS else quote


def rewrapped(sample: Sample) -> str:
    """Break the passage into lines of `WIDTH`, every second one with a hyphen within a word where it can be."""
    lines, line = list[str](), ""
    parts = re.findall(rf"\s*(?:{CHARACTER.pattern if sample.lang == 'zh' else WORD.pattern})", sample.text)
    for part in parts:
        word = part.lstrip()
        gap = part[: len(part) - len(word)]
        at = len(word) // 2
        if len(line) + len(part) < WIDTH:
            line += part
        elif sample.drawn.randrange(2) and word.isalpha() and len(word) >= BROKEN_WORD and not has_marks(word[at]):
            lines.append(f"{line}{gap}{word[:at]}-")
            line = word[at:]
        else:
            lines.append(line)
            line = word
    return "\n".join([*lines, line])


def has_marks(char: str) -> bool:
    """Say whether a character is a combining mark: no line breaks in front of one."""
    return unicodedata.category(char).startswith("M")


def requoted(quote: str, sample: Sample) -> str:
    """Swap quote marks, dashes, ellipses and spaces for others of their kind, and decompose letters."""
    for kind in (['"', "“", "”", "„", "«", "»"], ["'", "‘", "’"], ["-", "\u2010", "\u2011", "–"], [" ", "\u00a0"]):
        quote = "".join(sample.drawn.choice(kind) if char in kind else char for char in quote)
    quote = quote.replace("...", "…") if "..." in quote else quote.replace("…", "...")
    return unicodedata.normalize("NFD", quote)


def other_digit(quote: str, sample: Sample) -> str | None:
    """Change one digit."""
    places = [place for place, char in enumerate(quote) if char.isascii() and char.isdigit()]
    if not places:
        return None
    at = sample.drawn.choice(places)
    other = sample.drawn.choice([digit for digit in "0123456789" if digit != quote[at]])
    return quote[:at] + other + quote[at + 1 :]


def other_negation(quote: str, sample: Sample) -> str | None:
    """Take a negation out where there is one, else put one in."""
    words = NEGATIONS[sample.lang]
    gap, edge = ("", "") if sample.lang == "zh" else (r"\s*", r"(?!\w)")
    found = re.search(rf"{gap}(?<!\w)(?:{'|'.join(words)}){edge}" if gap else "|".join(words), quote)
    if found:
        return (quote[: found.start()] + quote[found.end() :]).strip()
    places = [found.end() for found in re.finditer(r"\w(?=\w)" if sample.lang == "zh" else r"(?<=\S) (?=\S)", quote)]
    if not places:
        return None
    at = sample.drawn.choice(places)
    return quote[:at] + words[0] + (" " if gap else "") + quote[at:]


def other_name(quote: str, sample: Sample) -> str | None:
    """Replace a word that is a name: it has a capital and does not begin the quote."""
    found = list(NAME.finditer(quote))
    if not found:
        return None
    old = sample.drawn.choice(found)
    new = sample.drawn.choice([name for name in sample.names if name != old[0]])
    return quote[: old.start()] + new + quote[old.end() :]


def other_date(quote: str, sample: Sample) -> str | None:
    """Change a month or a year."""
    months = MONTHS.get(sample.lang, "(?!)")
    dates = [*YEAR.finditer(quote), *re.finditer(rf"(?<!\w)(?:{months})(?!\w)", quote)]
    if not dates:
        return None
    old = sample.drawn.choice(dates)
    if old[0].isdigit():
        new = str(int(old[0]) + sample.drawn.randint(1, 9))
    else:
        new = sample.drawn.choice([month for month in months.split("|") if month != old[0]])
    return quote[: old.start()] + new + quote[old.end() :]


def cut_quote(_: str, sample: Sample) -> str | None:
    """Take another quote from the passage, with a cut that changes what it says."""
    return sample.cut()


CHANGES: dict[str, Change] = {
    "digit": other_digit,
    "negation": other_negation,
    "name": other_name,
    "date": other_date,
    "cut": cut_quote,
}


def plain(text: str) -> str:
    """Return a text as one line in NFC, which is all that the bench itself knows of folding."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def measure(sample: Sample, counts: Counter[tuple[str, str]], *, show: bool) -> None:
    """Judge one quote in every form."""
    if sample.beside_negation() or sample.in_quantity():
        counts["drawn", "out"] += 1
        return
    quote = sample.quote
    kept = {
        "exact": (quote, sample.text),
        "re-wrapped": (quote, rewrapped(sample)),
        "re-quoted": (requoted(quote, sample), sample.text),
    }
    for name, (words, text) in kept.items():
        found = find_quote(words, text)
        # Other places may hold the same words, so the passage is compared by its letters and digits.
        right = found is not None and letters(text[slice(*found)]) == letters(quote)
        counts[name, "right" if right else "wrong"] += 1
        if show and not right:
            print(f"{name}: {words!r} in {text!r}", file=sys.stderr)
    for name, change in CHANGES.items():
        changed = change(quote, sample)
        if not changed:
            continue
        if name != "cut" and plain(changed) in plain(sample.text):
            counts[name, "out"] += 1
            continue
        wrong = find_quote(changed, sample.text) is not None
        counts[name, "wrong" if wrong else "right"] += 1
        if show and wrong:
            print(f"{name}: {changed!r} for {quote!r}", file=sys.stderr)


def main() -> int:
    """Print the table; return 1 where a share is below the goal."""
    options = _parse()
    columns = ["exact", "re-wrapped", "re-quoted", *CHANGES]
    print(f"| set | language | {' | '.join(columns)} | drawn with a cut |")
    print("|---|---|" + "---|" * (len(columns) + 1))
    by_language: dict[str, Counter[tuple[str, str]]] = {}
    started, total = time.perf_counter(), 0
    for name, lang in SETS.items():
        counts = Counter[tuple[str, str]]()
        for sample in _samples(options.data / f"{name}.jsonl", lang, options.quotes, options.seed):
            measure(sample, counts, show=options.show)
        by_language.setdefault(lang, Counter()).update(counts)
        print(
            f"| {name.partition('.')[0]} | {lang} | {' | '.join(_cell(counts, column) for column in columns)} "
            f"| {counts['drawn', 'out']} |"
        )
        total += sum(count for (_, kind), count in counts.items() if kind != "out")
    for lang, counts in by_language.items():
        print(
            f"| **all** | {lang} | {' | '.join(_cell(counts, column) for column in columns)} "
            f"| {counts['drawn', 'out']} |"
        )
    each = (time.perf_counter() - started) / total * 1e3
    print(f"\n{total} searches, {each:.2f} ms each with all that prepares them")
    shares = [_share(counts, column) for counts in by_language.values() for column in columns]
    return 0 if all(share is None or share >= options.goal for share in shares) else 1


def _share(counts: Counter[tuple[str, str]], column: str) -> float | None:
    judged = counts[column, "right"] + counts[column, "wrong"]
    return counts[column, "right"] / judged if judged else None


def _cell(counts: Counter[tuple[str, str]], column: str) -> str:
    share, out = _share(counts, column), counts[column, "out"]
    if share is None:
        return "–"
    return f"{share:.1%} of {counts[column, 'right'] + counts[column, 'wrong']}" + (f" ({out} out)" if out else "")


def _samples(path: Path, lang: str, count: int, seed: int) -> Iterator[Sample]:
    texts = [str(part["text"]) for row in rows_of(path) for part in (row.get("docs", [row]))]
    texts = [
        text for text in dict.fromkeys(texts) if len(re.findall(CHARACTER if lang == "zh" else WORD, text)) >= SHORTEST
    ]
    names = sorted({name for text in texts for name in NAME.findall(text)})
    drawn = random.Random(seed)  # noqa: S311 - a sample, not a secret
    yield from (Sample(lang, drawn.choice(texts), names, drawn) for _ in range(count))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Count which quotes are found.")
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the sets")
    add("--quotes", type=int, default=400, help="quotes per set")
    add("--goal", type=float, default=0.99, help="least share of each column, by language")
    add("--seed", type=int, default=7)
    add("--show", action="store_true", help="print what went wrong to stderr")
    options = parse_with_data(parser, [f"{name}.jsonl" for name in SETS])
    if options.quotes < 1:
        parser.error("--quotes must be at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
