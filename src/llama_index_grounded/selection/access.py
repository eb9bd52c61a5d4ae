"""Look at every node once more before anything uses it: may this query read it at all?

Place: first, right behind the retriever whose filter it doubles, and once more behind whatever adds nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters
from pydantic import field_serializer, field_validator, model_validator

from llama_index_grounded.errors import AccessViolationError, ConfigurationError
from llama_index_grounded.evidence import mark_of, strip
from llama_index_grounded.schema import Decision
from llama_index_grounded.selection.carrier import Evidence, Trail, slot_of
from llama_index_grounded.selection.filters import check_filters, holds
from llama_index_grounded.selection.rules import is_blank, is_true, refuse_async
from llama_index_grounded.selection.stage import Kind, Outcome, Stage

__all__ = ["WITHHELD", "AccessGuard", "Violation", "violation"]

WITHHELD = "(withheld)"
"""Stands for the ids of a dropped node wherever the query's own reader may look."""

_logger = logging.getLogger(__name__)

Predicate = Callable[[BaseNode], bool]
Rule = Literal["require", "filters", "predicate", "predicate_error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why a node may not be read."""

    rule: Rule
    """The first rule that it breaks; ``predicate_error`` where the predicate raised."""
    error: Exception | None = None
    """What the predicate raised."""


def violation(
    node: BaseNode, *, filters: MetadataFilters | None, predicate: Predicate | None, require: Sequence[str] = ()
) -> Violation | None:
    """Tell which rule a node breaks, or None where it keeps all of them.

    Required fields come first, then the filters, then the predicate, which never sees a node that broke one before it.
    """
    if any(is_blank(node.metadata.get(name)) for name in require):
        return Violation(rule="require")
    if filters is not None and holds(filters, node.metadata) is not True:
        return Violation(rule="filters")
    if predicate is None:
        return None
    try:
        return None if is_true(predicate, node) else Violation(rule="predicate")
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever went wrong, nobody has said yes
        return Violation(rule="predicate_error", error=error)


class AccessGuard(Stage):
    """Stop nodes that this query may not read: the second lock, behind the filter of the retriever.

    A node passes only where every rule is shown to hold. Fields in ``require`` must be there and say something: an
    invisible text, ``[""]`` and not-a-number do not. Of a passage, each chunk has to pass too. ``filters``
    are evaluated exactly (`filters.holds`): the text ``"007"`` is not the number 7, ``True`` is not 1, and a missing
    field or a comparison of two kinds of value is a violation, under NOT too. The predicate must return True itself.

    With ``on_violation="drop"`` the other nodes go on. The decision then reaches the response, the audit log and the
    events with ``(withheld)`` in place of both ids, because an id may tell something of a document; a warning goes to
    the logger ``llama_index_grounded.selection.access``, whose record has the true ids in ``access_violations`` and
    not in its text. `select`, which was handed the nodes, returns the true ids.

    Args:
        filters: What the node's metadata must satisfy; copied.
        predicate: Called with the node, on a worker thread in async queries; context variables of the query are set
            there. It can not be written to a dict, and to pickle it must be importable by its name.
        require: Metadata fields that every node must have.
        on_violation: ``"raise"``, or ``"drop"`` to go on without the node. ``"drop"`` must be the first stage of this
            package, or the first behind whatever adds nodes: decisions of the stages in between name nodes.
        keys: Names of the identifying metadata fields.

    Raises:
        AccessViolationError: When a node breaks a rule and ``on_violation`` is ``"raise"``.
        ConfigurationError: On use, when ``"drop"`` comes behind stages that may have named what it drops, and when the
            predicate returns something to await.

    Example:
        >>> from llama_index_grounded.testing import make_nodes
        >>> nodes = make_nodes(["ours", "theirs"], metadata=[{"tenant": "007"}, {"tenant": 7}])
        >>> guard = AccessGuard(predicate=lambda node: node.metadata["tenant"] == "007", on_violation="drop")
        >>> [scored.text for scored in guard.postprocess_nodes(nodes)]
        ['ours']
    """

    kind: ClassVar[Kind] = "filter"
    guards: ClassVar[bool] = True

    filters: MetadataFilters | None = None
    predicate: Predicate | None = None
    require: Sequence[str] = ()
    on_violation: Literal["raise", "drop"] = "raise"

    @field_validator("filters")
    @classmethod
    def _mean_something(cls, filters: MetadataFilters | None) -> MetadataFilters | None:
        if filters is None:
            return None
        check_filters(filters)
        return filters.model_copy(deep=True)

    @field_validator("predicate")
    @classmethod
    def _answers_at_once(cls, predicate: Predicate | None) -> Predicate | None:
        refuse_async(predicate)
        return predicate

    @field_validator("require")
    @classmethod
    def _are_names(cls, require: Sequence[str]) -> Sequence[str]:
        if not all(name.strip() for name in require):
            raise ConfigurationError("require needs names of fields that are not blank")
        return tuple(require)

    @model_validator(mode="after")
    def _guards_something(self) -> AccessGuard:
        self._check_rules()
        return self

    def _check_rules(self) -> None:
        if self.filters is None and self.predicate is None and not self.require:
            raise ConfigurationError("AccessGuard needs filters, a predicate or require: without one it guards nothing")

    @field_serializer("predicate")
    def _without_predicate(self, predicate: Predicate | None) -> None:
        if predicate is not None:
            raise ConfigurationError("the predicate of an AccessGuard can not be written down: build the guard anew")

    def choose(self, nodes: Evidence, query: QueryBundle | None) -> Outcome:
        """Let every node pass, raise, or leave out those that break a rule."""
        # Asked again: an assignment that Pydantic refuses as a whole has still taken place.
        self._check_rules()
        if self.on_violation == "drop":
            _check_place(nodes.trail)
        judged = [(scored, self._violation(scored, nodes.trail)) for scored in nodes]
        broken = [(scored.node.node_id, found) for scored, found in judged if found]
        if not broken:
            return Outcome(nodes)
        named = tuple((node_id, found.rule) for node_id, found in broken)
        if self.on_violation == "raise":
            cause = next((found.error for _, found in broken if found.error), None)
            raise AccessViolationError(self.class_name(), len(nodes), named) from cause
        if any(slot_of(scored) < nodes.trail.shown for scored, found in judged if found):
            raise _too_late(nodes.trail)
        _log(len(nodes), named)
        kept = [scored for scored, found in judged if not found]
        return Outcome(kept, [self.decision(scored, "dropped", "access") for scored, found in judged if found])

    def _violation(self, scored: NodeWithScore, trail: Trail) -> Violation | None:
        """Judge a node, and each chunk of a passage: the passage has only the metadata on which all of them agree."""
        joined = trail.passages.get(slot_of(scored)) if "spans" in mark_of(scored) else None
        found = (
            violation(strip(each).node, filters=self.filters, predicate=self.predicate, require=self.require)
            for each in (scored, *(joined.chunks if joined else ()))
        )
        return next(filter(None, found), None)

    def disclosed(self, decisions: Sequence[Decision]) -> Sequence[Decision]:
        """Withhold the ids of dropped nodes from whoever asked the query."""
        return [replace(decision, node_id=WITHHELD, document_id=WITHHELD) for decision in decisions]


def _check_place(trail: Trail) -> None:
    """Refuse to drop what may have been named already: by the first stages, or after nodes were added."""
    if trail.unguarded or (trail.stages and not trail.stages[0].guards):
        raise _too_late(trail)


def _too_late(trail: Trail) -> ConfigurationError:
    earlier = trail.unguarded or next(stage.class_name() for stage in reversed(trail.stages) if not stage.guards)
    return ConfigurationError(
        f"AccessGuard(on_violation='drop') comes behind {earlier}, whose decisions may name the nodes that it drops: "
        "put the guard first, and another one right behind whatever adds nodes"
    )


def _log(received: int, named: Sequence[tuple[str, str]]) -> None:
    rules = ", ".join(dict.fromkeys(rule for _, rule in named))
    _logger.warning(
        "AccessGuard dropped %d of %d nodes that the retriever should not have returned (%s)",
        *(len(named), received, rules),
        extra={"access_violations": tuple(named)},
    )
