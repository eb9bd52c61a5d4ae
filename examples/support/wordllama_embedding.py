"""Static word embeddings that work offline: wordllama as a LlamaIndex embedding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

if TYPE_CHECKING:
    from wordllama import WordLlamaInference


class WordLlamaEmbedding(BaseEmbedding):
    """Averages the token vectors that the wordllama wheel ships; needs no network and no GPU.

    It knows words, not sentences: word order and negation are lost, and Turkish is covered thinly.
    """

    model_name: str = "wordllama-l2-supercat-256"
    _model: WordLlamaInference = PrivateAttr()

    def __init__(self) -> None:
        super().__init__()
        # Only now: an example that lacks the extra can say so in one line.
        import wordllama

        self._model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex reports this model."""
        return "WordLlamaEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(x) for x in row] for row in self._model.embed(texts, norm=True)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)
