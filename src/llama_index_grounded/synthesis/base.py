"""What LlamaIndex's base class wants of a synthesizer, with the LLM looked up late and left as it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index_grounded._allowed import need_flag, need_llm, need_part
from llama_index_grounded.synthesis.parts import check_template
from llama_index_grounded.synthesis.prompts import QuestionPosition, question_template

if TYPE_CHECKING:
    from llama_index.core.prompts import BasePromptTemplate

__all__ = ["LateSynthesizer"]

_TEMPLATE_KEY = "text_qa_template"


class LateSynthesizer(BaseSynthesizer):
    """A synthesizer that asks nothing of its LLM before it is used.

    LlamaIndex's own constructor resolves the LLM, asks it for its metadata, over the network for some, and sets its
    callback manager on it; so it is not called.
    """

    def __init__(
        self,
        llm: LLM | None,
        *,
        template: BasePromptTemplate | None,
        question_position: QuestionPosition,
        streaming: bool,
        callback_manager: CallbackManager | None,
    ) -> None:
        need_llm(llm)
        need_flag("streaming", streaming)
        need_part("callback_manager", callback_manager, (CallbackManager, type(None)), "a CallbackManager")
        self._chosen_llm = llm
        self._callback_manager = callback_manager or Settings.callback_manager
        self._streaming = streaming  # chat engines switch it
        self._template: BasePromptTemplate = PromptTemplate(question_template(question_position))
        if template is not None:
            self._update_prompts({_TEMPLATE_KEY: template})

    @property
    def _llm(self) -> LLM:  # type: ignore[override] # pyright: ignore[reportIncompatibleVariableOverride] - looked up late
        return Settings.llm if self._chosen_llm is None else self._chosen_llm

    @property
    def callback_manager(self) -> CallbackManager:
        """LlamaIndex's callback manager."""
        return self._callback_manager

    @callback_manager.setter
    def callback_manager(self, callback_manager: CallbackManager) -> None:
        # The base class sets it on the LLM too, which other engines share.
        self._callback_manager = callback_manager

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return {_TEMPLATE_KEY: self._template}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        if _TEMPLATE_KEY in prompts_dict:
            check_template(prompts_dict[_TEMPLATE_KEY])
            self._template = prompts_dict[_TEMPLATE_KEY]

    @abstractmethod
    def _answer(self, query: str, nodes: Sequence[NodeWithScore]) -> str: ...

    @abstractmethod
    async def _aanswer(self, query: str, nodes: Sequence[NodeWithScore]) -> str: ...

    def get_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        """Answer from bare texts, as LlamaIndex's interface asks; citations need `synthesize`."""
        return self._answer(query_str, _as_nodes(text_chunks))

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **response_kwargs: Any) -> str:
        """Answer from bare texts; see `get_response`."""
        return await self._aanswer(query_str, _as_nodes(text_chunks))


def _as_nodes(texts: Sequence[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text)) for text in texts]
