"""A field is called by one name everywhere: in the list of fields, in the schema, and where the reply is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import AliasChoices, AliasPath, ConfigDict, Field
from pydantic.alias_generators import to_camel

from llama_index_grounded import CitingSynthesizer, GroundedAnswer
from llama_index_grounded.errors import ConfigurationError
from llama_index_grounded.llm.structured import schema_of
from llama_index_grounded.synthesis.prompts import envelope
from llama_index_grounded.testing import ScriptedLLM
from tests.streaming.kinds import MODES, OK, SOURCES, ask


class Plain(GroundedAnswer):
    """An alias."""

    topic: str = Field(alias="subject")


class Read(GroundedAnswer):
    """An alias for reading, another for writing."""

    topic: str = Field(validation_alias="subject", serialization_alias="other")


class Written(GroundedAnswer):
    """An alias for writing alone."""

    topic: str = Field(serialization_alias="other")


class Chosen(GroundedAnswer):
    """Several names, one of them inside of another field."""

    topic: str = Field(validation_alias=AliasChoices(AliasPath("meta", "topic"), "subject", "theme"))


class Either(GroundedAnswer):
    """The alias or the name."""

    model_config = ConfigDict(validate_by_name=True)

    topic: str = Field(alias="subject")


class Camel(GroundedAnswer):
    """Names that are made."""

    model_config = ConfigDict(alias_generator=to_camel)

    main_topic: str


class ByName(GroundedAnswer):
    """Aliases that are not read."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_alias=False, validate_by_name=True)

    main_topic: str


class Ours(GroundedAnswer):
    """An alias for a field of ours."""

    answer: str = Field(alias="text")


NAMES = [
    (GroundedAnswer, []),
    (Plain, ["subject"]),
    (Read, ["subject"]),
    (Written, ["topic"]),
    (Chosen, ["subject"]),
    (Either, ["subject"]),
    (Camel, ["mainTopic"]),
    (ByName, ["main_topic"]),
]


def listed(output_cls: type[GroundedAnswer]) -> list[str]:
    """Return the names that the prompt lists."""
    return [line[2:].split(":")[0] for line in envelope(output_cls, None).splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("output_cls, own", NAMES)
def test_a_model_that_does_as_it_is_told_is_understood(
    output_cls: type[GroundedAnswer], own: list[str], mode: str
) -> None:
    """The list of fields and the schema have the same names, and a reply with these is an answer."""
    names = ["verdict", "sources", "answer", *own]
    assert listed(output_cls) == names
    assert list(schema_of(output_cls)["properties"]) == schema_of(output_cls)["required"] == names
    llm = ScriptedLLM([{**OK, **dict.fromkeys(own, "returns")}], chunk_size=4)
    result = ask(llm, mode, output_cls=output_cls, max_retries=0).result
    assert result.answer == OK["answer"]
    assert all(f"- {name}: " in llm.prompts[0] for name in names)


@pytest.mark.parametrize("mode", MODES)
def test_a_field_of_ours_may_have_another_name(mode: str) -> None:
    """The reply is read by it; a stream waits, since nobody looks for the text there."""
    reply = {"verdict": "answered", "sources": ["S1"], "text": "Within 21 days [S1]."}
    asked = ask(ScriptedLLM([reply], chunk_size=4), mode, output_cls=Ours, max_retries=0)
    assert asked.texts == ["Within 21 days [S1]."]
    assert asked.result.answerable


@pytest.mark.parametrize(
    "output_cls, name", [(Chosen, "theme"), (Chosen, "meta"), (Either, "topic"), (Camel, "mainTopic")]
)
def test_every_name_that_the_class_reads_is_read(output_cls: type[GroundedAnswer], name: str) -> None:
    """Also where it comes first: the text behind it is shown while it is written."""
    own: dict[str, Any] = {name: {"topic": "returns"} if name == "meta" else "returns"}
    asked = ask(ScriptedLLM([{**own, **OK}], chunk_size=4), "stream", output_cls=output_cls, max_retries=0)
    assert asked.result.answerable
    assert len(asked.texts) > 1


@pytest.mark.parametrize("output_cls, own", NAMES[1:])
def test_a_fault_of_a_field_is_told_by_the_name_that_was_asked_for(
    output_cls: type[GroundedAnswer], own: list[str]
) -> None:
    """A missing field is named as the prompt names it, and is not called unknown."""
    result = ask(ScriptedLLM([OK]), "sync", output_cls=output_cls, max_retries=0).result
    assert result.refusal is not None
    if output_cls is not Chosen:  # Pydantic names the first way in, which is no name of a field
        assert result.refusal.detail == f"the JSON object does not fit: {own[0]}: missing"


def test_a_field_inside_of_another_can_not_be_asked_for() -> None:
    """A class that reads a field from inside of another alone fails at construction: no schema says so."""

    class Inside(GroundedAnswer):
        topic: str = Field(validation_alias=AliasPath("meta", "topic"))

    with pytest.raises(ConfigurationError, match="Inside has no name for its field topic"):
        CitingSynthesizer(ScriptedLLM([OK]), output_cls=Inside)


def test_the_prompt_of_a_model_that_is_given_no_schema_names_each_field_once() -> None:
    """List and schema stand in one prompt, and neither has a name that the other has not."""
    plan = CitingSynthesizer(ScriptedLLM(["never"]), output_cls=Plain).preview("How long?", SOURCES)
    text = "\n".join(message.content or "" for message in plan.messages)
    assert "topic" not in text
    assert json.dumps(schema_of(Plain)) in text
