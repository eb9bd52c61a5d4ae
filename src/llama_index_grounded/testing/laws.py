"""The laws that node postprocessors keep, by kind, checked on awkward nodes."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_grounded.errors import GroundedError
from llama_index_grounded.evidence import DEFAULT_KEYS, MetadataKeys, identity_under, included_text, strip
from llama_index_grounded.selection.stage import Kind, Stage
from llama_index_grounded.testing.nodes import make_nodes

__all__ = ["LawError", "check_postprocessor"]

Factory = Callable[[], BaseNodePostprocessor]


class LawError(AssertionError):
    """A postprocessor breaks a law that its kind promises."""


_LETTER = re.compile(r"[^\W_]")
_QUERY = "How many days do I have to return a book?"
_LONG = "Printed books can be returned within twenty-one days of delivery if they are unread."


def _cases() -> dict[str, list[NodeWithScore]]:
    shared = {"document_id": "returns", "section": "window"}
    plain = ["first " * 12, "second " * 12, "third " * 12, "fourth " * 12]
    return {
        "no nodes": [],
        "one node": make_nodes(["only"]),
        "four nodes": make_nodes(plain, metadata=[{"document_id": f"d{place}"} for place in range(4)]),
        "without metadata": make_nodes(plain),
        "repeated paragraph": make_nodes([_LONG, f"{_LONG}\n\nUnless sealed."], metadata=shared),
        "the same node twice": make_nodes([_LONG, _LONG], ids=["a", "a"], metadata=shared),
        "blank text": make_nodes(["", " \n", "text"]),
        "some scores missing": make_nodes(plain, scores=[None, 0.7, float("nan"), 0.6]),
        "all scores equal": make_nodes(plain, scores=[0.5] * 4),
        "markup and odd characters": make_nodes(["</source>", "İıŞ\u202e\u200b", "a\ud800b", "<|endoftext|>"]),
    }


def check_postprocessor(
    factory: Factory,
    *,
    kind: Kind | None = None,
    cases: Mapping[str, Sequence[NodeWithScore]] | None = None,
    round_trip: bool = True,
) -> None:
    """Check the laws of a postprocessor's kind on awkward nodes.

    Every kind: nothing that was given is changed; empty in, empty out; sync equals async; unknown options are refused;
    a copy through pickle and through a dict behaves the same; every node is returned or reported. Single cases may be
    refused with an error of this package, not all.

    - A ``filter`` returns a part of its input, unchanged: ids, texts, scores, metadata and all else that a node has,
      but for the stamp under which stages of this package take notes.
    - A ``rewrite`` returns some of its nodes, with metadata that each was given, and may shorten texts or join those of
      one document: each line of a text stands in a text of that document, or runs from the end of one over to the
      beginning of another. Lines without a letter or digit, such as "…", may be anything.
    - A ``reorder`` returns a permutation, with nothing else changed.

    Filters and rewrites change nothing the second time.

    Args:
        factory: Makes a fresh postprocessor.
        kind: By default what the class declares, else ``"filter"``.
        cases: Further lists of nodes, by name.
        round_trip: False for a postprocessor that can not be pickled or written to a dict by design.

    Raises:
        LawError: At the first law that is broken, naming the case.
    """
    stage = factory()
    kind = kind or (type(stage).kind if isinstance(stage, Stage) else "filter")
    named = {**_cases(), **(cases or {})}
    judged = [_check_case(factory, kind, name, nodes, round_trip=round_trip) for name, nodes in named.items()]
    if not any(judged):
        msg = f"{type(stage).__name__} refused every case that has nodes"
        raise LawError(msg)
    _check_options(stage)


def _check_case(factory: Factory, kind: Kind, name: str, nodes: Sequence[NodeWithScore], *, round_trip: bool) -> bool:
    """Return whether there were nodes and the postprocessor took them."""
    before = copy.deepcopy(list(nodes))
    try:
        taken = _check_laws(factory, kind, list(nodes), round_trip=round_trip)
        _law(list(nodes) == before, "the nodes that were given were changed")
    except LawError as error:
        msg = f"{type(factory()).__name__}, {name}: {error}"
        raise LawError(msg) from error
    return taken and bool(nodes)


def _check_laws(factory: Factory, kind: Kind, nodes: list[NodeWithScore], *, round_trip: bool) -> bool:
    listed = list(nodes)
    try:
        result = factory().postprocess_nodes(listed, QueryBundle(_QUERY))
    except GroundedError as error:
        _law(_async_error(factory, nodes) is type(error), "async does not refuse what sync refuses")
        return False
    _law(list(map(id, listed)) == list(map(id, nodes)), "the list that was given was changed")
    _law(bool(nodes) or not result, "nodes came out of nothing")
    _check_kind(kind, nodes, result)
    in_async = _in_async(factory, nodes)
    _law(_seen(in_async) == _seen(result), "async differs from sync")
    if kind != "reorder":
        again = factory().postprocess_nodes(list(result), QueryBundle(_QUERY))
        _law(_seen(again) == _seen(result), "a second pass changes the result")
    stage = factory()
    if kind == "rewrite":
        _check_rewritten(nodes, result, stage.keys if isinstance(stage, Stage) else DEFAULT_KEYS)
    if isinstance(stage, Stage):
        _check_reports(stage, nodes)
    for copied in _copies(stage) if round_trip else ():
        same = copied.postprocess_nodes(list(nodes), QueryBundle(_QUERY))
        _law(_seen(same) == _seen(result), "a copy behaves differently")
    return True


def _in_async(factory: Factory, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Run in a loop of its own, in a thread of its own, since the caller's thread may already run one."""

    def run() -> list[NodeWithScore]:
        return asyncio.run(factory().apostprocess_nodes(list(nodes), QueryBundle(_QUERY)))

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(run).result()


def _async_error(factory: Factory, nodes: list[NodeWithScore]) -> type[GroundedError] | None:
    try:
        _in_async(factory, nodes)
    except GroundedError as error:
        return type(error)
    return None


def _check_kind(kind: Kind, nodes: Sequence[NodeWithScore], result: Sequence[NodeWithScore]) -> None:
    given, returned = Counter(_seen(nodes)), Counter(_seen(result))
    if kind == "reorder":
        _law(given == returned, "the result is no permutation")
    elif kind == "filter":
        _law(returned <= given, "a filter returned what it was not given")
    else:
        ids = Counter(scored.node.node_id for scored in nodes)
        _law(Counter(scored.node.node_id for scored in result) <= ids, "a rewrite returned an unknown node")


def _check_rewritten(nodes: Sequence[NodeWithScore], result: Sequence[NodeWithScore], keys: MetadataKeys) -> None:
    texts = defaultdict[str, list[str]](list)
    given = defaultdict[str, list[dict[str, Any]]](list)
    for scored in nodes:
        texts[identity_under(scored.node, keys).document_id].append(included_text(scored.node))
        given[scored.node.node_id].append(scored.node.metadata)
    for node in (strip(scored).node for scored in result):
        described = any(_holds(metadata, node.metadata) for metadata in given[node.node_id])
        _law(described, "a rewrite returned a node with metadata that it was not given")
        own = texts[identity_under(node, keys).document_id]
        lines = filter(_LETTER.search, included_text(node).splitlines())
        _law(all(_stands(line, own) for line in lines), "a rewrite wrote what stands in no text of the document")


def _holds(metadata: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(name in metadata and repr(metadata[name]) == repr(value) for name, value in part.items())


def _stands(line: str, texts: Sequence[str]) -> bool:
    """Say whether a line stands in a text, or is put together from texts of which each begins within the one before."""
    if any(line in text for text in texts):
        return True
    reached = max((end for end in range(1, len(line)) if any(text.endswith(line[:end]) for text in texts)), default=0)
    for start in range(1, len(line)):
        if start > reached:
            return False
        if any(text.startswith(line[start:]) for text in texts):
            return True
        reached = max([reached, *(start + len(text) for text in texts if text and line.startswith(text, start))])
    return False


def _check_reports(stage: Stage, nodes: Sequence[NodeWithScore]) -> None:
    selection = stage.select(nodes, QueryBundle(_QUERY))
    gone = Counter(d.node_id for d in selection.decisions if d.action in ("dropped", "refused"))
    kept = Counter(scored.node.node_id for scored in selection.nodes)
    _law(kept + gone == Counter(scored.node.node_id for scored in nodes), "a node is neither returned nor reported")
    _law(all(d.reason != "unreported" for d in selection.decisions), "a node was dropped without a decision")


def _check_options(stage: BaseNodePostprocessor) -> None:
    names = type(stage).model_fields.keys() - {"callback_manager"}
    options: dict[str, Any] = {name: getattr(stage, name) for name in names}
    type(stage)(**options)
    try:
        type(stage)(**options, no_such_option=1)  # type: ignore[call-arg]
    except (ValueError, TypeError):
        return
    msg = f"{type(stage).__name__}: an unknown option was accepted"
    raise LawError(msg)


def _copies(stage: BaseNodePostprocessor) -> list[BaseNodePostprocessor]:
    by_dict = type(stage).from_dict(stage.to_dict())
    by_json = type(stage).from_json(stage.to_json())
    return [pickle.loads(pickle.dumps(stage)), copy.deepcopy(stage), by_dict, by_json]  # noqa: S301 - our own bytes


def _seen(nodes: Sequence[NodeWithScore]) -> list[tuple[str, str, str]]:
    """What counts as the same node: id, score, and all that a node has but for the stamp, not-a-number included."""
    plain = [(scored.node.node_id, scored.score, strip(scored).node) for scored in nodes]
    return [(node_id, repr(score), f"{type(node).__name__}{node.model_dump()!r}") for node_id, score, node in plain]


def _law(holds: bool, law: str) -> None:  # noqa: FBT001 - the law is the point
    if not holds:
        raise LawError(law)
