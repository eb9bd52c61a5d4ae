"""What the chain of `bench.selection` has to do for each node, written out without stages."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from llama_index_grounded.evidence import DEFAULT_KEYS, identity, identity_under, with_stamp
from llama_index_grounded.rendering import XmlRenderer
from llama_index_grounded.rendering.renderer import key_at, source_of
from llama_index_grounded.schema import Decision, SourceRef
from llama_index_grounded.selection.openings import Openings
from llama_index_grounded.selection.order import place
from llama_index_grounded.selection.repetition import scope_of
from llama_index_grounded.tokens import TokenCounter

__all__ = ["without_stages"]


def without_stages(
    nodes: Sequence[NodeWithScore], counter: TokenCounter, *, min_score: float, max_tokens: int
) -> tuple[str, list[SourceRef], list[Decision]]:
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
    if used > max_tokens or Openings(copies, lambda node: scope_of(node, "section")).alike:
        raise NotImplementedError
    order = place([[at] for at in range(len(copies))], "edges")
    decisions = [_moved(copies[at], now) for now, at in enumerate(order) if now != at]
    sources = [source_of(copies[at], key_at(now)) for now, at in enumerate(order)]
    shown = zip(sources, [frames[at] for at in order], strict=True)
    text = "".join([head.replace("S0", source.key, 1) + text + tail for source, (head, text, tail) in shown])
    return text, sources, decisions


def _moved(scored: NodeWithScore, now: int) -> Decision:
    return Decision(
        stage="AttentionReorder",
        action="moved",
        node_id=scored.node.node_id,
        document_id=identity(scored.node).document_id,
        reason="edges",
        value=now,
    )
