"""The synthesizer that LlamaIndex sees: packed nodes in, a cited answer or a refusal out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # pyright: ignore[reportPrivateImportUsage] - its own name
from llama_index.core.instrumentation.events.synthesis import SynthesizeStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded._allowed import need_able
from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys
from llama_index_grounded.llm.call import Deadline
from llama_index_grounded.llm.providers import Structured
from llama_index_grounded.llm.windows import must_ask
from llama_index_grounded.rendering import Renderer, XmlRenderer
from llama_index_grounded.selection.trail import Evidence, collect
from llama_index_grounded.synthesis.answer import AnswerModel, GroundedAnswer
from llama_index_grounded.synthesis.conversation import Conversation
from llama_index_grounded.synthesis.fingerprint import fingerprint
from llama_index_grounded.synthesis.generate import drive, drive_async
from llama_index_grounded.synthesis.options import OnError, Options
from llama_index_grounded.synthesis.planner import PlanningSynthesizer, as_bundle
from llama_index_grounded.synthesis.prompts import SYSTEM_PROMPT, Language, QuestionPosition
from llama_index_grounded.synthesis.respond import GroundedResponse, RefusalText, refusal_words
from llama_index_grounded.synthesis.session import Session
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse
from llama_index_grounded.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.callbacks.base import EventContext
    from llama_index.core.llms import LLM
    from llama_index.core.prompts import BasePromptTemplate

    from llama_index_grounded.schema import Refusal
    from llama_index_grounded.synthesis.checking import AnswerCheck
    from llama_index_grounded.synthesis.links import UrlFor
    from llama_index_grounded.synthesis.validate import InvalidIdPolicy

__all__ = ["CitingSynthesizer"]

_dispatcher = get_dispatcher(__name__)


class CitingSynthesizer(PlanningSynthesizer):
    """Asks the LLM for a `GroundedAnswer` over numbered sources and lets only validated citations out.

    Place: after the postprocessors, as the ``response_synthesizer`` of any LlamaIndex query engine. One synthesizer
    serves many queries, threads and event loops at a time; it keeps nothing of a query.

    Args:
        llm: The model; by default ``Settings.llm``, looked up when it is needed.
        output_cls: `GroundedAnswer`, `ClaimedAnswer`, or a subclass of one with more fields.
        renderer: How sources are shown.
        system_prompt: In place of the built-in rules. What the rules ask for is checked in code either way.
        text_qa_template: The user message, with ``{context_str}`` once and ``{query_str}``.
        question_position: Where the built-in template puts the question: ``"before"``, ``"after"`` or ``"both"``.
        on_invalid_ids: Ids that name no source are dropped (``"drop"``), refuse the answer (``"refuse"``), or are
            asked for again once (``"retry"``) and then dropped.
        max_retries: Most further calls of one query, whatever they are for: a reply that can not be read, unknown ids
            with ``on_invalid_ids="retry"``, an answer that fails a check with ``on_fail="retry"``.
        checks: What the answer has to go through before it counts, in order; see `llama_index_grounded.checks`.
        refusal_text: One text, a mapping from reason to text, or a callable from a `Refusal` to its text.
        language: Language of the built-in refusal texts, ``"en"`` or ``"tr"``.
        on_error: What provider errors, unreadable replies and passed deadlines become: ``"refuse"`` or ``"raise"``.
        timeout: Seconds for all calls and checks of one query; None for no deadline. Judges among the stages have a
            time of their own.
        num_output: Most tokens of a reply; kept free in the window and sent as the limit.
        detect_truncation: Refuse when the provider counted under 60 % of the prompt that was sent.
        max_answer_chars: Longest answer that is shown, in characters.
        url_for: Where a source links to: a template such as ``"/help/{document_id}#{section_slug}"`` or a callable on
            `SourceRef`. Without it the URL in the metadata counts.
        keys: Names of the identifying metadata fields, for nodes that no stage has stamped.
        counter: How to count; by default LlamaIndex's own tokenizer setting, else ``o200k_base``.
        structured_output: How the reply is given its form. ``"auto"`` chooses by the LLM: a schema that the server
            enforces (``"schema"``: Ollama, OpenAI and servers like it), else one function that the model has to call
            (``"tool"``), else words and the schema in the prompt (``"prompt"``).
        inline_citations: Keep ``[S1]`` markers in the answer.
        streaming: Return a `GroundedStreamingResponse`, or its async twin.
        callback_manager: LlamaIndex's; by default that of ``Settings``.

    Raises:
        ConfigurationError: For an option or template that can not work (a ValueError).

    Example:
        >>> from llama_index_grounded.testing import ScriptedLLM, make_nodes
        >>> llm = ScriptedLLM(replies=[{"verdict": "answered", "sources": ["S1"], "answer": "21 days [S1]."}])
        >>> response = CitingSynthesizer(llm=llm).synthesize("How long?", make_nodes(["Within 21 days."], ids=["a"]))
        >>> str(response), [citation.node_id for citation in response.citations]
        ('21 days [S1].', ['a'])
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        output_cls: type[AnswerModel] = GroundedAnswer,
        renderer: Renderer | None = None,
        system_prompt: str | None = None,
        text_qa_template: BasePromptTemplate | None = None,
        question_position: QuestionPosition = "after",
        on_invalid_ids: InvalidIdPolicy = "drop",
        max_retries: int = 1,
        checks: Sequence[AnswerCheck] = (),
        refusal_text: RefusalText | None = None,
        language: Language = "en",
        on_error: OnError = "refuse",
        timeout: float | None = 60.0,
        num_output: int = 1024,
        detect_truncation: bool = True,
        max_answer_chars: int = 16_000,
        url_for: UrlFor | None = None,
        keys: MetadataKeys = DEFAULT_KEYS,
        counter: TokenCounter | None = None,
        structured_output: Structured = "auto",
        inline_citations: bool = True,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        need_able("checks", checks, "__iter__", "a list of checks")
        options = Options(
            output_cls=output_cls,
            renderer=XmlRenderer() if renderer is None else renderer,
            system_prompt=SYSTEM_PROMPT if system_prompt is None else system_prompt,
            question_position=question_position,
            on_invalid_ids=on_invalid_ids,
            max_retries=max_retries,
            checks=tuple(checks),
            refusal_text=refusal_text,
            language=language,
            on_error=on_error,
            timeout=timeout,
            num_output=num_output,
            detect_truncation=detect_truncation,
            max_answer_chars=max_answer_chars,
            url_for=url_for,
            structured_output=structured_output,
            inline_citations=inline_citations,
            keys=keys,
            counter=counter,
        )
        super().__init__(
            llm, options, template=text_qa_template, streaming=streaming, callback_manager=callback_manager
        )

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> GroundedResponse | GroundedStreamingResponse:
        """Answer from the nodes, or refuse.

        Raises:
            ValueError: For a blank question.
            GenerationError: With ``on_error="raise"``, where the model gave no usable answer.
        """
        with self._begin(query, response_kwargs) as (bundle, event):
            deadline = None if self._streaming else Deadline(self._options.timeout)
            session = self._session(bundle, nodes, additional_source_nodes)
            events = drive(session, self._model_for(session), self._options.timeout, deadline)
            response = GroundedStreamingResponse(session, events)
            result = response if self._streaming else response.get_response()
            event.on_end(payload={EventPayload.RESPONSE: result})
        return result

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> GroundedResponse | AsyncGroundedStreamingResponse:
        """Answer from the nodes, or refuse; see `synthesize`. A cancellation reaches the model."""
        with self._begin(query, response_kwargs) as (bundle, event):
            deadline = None if self._streaming else Deadline(self._options.timeout)
            if nodes and must_ask(self._llm):
                await asyncio.to_thread(self.context_window)  # asks the server, which must not hold up the loop
            session = self._session(bundle, nodes, additional_source_nodes)
            events = drive_async(session, self._model_for(session), self._options.timeout, deadline)
            response = AsyncGroundedStreamingResponse(session, events)
            result = response if self._streaming else await response.get_response()
            event.on_end(payload={EventPayload.RESPONSE: result})
        return result

    def _answer(self, query: str, nodes: Sequence[NodeWithScore]) -> str:
        return str(self.synthesize(query, nodes))

    async def _aanswer(self, query: str, nodes: Sequence[NodeWithScore]) -> str:
        response = await self.asynthesize(query, nodes)
        return str(response if isinstance(response, GroundedResponse) else await response.get_response())

    @contextlib.contextmanager
    def _begin(
        self, query: str | QueryBundle, options: dict[str, Any]
    ) -> Generator[tuple[QueryBundle, EventContext], None, None]:
        bundle = as_bundle(query)
        if options:
            msg = f"unknown options for one query: {', '.join(sorted(options))}; set them on the CitingSynthesizer"
            raise TypeError(msg)
        _dispatcher.event(SynthesizeStartEvent(query=query))
        payload: dict[str, Any] = {EventPayload.QUERY_STR: bundle.query_str}
        with self._callback_manager.event(CBEventType.SYNTHESIZE, payload=payload) as event:
            yield bundle, event

    def _session(
        self, bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional: Sequence[NodeWithScore] | None
    ) -> Session:
        started = time.perf_counter()
        evidence = collect(nodes, bundle, self._options.keys)
        # Only engines that answer in steps pass the real sources on the side.
        plan = self._plan(bundle, evidence, in_steps=additional is not None)
        return Session(
            query=bundle,
            plan=plan,
            conversation=Conversation(bundle.query_str, plan, self._options, self.counter.count, live=self._streaming),
            additional=additional or (),
            words=self._words,
            fingerprint=self._fingerprint(evidence),
            raises=self._options.on_error == "raise",
            live=self._streaming,
            started=started,
        )

    def _model_for(self, session: Session) -> LLM | None:
        """Look the model up only where it will be called."""
        return None if session.plan.refusal else self._llm

    def _words(self, refusal: Refusal) -> str:
        return refusal_words(refusal, self._options.refusal_text, self._options.language)

    def _fingerprint(self, evidence: Evidence) -> str:
        template = [message.content for message in self._template.format_messages(context_str="", query_str="")]
        return fingerprint(self._options, evidence.trail.stages, template=template, model=self._llm_if_any())

    def _llm_if_any(self) -> LLM | None:
        """Look the model up without calling it; a query that needs none does not fail where there is none."""
        try:
            return self._llm
        except Exception:  # noqa: BLE001 - LlamaIndex's default raises ImportError or ValueError; a call will say so
            return None
