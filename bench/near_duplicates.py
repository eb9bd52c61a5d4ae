"""Measure which pairs of real document versions the near-duplicate filter would merge, by threshold.

    python -m bench.near_duplicates --data FOLDER [--embedding]

``version_pairs`` labels pairs by token overlap. A pair whose numbers changed must never be merged (``numbers_changed``,
as its makers found by comparing digits); identical and near_duplicate pairs without such a change should be. FOLDER
holds the set and its two corpora. The speed is that of the whole filter on 1,000 nodes of 180 words. With
``--embedding`` the cosine of wordllama's static embeddings is measured, too; that takes the extra ``demo``.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from bench.sets import parse_with_data, rows_of
from llama_index_grounded.selection.near_duplicates import Method, NearDuplicateFilter
from llama_index_grounded.testing import make_nodes

PAIRS = "version_pairs.dev.jsonl"
PAGES = ("etcd_versions.corpus.jsonl", "site_policy_versions.corpus.jsonl")
LABELS = ("identical", "near_duplicate", "edited", "rewritten", "same_page_other_section", "unrelated")
THRESHOLDS: dict[Method, tuple[float, ...]] = {
    "lexical": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "embedding": (0.8, 0.85, 0.9, 0.95, 0.98, 1.0),
}
SPEED_NODES, SPEED_WORDS = 1000, 180


def main() -> int:
    """Print the tables; return 1 where a pair whose numbers changed is merged."""
    options = _parse()
    pairs = rows_of(options.data / PAIRS)
    texts = {row["doc_id"]: str(row["text"]) for name in PAGES for row in rows_of(options.data / name)}
    false = measure(pairs, texts, "lexical", None)
    if options.embedding:
        false += measure(pairs, texts, "embedding", _static())
    print(f"\n{SPEED_NODES} nodes of {SPEED_WORDS} words: {speed(_different()):.2f} s all different, ", end="")
    print(f"{speed(_alike()):.2f} s all alike by half")
    return 1 if false else 0


def measure(pairs: list[dict[str, Any]], texts: dict[str, str], method: Method, model: BaseEmbedding | None) -> int:
    """Print what is merged of each label, and return how many pairs are merged though their numbers changed."""
    print(f"\n| {method} | numbers changed | {' | '.join(LABELS)} |")
    print("|---" * (len(LABELS) + 2) + "|")
    worst = 0
    for threshold in THRESHOLDS[method]:
        stage = NearDuplicateFilter(method=method, threshold=threshold, embed_model=model)
        merged, total = Counter[str](), Counter[str]()
        for pair in pairs:
            label = "changed" if pair["numbers_changed"] else str(pair["label"])
            total[label] += 1
            left = stage.postprocess_nodes(make_nodes([texts[pair["a"]], texts[pair["b"]]]))
            if len(left) == 1:
                merged[label] += 1
                if label == "changed":
                    print(f"{threshold}: {pair['id']}", file=sys.stderr)
        cells = [f"{merged[label]}/{total[label]}" for label in ("changed", *LABELS)]
        print(f"| {threshold} | {' | '.join(cells)} |")
        worst = max(worst, merged["changed"])
    return worst


def speed(texts: list[str]) -> float:
    """Return the seconds of processor time that the filter takes."""
    nodes = make_nodes(texts)
    started = time.process_time()
    NearDuplicateFilter().postprocess_nodes(nodes)
    return time.process_time() - started


def _different() -> list[str]:
    drawn = random.Random(7)  # noqa: S311 - a sample, not a secret
    return [" ".join(f"word{drawn.randrange(5000)}" for _ in range(SPEED_WORDS)) for _ in range(SPEED_NODES)]


def _alike() -> list[str]:
    drawn = random.Random(7)  # noqa: S311 - a sample, not a secret
    same = " ".join(f"same{at}" for at in range(SPEED_WORDS * 2 // 3))
    return [
        f"{same} " + " ".join(f"word{drawn.randrange(5000)}" for _ in range(SPEED_WORDS // 3))
        for _ in range(SPEED_NODES)
    ]


def _static() -> BaseEmbedding:
    """Make the embedding of the examples; only here, since it takes an extra."""
    model: BaseEmbedding = import_module("examples.support.wordllama_embedding").WordLlamaEmbedding()
    return model


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the near-duplicate filter.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--embedding", action="store_true", help="measure static embeddings, too")
    return parse_with_data(parser, (PAIRS, *PAGES))


if __name__ == "__main__":
    sys.exit(main())
