"""A quick copy is the copy that Pydantic makes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.schema import ImageNode, IndexNode, NodeWithScore, TextNode
from pydantic import BaseModel, ConfigDict, PrivateAttr

from llama_index_grounded._copied import copied


class Counting(TextNode):
    """A node with private state of its own."""

    _count: int = PrivateAttr(default=0)


class Open(TextNode):
    """A node that takes any field."""

    model_config = ConfigDict(extra="allow")


class Deep(TextNode):
    """A node whose copies are deep."""

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Deep:
        """Copy all of it."""
        return super().model_copy(update=update, deep=True)


def counting() -> Counting:
    """Make one whose state is not the default."""
    made = Counting(text="a")
    made._count = 3
    return made


MODELS: list[Any] = [
    TextNode(text="a", metadata={"k": [1]}),
    ImageNode(text="a"),
    IndexNode(text="a", index_id="i"),
    NodeWithScore(node=TextNode(text="a"), score=0.5),
    counting(),
    Open.model_validate({"text": "a", "more": 1}),
    Deep.model_validate({"text": "a", "metadata": {"k": [1]}}),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("update", [{}, {"metadata": {"x": 1}}, {"score": 0.1}], ids=str)
def test_it_is_the_copy_of_pydantic(model: BaseModel, update: dict[str, Any]) -> None:
    """Fields, names of those that are set, private state and extra fields are as `model_copy` leaves them."""
    update = {name: value for name, value in update.items() if name in type(model).model_fields}
    before = copy.deepcopy(model)
    ours, theirs = copied(model, update), model.model_copy(update=update)
    assert type(ours) is type(theirs)
    assert ours == theirs
    assert list(vars(ours)) == list(vars(theirs))
    assert ours.model_fields_set == theirs.model_fields_set
    assert ours.__pydantic_private__ == theirs.__pydantic_private__
    assert ours.__pydantic_extra__ == theirs.__pydantic_extra__
    assert ours.model_dump_json() == theirs.model_dump_json()
    assert pickle.dumps(ours) == pickle.dumps(theirs)
    assert copy.deepcopy(ours) == theirs
    assert model == before


def test_a_copy_is_set_without_the_original() -> None:
    """What is assigned to a copy is not seen on the original."""
    model = TextNode(text="a")
    ours = copied(model, {})
    ours.text = "b"
    ours.metadata = {"x": 1}
    assert (model.text, model.metadata) == ("a", {})
    assert "metadata" not in model.model_fields_set
