"""Find the texts that are nearly like one, among those that were added before, by their words or their embeddings."""

from __future__ import annotations

import base64
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import included_text, mark_of, with_stamp
from llama_index_grounded.selection.shingling import ROUNDING, Hashes, shingle_hashes

__all__ = ["Likeness", "Shingles", "Vectors", "vector_of", "with_vector"]

Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

_FIRST_ROWS = 16
_MANY = 16
_FIRST_TABLE, _TABLE_PER_HASH = 1024, 4


class Likeness(Protocol):
    """Texts in which near ones are found without a look at each."""

    def near(self, scored: NodeWithScore) -> Iterator[tuple[int, float]]:
        """Yield the numbers of the near ones in the order in which they came, and how near they are."""
        ...

    def add(self, scored: NodeWithScore) -> None:
        """Add one under the next number, from 0."""
        ...


class Shingles:
    """Likeness of words: the Jaccard index of two texts' shingles.

    Most texts are like no other: a text that is near to another one has at most ``1 - threshold`` of its shingles new.
    Only when one has so few is an index built. Two sets that are alike enough share one of their first shingles in any
    fixed order, and are of like size (Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search"), so few
    pairs are compared and none missed. Shingles are told apart by their 64-bit hash.

    Where very many texts share a shingle, as templates do, they are told apart by their keys before they are compared.

    Args:
        threshold: Least Jaccard index, 0 to 1.
        key_of: Names what a text has in common with all texts that count as near; None where any may.
    """

    def __init__(self, threshold: float, key_of: Callable[[NodeWithScore], Hashable | None]) -> None:
        self._threshold = threshold
        self._key_of = key_of
        self._nodes: list[NodeWithScore] = []
        self._texts: list[Hashes] = []
        self._seen = _Seen()
        self._numbers: dict[int, int] = {}
        self._sets: list[frozenset[int]] = []
        """Of the first texts, as far as they are in the index."""
        self._holders: dict[int, _Holders] = defaultdict(_Holders)
        self._last: tuple[str, Hashes] = "", shingle_hashes("")

    def near(self, scored: NodeWithScore) -> Iterator[tuple[int, float]]:
        """Yield the numbers of texts that share enough shingles."""
        hashes = self._hashes(scored)
        if not self._may_be_near(hashes):
            return
        self._index()
        mine = frozenset(hashes.tolist())
        least, most = self._threshold * len(mine) - ROUNDING, len(mine) / self._threshold + ROUNDING
        holders = [self._holders[shingle] for shingle in self._first(mine) if shingle in self._holders]
        found = set[int]()
        for some in holders:
            found.update(some.like(lambda: self._key_of(scored)))
        for number in sorted(found):
            theirs = self._sets[number]
            if least <= len(theirs) <= most:
                common = len(mine & theirs)
                value = common / (len(mine) + len(theirs) - common)
                if value >= self._threshold - ROUNDING:
                    yield number, value

    def add(self, scored: NodeWithScore) -> None:
        """Add a text."""
        hashes = self._hashes(scored)
        self._seen.add(hashes)
        self._texts.append(hashes)
        self._nodes.append(scored)

    def _may_be_near(self, hashes: Hashes) -> bool:
        """Tell whether few enough of a text's shingles are new."""
        most = hashes.size - self._threshold * hashes.size + ROUNDING
        return hashes.size > 0 and self._seen.new(hashes, most) <= most

    def _index(self) -> None:
        """Bring the index up to the texts that were added."""
        for number in range(len(self._sets), len(self._texts)):
            theirs = frozenset(self._texts[number].tolist())
            for shingle in theirs:
                self._numbers.setdefault(shingle, len(self._numbers))
            for shingle in self._first(theirs):
                self._holders[shingle].add(number, lambda at: self._key_of(self._nodes[at]))
            self._sets.append(theirs)

    def _first(self, mine: frozenset[int]) -> Sequence[int]:
        """Return the first shingles, the newest before the others: what many texts share was mostly seen early."""
        count = len(mine) - math.ceil(self._threshold * len(mine) - ROUNDING) + 1
        return sorted(mine, key=lambda shingle: self._numbers.get(shingle, math.inf), reverse=True)[:count]

    def _hashes(self, scored: NodeWithScore) -> Hashes:
        """Return the hashes of a text's shingles, of which both `near` and `add` make use."""
        text = included_text(scored.node)
        if self._last[0] is not text:
            self._last = text, shingle_hashes(text)
        return self._last[1]


class _Holders:
    """Texts that share a shingle, by their keys where there are many."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._groups: dict[Hashable | None, list[int]] | None = None

    def add(self, number: int, key_of: Callable[[int], Hashable | None]) -> None:
        self._numbers.append(number)
        if self._groups is not None:
            self._groups.setdefault(key_of(number), []).append(number)
        elif len(self._numbers) > _MANY:
            self._groups = {}
            for earlier in self._numbers:
                self._groups.setdefault(key_of(earlier), []).append(earlier)

    def like(self, key: Callable[[], Hashable | None]) -> Iterable[int]:
        """Return the texts that may be like one."""
        if self._groups is None or (wanted := key()) is None:
            return self._numbers
        return [*self._groups.get(wanted, ()), *self._groups.get(None, ())]


class _Seen:
    """Hashes that were added, in a table of bits: some that were not count as seen too, none the other way round."""

    def __init__(self) -> None:
        self._table = np.zeros(_FIRST_TABLE, dtype=np.bool_)
        self._added: list[Hashes] = []
        self._count = 0

    def new(self, hashes: Hashes, most: float) -> int:
        """Count the different hashes that were not added; more than ``most`` only if they are that many."""
        new = hashes[~self._table[hashes & (self._table.size - 1)]]
        if new.size <= most:
            return int(new.size)
        new.sort()
        return 1 + int(np.count_nonzero(new[1:] != new[:-1]))

    def add(self, hashes: Hashes) -> None:
        """Add hashes, in a larger table where a quarter would be full."""
        self._added.append(hashes)
        self._count += hashes.size
        if self._table.size >= _TABLE_PER_HASH * self._count:
            self._table[hashes & (self._table.size - 1)] = True
            return
        size = 1 << (2 * _TABLE_PER_HASH * self._count).bit_length()
        self._table = np.zeros(size, dtype=np.bool_)
        self._table[np.concatenate(self._added) & (size - 1)] = True


class Vectors:
    """Likeness of embeddings: their cosine. Vectors of different length are not compared.

    Args:
        threshold: Least cosine, 0 to 1.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._count = 0
        self._rows: dict[Hashable, Vector] = {}
        self._numbers: dict[Hashable, list[int]] = defaultdict(list)

    def near(self, scored: NodeWithScore) -> Iterator[tuple[int, float]]:
        """Yield the numbers of texts whose vectors point the same way."""
        vector = vector_of(scored)
        numbers = [] if vector is None else self._numbers[vector.size]
        if vector is not None and numbers:
            values = self._rows[vector.size][: len(numbers)] @ vector
            for row in np.flatnonzero(values >= self._threshold - ROUNDING):
                yield numbers[row], min(float(values[row]), 1.0)

    def add(self, scored: NodeWithScore) -> None:
        """Add a text; one without a vector is near to nothing."""
        vector = vector_of(scored)
        if vector is not None:
            numbers = self._numbers[vector.size]
            rows = self._rows.get(vector.size)
            if rows is None or len(rows) == len(numbers):
                more = np.zeros((max(len(numbers), _FIRST_ROWS), vector.size))
                rows = self._rows[vector.size] = more if rows is None else np.concatenate([rows, more])
            rows[len(numbers)] = vector
            numbers.append(self._count)
        self._count += 1


def vector_of(scored: NodeWithScore) -> Vector | None:
    """Return the embedding of a node's text with length 1, from the stamp or the node; None if there is none of it.

    The node's own embedding is that of the text that it came with, before a stage shortened it.
    """
    text, mark = included_text(scored.node), mark_of(scored)
    checksum, written = mark.get("vector", (None, ""))
    if checksum == _checksum(text):
        return _of_length_one(np.frombuffer(base64.b64decode(written), dtype=np.float32))
    carried = scored.node.embedding
    return None if carried is None or mark.get("original", text) != text else _of_length_one(carried)


def with_vector(scored: NodeWithScore, vector: Sequence[float]) -> NodeWithScore:
    """Copy a node with the embedding of its text in the stamp, as text, which any log can take."""
    with np.errstate(all="ignore"):
        written = base64.b64encode(np.asarray(vector, dtype=np.float32).tobytes()).decode()
    return with_stamp(scored, {**mark_of(scored), "vector": (_checksum(included_text(scored.node)), written)})


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _of_length_one(values: Any) -> Vector | None:
    vector = np.asarray(values, dtype=np.float64)
    with np.errstate(all="ignore"):
        length = float(np.linalg.norm(vector))
    return vector / length if vector.ndim == 1 and math.isfinite(length) and length > 0 else None
