"""A retriever for tests: it finds what it is told."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

if TYPE_CHECKING:
    from llama_index.core.callbacks import CallbackManager

__all__ = ["FixedRetriever"]


class FixedRetriever(BaseRetriever):
    """A retriever that finds the same nodes for every question, sync and async; it stands in for an index.

    Each retrieval returns copies, nested metadata included, so that nothing that a test or a postprocessor does to a
    node reaches another query. LlamaIndex itself leaves out a node whose id has come before.

    Args:
        nodes: What to find, with scores, in rank order; see `make_nodes`. An empty list finds nothing.
        callback_manager: LlamaIndex's.

    Raises:
        TypeError: For what is no list of `NodeWithScore`.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> retriever = FixedRetriever(make_nodes(["Within 21 days.", "Keep the receipt."]))
        >>> [(scored.text, scored.score) for scored in retriever.retrieve("How long?")]
        [('Within 21 days.', 0.9), ('Keep the receipt.', 0.8)]
    """

    def __init__(self, nodes: Iterable[NodeWithScore], callback_manager: CallbackManager | None = None) -> None:
        super().__init__(callback_manager)
        found = list(nodes)
        wrong = [type(each).__name__ for each in found if not isinstance(each, NodeWithScore)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong:
            msg = f"nodes must be NodeWithScore, as make_nodes makes them, not {wrong[0]}"
            raise TypeError(msg)
        self._nodes = copy.deepcopy(found)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return copy.deepcopy(self._nodes)
