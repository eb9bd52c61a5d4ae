"""LangChain: its chain over stuffed documents, its parser of structured replies, its document filters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from bench.compared import library as given
from bench.compared.library import Library, calls


class Cited(BaseModel):
    """What LangChain's guides ask a model for: an answer, and the numbers of its sources."""

    answer: str
    citations: list[int]


class LangChain(Library):
    """LangChain's parts. It brings no prompt for this, so it is given one of one line, and blocks like ours."""

    name, packages = "LangChain", ("langchain-core", "langchain-classic", "langchain-community")

    def __init__(self) -> None:
        self.prompts = import_module("langchain_core.prompts")
        self.combine = import_module("langchain_classic.chains.combine_documents")
        self.filters = import_module("langchain_community.document_transformers")
        self.compressors = import_module("langchain_classic.retrievers.document_compressors")
        self.fuzzy = import_module("langchain_classic.chains.openai_functions.citation_fuzzy_match")

    def _documents(self, texts: Sequence[str]) -> list[Any]:
        make = import_module("langchain_core.documents").Document
        return [make(page_content=text, metadata={"number": place + 1}) for place, text in enumerate(texts)]

    def _ask(self, texts: Sequence[str], reply: str) -> tuple[str, list[str]]:
        sent: list[str] = []

        def model(prompt: Any) -> str:
            sent.append(prompt.to_string())
            return reply

        prompt = self.prompts.ChatPromptTemplate.from_template("Cite by number.\n{context}\nQuestion: {question}")
        shown = self.prompts.PromptTemplate.from_template('<source id="{number}">\n{page_content}\n</source>')
        played = import_module("langchain_core.runnables").RunnableLambda(model)
        chain = self.combine.create_stuff_documents_chain(played, prompt, document_prompt=shown)
        return chain.invoke({"context": self._documents(texts), "question": given.QUESTION}), sent

    @override
    def answer(self, texts: Sequence[str], reply: str) -> str:
        text, sent = self._ask(texts, reply)
        numbers = [int(number) for number in re.findall(r"\[(\d)\]", reply)]
        parser = import_module("langchain_core.output_parsers").PydanticOutputParser(pydantic_object=Cited)
        cited = parser.parse(Cited(answer=reply, citations=numbers).model_dump_json()).citations
        return f"“{text}”, {calls(len(sent))}{f'; as a structured reply: citations {cited}' if numbers else ''}"

    @override
    def prompt(self, texts: Sequence[str]) -> str:
        return self._ask(texts, given.PROSE)[1][0]

    def _quoted(self, quote: str) -> str:
        found = list(self.fuzzy.FactWithEvidence(fact=given.PROSE, substring_quote=[quote]).get_spans(given.WINDOW))
        return f"found as “{given.WINDOW[found[0][0] : found[0][1]]}”" if found else "not found"

    @override
    def cells(self) -> dict[str, str]:
        embedding, ten = self._embedding(), self._documents(given.TEN_WORDS)
        groups = [self.combine.split_list_of_docs(ten, lambda group: 10 * len(group), most) for most in (20, 19)]
        sizes = "; ".join(str([len(group) for group in each]) for each in groups)
        ordered = self.filters.LongContextReorder().transform_documents(self._documents(given.RANKS))
        own = {
            **super().cells(),
            "edge": f"sources in each of several calls: {sizes} (`split_list_of_docs`)",
            "quotes": f"{'; '.join(map(self._quoted, given.QUOTES))} (`citation_fuzzy_match`)",
            "order": f"{' '.join(each.page_content for each in ordered)} (`LongContextReorder`)",
        }
        if embedding is None:
            return {**own, "same": "not run: wordllama is missing", "low": "not run: wordllama is missing"}
        left = self.filters.EmbeddingsRedundantFilter(embeddings=embedding).transform_documents(
            self._documents(given.SAME_AND_OTHER)
        )
        gate = self.compressors.EmbeddingsFilter(embeddings=embedding, k=None, similarity_threshold=given.THRESHOLD)
        passed = [
            each.page_content for each in gate.compress_documents(self._documents(given.TEXTS), given.OTHER_QUESTION)
        ]
        return {
            **own,
            "same": f"{[each.metadata['number'] - 1 for each in left]} (`EmbeddingsRedundantFilter`)",
            "low": f"{len(passed)} sources left (`EmbeddingsFilter`), then {self.answer(passed, given.PROSE)}",
        }

    def _embedding(self) -> Any:
        """Make static embeddings; None where wordllama is not installed."""
        try:
            wordllama = import_module("wordllama")
        except ImportError:
            return None
        model = wordllama.WordLlama.load(cache_dir=Path(str(wordllama.__file__)).parent, disable_download=True)
        base = import_module("langchain_core.embeddings").Embeddings
        embed = {
            "embed_documents": lambda _, texts: model.embed(texts, norm=True).tolist(),
            "embed_query": lambda _, text: model.embed([text], norm=True).tolist()[0],
        }
        return type("Static", (base,), embed)()
