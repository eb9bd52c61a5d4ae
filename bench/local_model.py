"""Ask a model on Ollama questions about known paragraphs, streamed, and count what comes out.

    python -m bench.local_model --data FOLDER --model gemma3:4b --questions 64

Each question goes with its own paragraph and three others, in a random order. Every second one is asked async. Whatever
the model writes, a stream must equal its own result, cite nothing that was not shown and hold no tag or unknown marker.

FOLDER holds ``xquad_en.dev.jsonl`` (``question``, ``answers``, ``docs``) and ``xquad_en.corpus.jsonl`` (``doc_id``,
``text``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.ollama import Ollama

from bench.sets import parse_with_data, rows_of
from llama_index_grounded import CitingSynthesizer, GroundedResult
from llama_index_grounded.schema import ResultEvent, SourcesEvent, StreamEvent, TextEvent
from llama_index_grounded.synthesis.streaming import AsyncGroundedStreamingResponse, GroundedStreamingResponse

OTHERS = 3
TAG = re.compile(r"</?source\b")
MARKER = re.compile(r"\[(S\d+)\]")


def main() -> int:
    """Ask, check and count; return 1 if any stream broke a promise."""
    options = _parse()
    llm = Ollama(
        model=options.model,
        base_url=options.url,
        context_window=options.window,
        request_timeout=options.timeout,
        temperature=0.0,
    )
    synthesizer = CitingSynthesizer(llm, streaming=True, num_output=options.num_output, timeout=options.timeout)
    outcomes, verdicts, faults = Counter[str](), Counter[str](), list[str]()
    right = cited = 0
    for place, (row, nodes) in enumerate(_cases(options.data, options.lang, options.questions, options.seed)):
        started = time.perf_counter()
        events = _ask(synthesizer, row["question"], nodes, in_async=bool(place % 2))
        result, broken = check(events)
        faults += [f"{row['id']}: {fault}" for fault in broken]
        outcomes[str(result.refusal.reason) if result.refusal else "answer"] += 1
        verdicts[str(result.verdict)] += 1
        right += any(answer.lower() in result.answer.lower() for answer in row["answers"])
        cited += row["docs"][0]["doc_id"] in {citation.document_id for citation in result.citations}
        print(f"{place + 1} {time.perf_counter() - started:.0f} s {result.answer[:70]!r}", file=sys.stderr, flush=True)
    report = {
        "model": options.model,
        "questions": options.questions,
        "outcomes": dict(outcomes),
        "verdicts": dict(verdicts),
        "answer holds the expected words": right,
        "expected paragraph cited": cited,
        "faults": faults,
    }
    if outcomes["provider_error"] == options.questions:
        print(f"no question was answered at {options.url}: nothing was measured", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 1 if faults else 0


def check(events: list[StreamEvent]) -> tuple[GroundedResult, list[str]]:
    """Return the result of a stream, and which promises it broke."""
    last = events[-1]
    if not isinstance(last, ResultEvent):
        raise TypeError("the stream did not end in its result")
    result, text = last.grounded, "".join(event.text for event in events if isinstance(event, TextEvent))
    keys = {source.key for source in result.sources}
    promises = {
        "the sources come first": isinstance(events[0], SourcesEvent),
        "the stream equals its result": text == result.answer,
        "a citation names a source": {citation.key for citation in result.citations} <= keys,
        "a marker names a source": set(MARKER.findall(text)) <= keys,
        "no tag is shown": TAG.search(text) is None,
        "an answer is cited, a refusal is not": bool(result.citations) is result.answerable,
        "the result survives JSON": GroundedResult.model_validate_json(result.model_dump_json()) == result,
    }
    return result, [name for name, kept in promises.items() if not kept]


def _ask(
    synthesizer: CitingSynthesizer, question: str, nodes: list[NodeWithScore], *, in_async: bool
) -> list[StreamEvent]:
    if in_async:
        return asyncio.run(_ask_async(synthesizer, question, nodes))
    return list(cast("GroundedStreamingResponse", synthesizer.synthesize(question, nodes)).events())


async def _ask_async(synthesizer: CitingSynthesizer, question: str, nodes: list[NodeWithScore]) -> list[StreamEvent]:
    response = cast("AsyncGroundedStreamingResponse", await synthesizer.asynthesize(question, nodes))
    return [event async for event in response.aevents()]


def _cases(folder: Path, lang: str, count: int, seed: int) -> Iterator[tuple[dict[str, Any], list[NodeWithScore]]]:
    drawn = random.Random(seed)  # noqa: S311 - a sample, not a secret
    texts = {page["doc_id"]: page["text"] for page in rows_of(folder / f"xquad_{lang}.corpus.jsonl")}
    for row in drawn.sample(rows_of(folder / f"xquad_{lang}.dev.jsonl"), count):
        own = row["docs"][0]["doc_id"]
        shown = [own, *drawn.sample(sorted(texts.keys() - {own}), OTHERS)]
        drawn.shuffle(shown)
        yield (
            row,
            [
                NodeWithScore(node=TextNode(id_=name, text=texts[name], metadata={"document_id": name}), score=0.9)
                for name in shown
            ],
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ask a model on Ollama, streamed, and count the outcomes.")
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder with the questions and the paragraphs")
    add("--lang", default="en", help="en or tr")
    add("--url", default="http://127.0.0.1:11434", help="the Ollama server")
    add("--model", default="gemma3:4b")
    add("--questions", type=int, default=64)
    add("--num-output", type=int, default=512, help="most tokens of a reply")
    add("--window", type=int, default=4096, help="tokens, sent as num_ctx")
    add("--timeout", type=float, default=300.0, help="seconds per question")
    add("--seed", type=int, default=7)
    return parse_with_data(parser, ("xquad_{lang}.corpus.jsonl", "xquad_{lang}.dev.jsonl"))


if __name__ == "__main__":
    sys.exit(main())
