"""What the chain of `bench.selection` has to do for each node, written out without stages."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import DEFAULT_KEYS, field, identity, identity_under, included_text, with_stamp
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.rendering.renderer import source_of
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.openings import openings
from llama_index_grounded.tokens import TokenCounter

__all__ = ["without_stages"]


def without_stages(nodes: Sequence[NodeWithScore], counter: TokenCounter, *, min_score: float, max_tokens: int) -> str:
    """Select and render as the chain does where nothing repeats and everything fits; raise where it does not.

    A copy that carries the identity, the search for repetitions, escapes, token counts, a decision for each node that
    moves and a record of each source. There are no stages, no spans, no options and no way back, so what the chain
    takes beyond this is what stages cost.
    """
    copies = [
        with_stamp(scored, {"run": 1, "slot": at, "rank": at, "identity": identity_under(scored.node, DEFAULT_KEYS)})
        for at, scored in enumerate(nodes)
        if (scored.score or 0.0) >= min_score
    ]
    frame = XmlRenderer().frame
    frames = [frame(scored.node, "S0", scored.score) for scored in copies]
    used = sum([counter.tokens(text + "\n") for _, text, _ in frames])
    if used > max_tokens or _repeats(copies):
        raise NotImplementedError
    order = [*range(0, len(copies), 2), *reversed(range(1, len(copies), 2))]
    decisions = [_moved(copies[at], place) for place, at in enumerate(order) if place != at]
    sources = [source_of(copies[at], f"S{place}") for place, at in enumerate(order, start=1)]
    if len(decisions) > len(sources):
        raise NotImplementedError
    return "".join(
        head.replace("S0", f"S{place}", 1) + text + tail
        for place, (head, text, tail) in enumerate([frames[at] for at in order], start=1)
    )


def _repeats(copies: Sequence[NodeWithScore]) -> bool:
    sections: dict[object, list[NodeWithScore]] = defaultdict(list)
    for scored in copies:
        sections[identity(scored.node)[:3], field(scored.node, "section")].append(scored)
    begun = [
        [openings(included_text(scored.node)) for scored in together]
        for together in sections.values()
        if len(together) > 1
    ]
    return any(not one.isdisjoint(other) for names in begun for one, other in itertools.combinations(names, 2))


def _moved(scored: NodeWithScore, place: int) -> Decision:
    return Decision(
        stage="AttentionReorder",
        action="moved",
        node_id=scored.node.node_id,
        document_id=identity(scored.node).document_id,
        reason="edges",
        value=place,
    )
