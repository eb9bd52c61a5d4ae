"""A query engine with everything in place, for those who had a ``CitationQueryEngine``."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # pyright: ignore[reportPrivateImportUsage] - its own name
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_grounded._allowed import need_able, need_part
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection.chain import default_postprocessors
from llama_index_grounded.selection.mirror import carried_origin
from llama_index_grounded.synthesis.planner import as_bundle
from llama_index_grounded.synthesis.synthesizer import CitingSynthesizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.indices.base import BaseIndex
    from llama_index.core.llms import LLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType

    from llama_index_grounded.selection.access import AccessGuard
    from llama_index_grounded.selection.stage import Stage
    from llama_index_grounded.synthesis.plan import Plan
    from llama_index_grounded.synthesis.respond import GroundedResponse
    from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse

__all__ = ["GroundedQueryEngine"]

_dispatcher = get_dispatcher(__name__)
_WITHOUT_EFFECT = {
    "citation_chunk_size": "nodes are cited as they are retrieved, never split again",
    "citation_chunk_overlap": "nodes are cited as they are retrieved, never split again",
    "text_splitter": "nodes are cited as they are retrieved, never split again",
    "citation_qa_template": "its rules are those of numbered sources; pass text_qa_template",
    "citation_refine_template": "there is one call over all sources, nothing is refined",
    "citation_chat_content_qa_template": "its rules are those of numbered sources; pass text_qa_template",
    "citation_chat_content_refine_template": "there is one call over all sources, nothing is refined",
    "response_mode": "there is one call over all sources",
    "use_async": "use aquery()",
    "metadata_mode": "the renderer chooses what the model sees; pass renderer",
}
_SET_BY_THE_INDEX = {"index", "node_ids", "object_map"}
"""Parameters of LlamaIndex's retrievers that most indexes give them themselves: given once more, they fail."""
_CHAIN_OPTIONS = frozenset({"node_postprocessors", "guard", "min_score", "gate", "max_tokens", "top_n"})
_ALIKE = 0.8
_SYNTHESIZER_OPTIONS = frozenset(inspect.signature(CitingSynthesizer).parameters) - {"llm"}


class GroundedQueryEngine(RetrieverQueryEngine):
    """A `RetrieverQueryEngine` with the selection stages and a `CitingSynthesizer`.

    Every response has ``grounded`` and its shortcuts, and type checkers know it.

    Args:
        retriever: Where to retrieve.
        response_synthesizer: What answers.
        node_postprocessors: What selects; by default nothing.
        callback_manager: LlamaIndex's; by default that of the synthesizer.

    Raises:
        ConfigurationError: With a synthesizer that is no `CitingSynthesizer`, or another part that is of no use (a
            ValueError).

    Example:
        >>> from llama_index.core import MockEmbedding, VectorStoreIndex
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_grounded.testing import ScriptedLLM
        >>> llm = ScriptedLLM(replies=[{"verdict": "answered", "sources": ["S1"], "answer": "21 days."}])
        >>> index = VectorStoreIndex([TextNode(text="Within 21 days.")], embed_model=MockEmbedding(embed_dim=8))
        >>> engine = GroundedQueryEngine.from_args(index, llm=llm, similarity_top_k=3)
        >>> response = engine.query("How long?")
        >>> str(response), [citation.key for citation in response.citations]
        ('21 days.', ['S1'])
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        response_synthesizer: CitingSynthesizer,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        need_able("retriever", retriever, "retrieve", "a retriever of LlamaIndex")
        need_part("response_synthesizer", response_synthesizer, CitingSynthesizer, "a CitingSynthesizer")
        need_part("callback_manager", callback_manager, (CallbackManager, type(None)), "a CallbackManager")
        super().__init__(retriever, response_synthesizer, _stages(node_postprocessors), callback_manager)
        self._synthesizer = response_synthesizer

    if TYPE_CHECKING:  # LlamaIndex's methods, which return what the synthesizer does: overriding them adds a span

        def query(self, str_or_query_bundle: QueryType) -> GroundedResponse | GroundedStreamingResponse:
            """Retrieve, select, and answer or refuse."""
            ...

        async def aquery(self, str_or_query_bundle: QueryType) -> GroundedResponse | AsyncGroundedStreamingResponse:
            """Retrieve, select, and answer or refuse; see `query`."""
            ...

    @classmethod
    def from_args(  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] - takes an index, like CitationQueryEngine
        cls,
        index: BaseIndex[Any] | None = None,
        llm: LLM | None = None,
        *,
        retriever: BaseRetriever | None = None,
        response_synthesizer: CitingSynthesizer | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        guard: AccessGuard | None = None,
        min_score: float | None = None,
        gate: Stage | None = None,
        max_tokens: int | None = None,
        top_n: int | None = None,
        **options: Any,
    ) -> GroundedQueryEngine:
        """Build an engine over an index or a retriever.

        Args:
            index: Where to retrieve; not needed with ``retriever``.
            llm: The model; by default ``Settings.llm``.
            retriever: In place of ``index.as_retriever(...)``.
            response_synthesizer: In place of a new `CitingSynthesizer`.
            node_postprocessors: In place of the usual chain.
            guard: Who may see what, once more; it comes first.
            min_score: What the best score must reach; without it or ``gate`` there is no gate.
            gate: In place of the `ScoreGate` that ``min_score`` makes, such as one over `VectorSimilarity`.
            max_tokens: Most tokens of rendered sources; by default what fits into the model's window.
            top_n: Most sources.
            options: Options of `CitingSynthesizer`, and of the index's retriever, such as ``similarity_top_k`` and
                ``filters``. What neither knows is refused. Options of ``CitationQueryEngine`` that have no meaning
                here are accepted with a warning.

        Raises:
            TypeError: For an option that nothing knows.
            ConfigurationError: For a part or a combination that can not work, such as ``min_score`` and ``gate`` (a
                ValueError).
        """
        _warn_without_effect(options)
        chosen = {name: options.pop(name) for name in list(options) if name in _SYNTHESIZER_OPTIONS}
        if retriever is None:
            retriever = _retriever(index, options)
        elif options:
            raise TypeError(
                f"unknown options: {_named(options, set())}; a retriever was given, so set its options there"
            )
        if response_synthesizer is None:
            response_synthesizer = CitingSynthesizer(llm, **chosen)
        elif chosen or llm is not None:
            raise ConfigurationError("options of the synthesizer and a response_synthesizer were both given")
        need_part("response_synthesizer", response_synthesizer, CitingSynthesizer, "a CitingSynthesizer")
        if node_postprocessors is None:
            node_postprocessors = default_postprocessors(
                guard=guard,
                min_score=min_score,
                gate=gate,
                max_tokens=max_tokens,
                top_n=top_n,
                synthesizer=response_synthesizer,
                keys=response_synthesizer.keys,
            )
        else:
            chained = {"guard": guard, "min_score": min_score, "gate": gate, "max_tokens": max_tokens, "top_n": top_n}
            unheard = ", ".join(name for name, option in chained.items() if option is not None)
            if unheard:
                raise ConfigurationError(f"{unheard}: for the usual chain, not beside node_postprocessors of your own")
        return cls(
            retriever=retriever,
            response_synthesizer=response_synthesizer,
            node_postprocessors=node_postprocessors,
            callback_manager=response_synthesizer.callback_manager,
        )

    def with_retriever(self, retriever: BaseRetriever) -> GroundedQueryEngine:
        """Return an engine that retrieves elsewhere and is the same otherwise."""
        return type(self)(
            retriever=retriever,
            response_synthesizer=self._synthesizer,
            node_postprocessors=self._node_postprocessors,
            callback_manager=self.callback_manager,
        )

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve and select; a blank question is refused before it is embedded."""
        return super().retrieve(as_bundle(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve and select; see `retrieve`."""
        return await super().aretrieve(as_bundle(query_bundle))

    def preview(self, str_or_query_bundle: QueryType) -> Plan:
        """Retrieve, select, and show what would be sent to the model, or why nothing would be.

        The answering model is not called. Stages that ask a model of their own, such as `SufficiencyGate`, do ask it.

        Args:
            str_or_query_bundle: The question, as `query` takes it.

        Raises:
            ValueError: For a blank question.

        Example:
            >>> from llama_index_grounded.testing import ScriptedLLM
            >>> from llama_index.core import MockEmbedding, VectorStoreIndex
            >>> from llama_index.core.schema import TextNode
            >>> llm = ScriptedLLM(replies=["never asked"])
            >>> index = VectorStoreIndex([TextNode(text="Within 21 days.")], embed_model=MockEmbedding(embed_dim=8))
            >>> plan = GroundedQueryEngine.from_args(index, llm=llm).preview("How long?")
            >>> [source.key for source in plan.sources], plan.refusal, llm.prompts
            (['S1'], None, [])
        """
        return self._preview(as_bundle(str_or_query_bundle))

    async def apreview(self, str_or_query_bundle: QueryType) -> Plan:
        """Show what would be sent to the model; see `preview`."""
        return await self._apreview(as_bundle(str_or_query_bundle))

    # In a span as a query is: it tells the stages which nodes belong together.
    @_dispatcher.span
    def _preview(self, query_bundle: QueryBundle) -> Plan:
        return self._synthesizer.preview(query_bundle, self.retrieve(query_bundle))

    @_dispatcher.span
    async def _apreview(self, query_bundle: QueryBundle) -> Plan:
        nodes = await self.aretrieve(query_bundle)
        with carried_origin():
            # It may ask the model's server for the window, which must not hold up the loop.
            return await asyncio.to_thread(self._synthesizer.preview, query_bundle, nodes)


def _stages(given: Sequence[BaseNodePostprocessor] | None) -> list[BaseNodePostprocessor]:
    """Refuse what is no list of stages, and return a list of the engine's own."""
    need_part("node_postprocessors", given, (Sequence, Iterator, type(None)), "a list of node postprocessors")
    stages = list(given or ())
    for place, stage in enumerate(stages):
        need_able(f"node_postprocessors[{place}]", stage, "postprocess_nodes", "a node postprocessor of LlamaIndex")
    return stages


def _warn_without_effect(options: dict[str, Any]) -> None:
    for name in list(options):
        if name in _WITHOUT_EFFECT:
            options.pop(name)
            warnings.warn(f"{name} has no effect: {_WITHOUT_EFFECT[name]}", UserWarning, stacklevel=3)
    if not options.pop("multimodal", False):
        return
    raise ConfigurationError("multimodal synthesis is not offered: sources are text")


def _retriever(index: BaseIndex[Any] | None, options: dict[str, Any]) -> BaseRetriever:
    """Make the index's retriever, and see that it knows every option: LlamaIndex ignores a misspelt ``filters``."""
    if index is None:
        raise ConfigurationError("an index or a retriever is needed")
    need_able("index", index, "as_retriever", "an index of LlamaIndex")
    retriever = index.as_retriever(**options)
    makers: list[Callable[..., object]] = [
        index.as_retriever,
        *(base for base in type(retriever).__mro__ if "__init__" in base.__dict__),
    ]
    known = {
        name
        for maker in makers
        for name, parameter in inspect.signature(maker).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    unknown = set(options) - known
    if unknown:
        offered = known - _SET_BY_THE_INDEX
        takes = ", ".join(sorted(offered))
        msg = f"unknown options: {_named(unknown, offered)}; {type(retriever).__name__} takes {takes}"
        raise TypeError(msg)
    return retriever


def _named(unknown: Iterable[str], known: set[str]) -> str:
    """List unknown options, each with the known one that it is most like."""
    names = known | _SYNTHESIZER_OPTIONS | _CHAIN_OPTIONS
    close = {name: difflib.get_close_matches(name, names, n=1, cutoff=_ALIKE) for name in sorted(unknown)}
    return ", ".join(f"{name} (did you mean {like[0]}?)" if like else name for name, like in close.items())
