"""What differs between the kinds of LLM: how the schema is handed over, the limit of the reply, the clock, the client.

Nothing of the caller's LLM is changed: options that LlamaIndex only takes on the object go onto a shallow copy, which
shares the connections of the original.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.llm import clients
from llama_index_grounded.llm.windows import is_ollama, window_of

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        ChatResponseAsyncGen,
        ChatResponseGen,
    )
    from llama_index.core.llms import LLM
    from pydantic import BaseModel

__all__ = [
    "OTHER_PROTOCOL",
    "SCHEMA_BESIDE",
    "Kind",
    "Prepared",
    "Structured",
    "own_async_client",
    "own_client",
    "prepare",
    "speaks_openai_to_ollama",
    "structured_by",
]

Kind = Literal["ollama", "openai", "tool", "prompt"]
SCHEMA_BESIDE: Final = frozenset[Kind]({"openai", "tool"})
"""The kinds whose schema goes out beside the messages and is written into the prompt by the provider."""
Structured = Literal["auto", "schema", "tool", "prompt"]
"""How the reply is given its form: chosen by the LLM, a schema that the server enforces, a function call, or words."""

_OPENAI_BASE = ("llama_index.llms.openai.base", "OpenAI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An LLM and the options of one call."""

    llm: LLM
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tool: FunctionTool | None = None
    """The one function that the model has to call."""

    def stream(self, messages: Sequence[ChatMessage]) -> ChatResponseGen:
        """Start a streamed call."""
        if self.tool is None:
            return self.llm.stream_chat(messages, **self.options)
        return _caller(self.llm).stream_chat_with_tools(**self._call(messages))

    async def astream(self, messages: Sequence[ChatMessage]) -> ChatResponseAsyncGen:
        """Start a streamed call."""
        if self.tool is None:
            return await self.llm.astream_chat(messages, **self.options)
        return await _caller(self.llm).astream_chat_with_tools(**self._call(messages))

    def chat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """Make a call of an LLM that does not stream."""
        if self.tool is None:
            return self.llm.chat(messages, **self.options)
        return _caller(self.llm).chat_with_tools(**self._call(messages))

    async def achat(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        """Make a call of an LLM that does not stream."""
        if self.tool is None:
            return await self.llm.achat(messages, **self.options)
        return await _caller(self.llm).achat_with_tools(**self._call(messages))

    def _call(self, messages: Sequence[ChatMessage]) -> dict[str, Any]:
        return {"tools": [self.tool], "chat_history": list(messages), "tool_required": True, **self.options}


def _caller(llm: LLM) -> FunctionCallingLLM:
    if not isinstance(llm, FunctionCallingLLM) or _completes(llm):
        msg = f"{type(llm).__name__} can not call functions; use another structured_output"
        raise ConfigurationError(msg)
    return llm


def structured_by(llm: LLM, wanted: Structured) -> Kind:
    """Choose how this LLM is given the form of its reply.

    Raises:
        ConfigurationError: If it can not be given it in the wanted way.
    """
    if wanted == "prompt":
        return "prompt"
    if wanted == "tool":
        _caller(llm)
        return "tool"
    if is_ollama(llm):
        return "ollama"
    if _is_openai(llm) and llm.metadata.is_chat_model:
        return "openai"
    if wanted == "schema":
        msg = f"{type(llm).__name__} enforces no schema that we know of; use another structured_output"
        raise ConfigurationError(msg)
    calls = isinstance(llm, FunctionCallingLLM) and llm.metadata.is_function_calling_model and not _completes(llm)
    return "tool" if calls else "prompt"


def _completes(llm: LLM) -> bool:
    """Tell a client of OpenAI's protocol that only completes texts: there a request has no place for functions."""
    return _is_openai(llm) and not llm.metadata.is_chat_model


OTHER_PROTOCOL = (
    "this address looks like an Ollama server, which takes no num_ctx over OpenAI's protocol and cuts long prompts; "
    "use the class Ollama"
)
_OLLAMA_PORT = 11434


def speaks_openai_to_ollama(llm: LLM) -> bool:
    """Tell a client of OpenAI's protocol whose address is an Ollama's, by its usual port."""
    try:
        return _is_openai(llm) and urlsplit(str(getattr(llm, "api_base", ""))).port == _OLLAMA_PORT
    except ValueError:  # no address; the call will say so
        return False


def prepare(
    llm: LLM,
    kind: Kind,
    *,
    num_output: int,
    schema: Mapping[str, Any],
    output_cls: type[BaseModel],
    seconds: float | None,
    window: int | None = None,
) -> Prepared:
    """Make the copy and the options for one call: the output limit and, where the client takes one, a time limit.

    With a ``window`` of its own the copy need not ask the server for it, which may have failed to tell it before.
    """
    if is_ollama(llm):
        limits = {**getattr(llm, "additional_kwargs", {}), "num_predict": num_output}
        packed_for = window_of(llm, seconds) if window is None else window
        own = llm.model_copy(update={"additional_kwargs": limits, "context_window": packed_for})
        enforced = {"format": dict(schema)} if kind == "ollama" else {}
        return Prepared(llm=own, options=enforced, tool=_tool(kind, output_cls))
    limited = _limited(llm, num_output)
    if not _is_openai(llm):
        return Prepared(llm=limited, tool=_tool(kind, output_cls))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if seconds is not None:
        own_limit = getattr(llm, "timeout", None)
        options["timeout"] = seconds if own_limit is None else min(seconds, own_limit)
    if kind == "openai":
        options["response_format"] = _response_format(schema, output_cls)
    return Prepared(llm=limited, options=options, tool=_tool(kind, output_cls))


def _limited(llm: LLM, num_output: int) -> LLM:
    """Copy an LLM with another output limit, where its class has one; a limit among its further options gives way."""
    if "max_tokens" not in type(llm).model_fields:
        return llm
    further: dict[str, Any] = dict(getattr(llm, "additional_kwargs", None) or {})
    further.pop("max_tokens", None)
    newer = "max_completion_tokens" in further  # servers refuse a request that has both
    if newer:
        further["max_completion_tokens"] = num_output
    update: dict[str, Any] = {"max_tokens": None if newer else num_output}
    if hasattr(llm, "additional_kwargs"):
        update["additional_kwargs"] = further
    return llm.model_copy(update=update)


def own_client(llm: LLM, own: LLM, seconds: float | None) -> AbstractContextManager[None]:
    """Give one call a client that keeps to its deadline and lets go when the call ends, in the middle too."""
    if is_ollama(llm):
        clients.limit_ollama(llm, own, seconds)
        return contextlib.nullcontext()
    return clients.watch_openai(llm, own, seconds) if _is_openai(llm) else contextlib.nullcontext()


def own_async_client(llm: LLM, own: LLM) -> AbstractAsyncContextManager[None]:
    """Give one call an async client of its own, where the kind of LLM needs it."""
    if is_ollama(llm):
        return clients.own_ollama(llm, own)
    return clients.own_openai(llm, own) if _is_openai(llm) else contextlib.nullcontext()


def _tool(kind: Kind, output_cls: type[BaseModel]) -> FunctionTool | None:
    if kind != "tool":
        return None
    about = "Give your answer in these fields."
    return FunctionTool.from_defaults(fn=_keep, name=output_cls.__name__, description=about, fn_schema=output_cls)


def _keep(**fields: Any) -> dict[str, Any]:
    """Stand for the function, which is never called: its arguments are the answer."""
    return fields


def _response_format(schema: Mapping[str, Any], output_cls: type[BaseModel]) -> dict[str, Any]:
    # OpenAI's strict mode wants every property required.
    strict = set(schema["required"]) == set(schema["properties"])
    described = {"name": output_cls.__name__, "schema": dict(schema), "strict": strict}
    return {"type": "json_schema", "json_schema": described}


def _is_openai(llm: object) -> bool:
    return any((base.__module__, base.__name__) == _OPENAI_BASE for base in type(llm).__mro__)
