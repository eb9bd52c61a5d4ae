"""What a synthesizer knows before any model is called: the window, the frame of the prompt, the plan of a query."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.evidence import MetadataKeys
from llama_index_grounded.llm.providers import (
    OTHER_PROTOCOL,
    speaks_openai_to_ollama,
    structured_by,
)
from llama_index_grounded.llm.windows import UNSET_WINDOW, chooses_its_own_window, note_unset, window_of
from llama_index_grounded.rendering import Renderer, clean
from llama_index_grounded.selection.trail import Evidence, collect
from llama_index_grounded.synthesis.base import LateSynthesizer
from llama_index_grounded.synthesis.options import Options
from llama_index_grounded.synthesis.parts import PromptParts
from llama_index_grounded.synthesis.plan import Plan, make_plan
from llama_index_grounded.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.llms import LLM
    from llama_index.core.prompts import BasePromptTemplate

__all__ = ["PlanningSynthesizer", "as_bundle"]

_logger = logging.getLogger(__name__)
_ASK_AGAIN_AFTER = 10.0
"""For so many seconds a server that did not tell its window is not asked again: a query needs it several times."""


class PlanningSynthesizer(LateSynthesizer):
    """A synthesizer that can tell what it would send; a `TokenBudget` packs for it."""

    def __init__(
        self,
        llm: LLM | None,
        options: Options,
        *,
        template: BasePromptTemplate | None,
        streaming: bool,
        callback_manager: CallbackManager | None,
    ) -> None:
        super().__init__(
            llm,
            template=template,
            question_position=options.question_position,
            streaming=streaming,
            callback_manager=callback_manager,
        )
        self._options = options
        if llm is not None:
            note_unset(llm)
        self._untold: tuple[LLM, float] | None = None
        """The model whose window could not be told, and when to ask again."""

    @property
    def keys(self) -> MetadataKeys:
        """Names of the identifying metadata fields."""
        return self._options.keys

    @property
    def renderer(self) -> Renderer:
        """How sources are rendered."""
        return self._options.renderer

    @property
    def counter(self) -> TokenCounter:
        """How tokens are counted."""
        return self._options.counter or TokenCounter.default()

    @property
    def num_output(self) -> int:
        """Tokens that are kept free for the reply."""
        return self._options.num_output

    def context_window(self) -> int:
        """Return the model's window in tokens; LlamaIndex's default where the model's server can not be asked."""
        if self._is_untold():
            return DEFAULT_CONTEXT_WINDOW
        try:
            return window_of(self._llm, self._options.timeout)
        except Exception as error:  # noqa: BLE001 - an outage is reported by the call that follows, not here
            _logger.warning("the model's window is unknown (%s); %d is assumed", error, DEFAULT_CONTEXT_WINDOW)
            self._untold = self._llm, time.monotonic() + _ASK_AGAIN_AFTER
            return DEFAULT_CONTEXT_WINDOW

    def _is_untold(self) -> bool:
        """Tell whether the model's server was asked a moment ago, and said nothing."""
        return self._untold is not None and self._untold[0] is self._llm and time.monotonic() < self._untold[1]

    def frame_tokens(self, query: QueryBundle, sizes: dict[tuple[str, str], int]) -> int:
        """Count everything but the sources: system prompt, rules, history, question, envelope, schema."""
        return sum(self._parts().frame(query, sizes).values())

    def preview(self, query: str | QueryBundle, nodes: Sequence[NodeWithScore]) -> Plan:
        """Show what would be sent, without calling the model: messages, sources, tokens, allowance, decisions.

        Raises:
            ValueError: For a blank question.
        """
        bundle = as_bundle(query)
        return self._plan(bundle, collect(nodes, bundle, self._options.keys, ends=False))

    def _plan(self, bundle: QueryBundle, evidence: Evidence, *, in_steps: bool = False) -> Plan:
        return make_plan(bundle, evidence, self._parts, self.context_window, self._options, in_steps=in_steps)

    def _parts(self) -> PromptParts:
        llm = self._llm
        return PromptParts(
            template=self._template,
            system_prompt=self._options.system_prompt,
            model_prompt=llm.system_prompt,
            renderer=self._options.renderer,
            counter=self.counter,
            output_cls=self._options.output_cls,
            kind=structured_by(llm, self._options.structured_output),
            warnings=self._warnings(llm),
        )

    def _warnings(self, llm: LLM) -> tuple[str, ...]:
        if chooses_its_own_window(llm):
            self.context_window()  # a window that was set since then shows by comparison with the server's
        unset = chooses_its_own_window(llm) and not self._is_untold()
        return (*[UNSET_WINDOW] * unset, *[OTHER_PROTOCOL] * speaks_openai_to_ollama(llm))


def as_bundle(query: str | QueryBundle) -> QueryBundle:
    """Return the question as LlamaIndex passes it on; a blank one raises ValueError."""
    bundle = QueryBundle(query) if isinstance(query, str) else query
    if not clean(bundle.query_str).strip():
        raise ValueError("the question is blank")
    return bundle
