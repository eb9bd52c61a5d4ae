"""Which nodes can repeat one another at all, found without parsing them.

Most chunks repeat nothing. What can be removed begins at the start of a line and either has at least eight words or
goes on to the end of its chunk; so two nodes that repeat each other share the words with which a line begins.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence

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
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    words: list[str] = []
    starts: list[int] = []
    for line in text.splitlines():
        # No more than the first ones of a line are ever looked at, and a short line goes on in the next one.
        if first := line.split(None, MIN_WORDS)[:MIN_WORDS]:
            starts.append(len(words))
            words += first
    begun = {" ".join(words[start : start + MIN_WORDS]) for start in starts}
    # A paragraph of fewer words than these stands in one of them as a whole, and so do its characters.
    unspaced = [name for name in begun if has_unspaced(name)]
    begun.update(["\n" + name.replace(" ", "")[:MIN_WORDS] for name in unspaced])
    return begun


class Openings:
    """How the lines of some nodes begin.

    Args:
        nodes: Stamped nodes.
        scope_of: Only nodes of one scope can repeat each other.
    """

    def __init__(self, nodes: Sequence[NodeWithScore], scope_of: Callable[[BaseNode], Hashable]) -> None:
        self._scope_of = scope_of
        found = [openings(included_text(scored.node)) for scored in nodes]
        shared = _twice(found)
        pairs = list(zip(nodes, found, strict=True))
        scoped = [set[object]() if shared.isdisjoint(names) else self._scoped(scored, names) for scored, names in pairs]
        shared_in_scope = _twice(scoped)
        self._alone = [pair for pair, names in zip(pairs, scoped, strict=True) if shared_in_scope.isdisjoint(names)]
        alone = {id(scored) for scored, _ in self._alone}
        self.alike = [scored for scored in nodes if id(scored) not in alone]
        """The nodes that share a beginning with another one, in the order in which they came."""

    def met_by(self, shortened: Iterable[NodeWithScore]) -> bool:
        """Tell whether what was left of some nodes may repeat one that was alone: a cut makes new neighbours."""
        new = {name for scored in shortened for name in self._scoped(scored, openings(included_text(scored.node)))}
        return bool(new) and any(not new.isdisjoint(self._scoped(scored, names)) for scored, names in self._alone)

    def _scoped(self, scored: NodeWithScore, names: Iterable[str]) -> set[object]:
        scope = self._scope_of(scored.node)
        return {(scope, name) for name in names}


def _twice(sets: Iterable[set[str]] | Iterable[set[object]]) -> set[object]:
    seen: set[object] = set()
    shared: set[object] = set()
    for found in sets:
        if not seen.isdisjoint(found):
            shared.update(seen.intersection(found))
        seen.update(found)
    return shared
