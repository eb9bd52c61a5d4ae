"""Which nodes can repeat one another at all, found without parsing them.

Most chunks repeat nothing. What can be removed begins at the start of a line and either has at least eight words or
goes on to the end of its chunk; so two nodes that repeat each other share the words with which a line begins.
A node that is the only one of its scope is not looked into at all.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from llama_index.core.schema import BaseNode, NodeWithScore

from llama_index_grounded.evidence import included_text
from llama_index_grounded.selection.paragraphs import MIN_WORDS, has_unspaced

__all__ = ["Openings", "openings"]


def openings(text: str) -> set[str]:
    """Return the first eight words from each line's start on, or as many as there are, folded as twins are compared.

    Where a script has no spaces between words, eight characters stand beside them.

    Example:
        >>> sorted(openings("Returns" + chr(10) + "Within 21 days."))
        ['Returns Within 21 days.', 'Within 21 days.']
    """
    words: list[str] = []
    starts: list[int] = []
    for line in text.splitlines():
        # No more than the first ones of a line are ever looked at, and a short line goes on in the next one.
        if first := line.split(None, MIN_WORDS)[:MIN_WORDS]:
            starts.append(len(words))
            words += first
    begun = {" ".join(words[start : start + MIN_WORDS]) for start in starts}
    return begun if all(map(str.isascii, begun)) else {*_folded(begun)}


def _folded(names: Iterable[str]) -> Iterator[str]:
    """Compose beginnings, no character of which goes together with a blank."""
    for name in names:
        composed = unicodedata.normalize("NFC", name)
        yield composed
        # A paragraph of fewer words than a beginning has stands in it as a whole, and so do its characters; one that is
        # long enough to be removed has at least as many characters as it needs words.
        if has_unspaced(composed):
            yield "\n" + composed.replace(" ", "")[:MIN_WORDS]


class Openings:
    """How the lines of some nodes begin.

    Args:
        nodes: Stamped nodes.
        scope_of: Only nodes of one scope can repeat each other.
    """

    def __init__(self, nodes: Sequence[NodeWithScore], scope_of: Callable[[BaseNode], Hashable]) -> None:
        self._scope_of = scope_of
        scopes: dict[Hashable, list[int]] = defaultdict(list)
        for place, scored in enumerate(nodes):
            scopes[scope_of(scored.node)].append(place)
        self._alone: dict[Hashable, set[str]] = {}
        alike: list[int] = []
        # Most nodes are the only ones of their section, and are not even looked into.
        for scope, places in scopes.items():
            if len(places) > 1:
                found = [openings(included_text(nodes[place].node)) for place in places]
                shared = _twice(found)
                self._alone[scope] = set[str]().union(*(names for names in found if shared.isdisjoint(names)))
                alike += [place for place, names in zip(places, found, strict=True) if not shared.isdisjoint(names)]
        self.alike = [nodes[place] for place in sorted(alike)]
        """The nodes that share a beginning with another one, in the order in which they came."""

    def met_by(self, shortened: Iterable[NodeWithScore]) -> bool:
        """Tell whether what was left of some nodes may repeat one that was alone: a cut makes new neighbours."""
        return any(
            not self._alone[self._scope_of(scored.node)].isdisjoint(openings(included_text(scored.node)))
            for scored in shortened
        )


def _twice(sets: Iterable[set[str]]) -> set[str]:
    seen: set[str] = set()
    shared: set[str] = set()
    for found in sets:
        if not seen.isdisjoint(found):
            shared.update(seen.intersection(found))
        seen.update(found)
    return shared
