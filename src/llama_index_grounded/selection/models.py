"""Models as options of stages: checked at construction, and never written down."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from pydantic import AfterValidator, PlainSerializer

from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.selection.stage import refuse_to_write

__all__ = ["EmbedModel", "Judge"]


def _checked(kind: type[Any], what: str, model: Any) -> Any:
    if not isinstance(model, (kind, type(None))):
        msg = f"{what} of LlamaIndex, not {type(model).__name__}"
        raise ConfigurationError(msg)
    return model


Judge = Annotated[
    Any,
    AfterValidator(partial(_checked, LLM, "llm must be an LLM")),
    PlainSerializer(partial(refuse_to_write, name="llm")),
]
"""A model that a stage asks; None stands for ``Settings.llm``."""

EmbedModel = Annotated[
    Any,
    AfterValidator(partial(_checked, BaseEmbedding, "embed_model must be an embedding model")),
    PlainSerializer(partial(refuse_to_write, name="embed_model")),
]
"""A model that embeds for a stage; None stands for ``Settings.embed_model``."""
