"""Haystack: its builders of prompts and answers, and its ranker."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from typing_extensions import override

from bench.compared import library as given
from bench.compared.library import Library, calls


class Haystack(Library):
    """Haystack's parts. It brings no prompt for this, so it is given one of one line, and blocks like ours."""

    name, packages = "Haystack", ("haystack-ai",)

    def __init__(self) -> None:
        os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
        self.package, self.builders = import_module("haystack"), import_module("haystack.components.builders")
        self.rankers = import_module("haystack.components.rankers")
        self.message = import_module("haystack.dataclasses").ChatMessage
        self.generator = import_module("haystack.components.generators.chat").MockChatGenerator

    def _documents(self, texts: Sequence[str]) -> list[Any]:
        return [self.package.Document(content=text, meta={"place": place}) for place, text in enumerate(texts)]

    def _ask(self, texts: Sequence[str], reply: str, shown: str = "d.content") -> tuple[Any, list[str]]:
        sent: list[str] = []

        def play(messages: Sequence[Any]) -> str:
            sent.append(messages[-1].text)
            return reply

        one = f'<source id="{{{{ loop.index }}}}">\n{{{{ {shown} }}}}\n</source>\n'
        text = f"Cite by number.\n{{% for d in documents %}}{one}{{% endfor %}}Question: {{{{ query }}}}"
        template = [self.message.from_user(text)]
        pipeline = self.package.Pipeline()
        pipeline.add_component("prompt", self.builders.ChatPromptBuilder(template, required_variables="*"))
        pipeline.add_component("model", self.generator(response_fn=play))
        pipeline.add_component("answer", self.builders.AnswerBuilder(reference_pattern=r"\[(\d+)\]"))
        pipeline.connect("prompt.prompt", "model.messages")
        pipeline.connect("model.replies", "answer.replies")
        inputs = {"documents": self._documents(texts), "query": given.QUESTION}
        return pipeline.run({"prompt": inputs, "answer": inputs})["answer"]["answers"][0], sent

    @override
    def answer(self, texts: Sequence[str], reply: str) -> str:
        answer, sent = self._ask(texts, reply)
        cited = [each.meta["source_index"] for each in answer.documents]
        return f"“{answer.data}”, documents {cited}, {calls(len(sent))}"

    @override
    def prompt(self, texts: Sequence[str]) -> str:
        return self._ask(texts, given.PROSE)[1][0]

    def _ranked(self, texts: Sequence[str], most: int | None = None) -> list[int]:
        ranker = self.rankers.LostInTheMiddleRanker(word_count_threshold=most)
        return [each.meta["place"] for each in ranker.run(documents=self._documents(texts))["documents"]]

    @override
    def cells(self) -> dict[str, str]:
        own, name = super().cells(), "`LostInTheMiddleRanker`"
        admitted = [str(len(self._ranked(given.TEN_WORDS, most))) for most in (20, 19)]
        escaped = re.findall(self.opens, self._ask(given.HOSTILE, given.PROSE, "d.content | e")[1][0], re.MULTILINE)
        return {
            **own,
            "hostile": f"{own['hostile']}; with Jinja's filter `e` {len(escaped)}",
            "same": f"{sorted(self._ranked(given.SAME_AND_OTHER))} ({name} removes equal ids)",
            "edge": f"{'; '.join(admitted)} ({name}, words)",
            "order": f"{' '.join(map(str, self._ranked(given.RANKS)))} ({name})",
        }
