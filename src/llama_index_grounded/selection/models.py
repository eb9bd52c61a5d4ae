"""Models as options of stages: checked at construction, and never written down."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import AfterValidator, PlainSerializer

from llama_index_grounded._allowed import need_llm, need_part
from llama_index_grounded.selection.stage import refuse_to_write

__all__ = ["EmbedModel", "Judge"]


def _judge(model: Any) -> Any:
    need_llm(model)
    return model


def _embed_model(model: Any) -> Any:
    need_part("embed_model", model, (BaseEmbedding, type(None)), "an embedding model of LlamaIndex")
    return model


Judge = Annotated[
    Any,
    AfterValidator(_judge),
    PlainSerializer(partial(refuse_to_write, name="llm")),
]
"""A model that a stage asks; None stands for ``Settings.llm``."""

EmbedModel = Annotated[
    Any,
    AfterValidator(_embed_model),
    PlainSerializer(partial(refuse_to_write, name="embed_model")),
]
"""A model that embeds for a stage; None stands for ``Settings.embed_model``."""
