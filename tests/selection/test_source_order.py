"""Orders that follow the documents: by date, and by place in the document."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeWithScore, TextNode
from pydantic import ValidationError

from llama_index_grounded.selection import SourceOrder
from llama_index_grounded.selection.source_order import natural, when
from llama_index_grounded.testing import check_postprocessor, make_nodes

_values = st.sampled_from(
    [
        None,
        "",
        "2026-03-01",
        "2025",
        "2026-13-01",
        "p2",
        "p10",
        7,
        7.5,
        float("nan"),
        True,
        [1],
        "0001-01-01T00:00+14:00",
    ]
)


def texts(nodes: list[NodeWithScore]) -> list[str]:
    """Return the texts in order."""
    return [scored.node.get_content() for scored in nodes]


@given(
    fields=st.lists(st.fixed_dictionaries({"last_updated": _values, "page": _values}), max_size=8),
    documents=st.lists(st.sampled_from("ab"), min_size=8, max_size=8),
    order=st.sampled_from([("date", "first"), ("date", "last"), ("position", "last")]),
)
def test_every_order_is_a_permutation(fields: list[dict[str, Any]], documents: list[str], order: Any) -> None:
    """Whatever dates and pages hold, mixed types and nonsense included, nodes only move; a second pass moves none."""
    nodes = make_nodes(
        [str(place) for place in range(len(fields))],
        metadata=[{**each, "document_id": documents[place]} for place, each in enumerate(fields)],
    )
    by, newest = order
    stage = SourceOrder(by=by, newest=newest)
    once = stage.postprocess_nodes(nodes)
    assert sorted(texts(once)) == sorted(texts(nodes))
    assert all(any(scored.node.node_id == given.node.node_id for given in nodes) for scored in once)


@pytest.mark.parametrize("options", [{"by": "date"}, {"by": "date", "newest": "first"}, {"by": "position"}])
def test_the_laws_of_a_reorder(options: dict[str, Any]) -> None:
    """The laws of every reorder hold, copies included."""
    check_postprocessor(lambda: SourceOrder(**options))


DATES = ["2026-03-01", None, "2024", "2025-07-01T10:00:00+03:00", "2025-07-01T08:00:00", "soon"]


@pytest.mark.parametrize("newest, expected", [("last", [2, 3, 4, 0, 1, 5]), ("first", [0, 4, 3, 2, 1, 5])])
def test_by_date(newest: Any, expected: list[int]) -> None:
    """Oldest to newest or back, time zones counted in; what has no date comes last, in rank order."""
    nodes = make_nodes(list("012345"), metadata=[{"last_updated": value} for value in DATES])
    assert texts(SourceOrder(by="date", newest=newest).postprocess_nodes(nodes)) == [str(place) for place in expected]


def test_equal_dates_keep_rank_order() -> None:
    """Ties are not reversed with the direction."""
    nodes = make_nodes(list("abc"), metadata={"last_updated": "2026-03-01"})
    for newest in ("first", "last"):
        assert texts(SourceOrder(by="date", newest=newest).postprocess_nodes(nodes)) == list("abc")


def test_p10_does_not_come_before_p2() -> None:
    """Pages sort as numbers, whatever stands around them; roman ones stand in front, unnumbered ones behind."""
    pages = ["p10", "p2", "p1", "iv", None, "10", "P3"]
    fields = [{"document_id": "manual", "page": page} for page in pages]
    ordered = SourceOrder(by="position").postprocess_nodes(make_nodes([str(page) for page in pages], metadata=fields))
    assert texts(ordered) == ["iv", "10", "p1", "p2", "P3", "p10", "None"]

    labels = ["3", "ix", "v", "i", "1", "xl", "xxxix", "IV", "12", "A", "vi"]
    fields = [{"document_id": "manual", "page": label} for label in labels]
    ordered = SourceOrder(by="position").postprocess_nodes(make_nodes(labels, metadata=fields))
    assert texts(ordered) == ["i", "v", "vi", "ix", "xxxix", "xl", "1", "3", "12", "A", "IV"]


def test_the_best_ranked_document_comes_first() -> None:
    """Documents keep the order of their best nodes; inside one, source order; versions are documents of their own."""
    fields = [
        {"document_id": "b", "page": "2"},
        {"document_id": "a", "page": "9"},
        {"document_id": "b", "page": "1"},
        {"document_id": "b", "page": "1", "revision": "old"},
    ]
    ordered = SourceOrder(by="position").postprocess_nodes(make_nodes(["b2", "a9", "b1", "old"], metadata=fields))
    assert texts(ordered) == ["b1", "b2", "a9", "old"]


def test_chunks_of_a_splitter_come_in_the_order_of_the_document() -> None:
    """Real chunks, in any rank order, are put back as they stand in their document."""
    text = " ".join(f"Step {place}: turn the {place}. screw until it clicks." for place in range(60))
    chunks = SentenceSplitter(chunk_size=64, chunk_overlap=8).get_nodes_from_documents([Document(text=text, id_="d")])
    shuffled = [NodeWithScore(node=chunk, score=0.5) for chunk in [*chunks[::2], *chunks[1::2]]]
    ordered = SourceOrder(by="position").postprocess_nodes(shuffled)
    assert [scored.node.node_id for scored in ordered] == [chunk.node_id for chunk in chunks]


def test_pages_that_are_documents_of_their_own_keep_together() -> None:
    """One source node per page, as PDF readers make them: positions of two pages are not compared."""
    pages = [
        Document(
            text=" ".join(f"Page {page} sentence {place} says something about it." for place in range(12)),
            id_=f"f_part_{page}",
            metadata={"document_id": "f.pdf", "page_label": str(page)},
        )
        for page in (10, 2, 11)
    ]
    chunks = SentenceSplitter(chunk_size=80, chunk_overlap=0)(pages)
    ordered = SourceOrder().postprocess_nodes([NodeWithScore(node=chunk, score=0.5) for chunk in chunks[::-1]])
    expected = sorted(chunks, key=lambda chunk: (int(chunk.metadata["page_label"]), chunks.index(chunk)))
    assert texts(ordered) == [chunk.get_content() for chunk in expected]


def test_source_nodes_without_pages_come_by_rank() -> None:
    """Where nothing tells which source node comes first, its best-ranked node does."""
    parts = [Document(text=f"{name} one. {name} two.", id_=name, metadata={"document_id": "d"}) for name in "zab"]
    nodes = [NodeWithScore(node=node, score=0.5) for node in SentenceSplitter(chunk_size=100, chunk_overlap=0)(parts)]
    assert texts(SourceOrder().postprocess_nodes(nodes)) == [part.text for part in parts]


@pytest.mark.parametrize(
    "starts, expected", [(["5", 3], [3, "5"]), ([5.5, 3, None], [3, 5.5, None]), ([True, 0], [0, True])]
)
def test_a_start_that_is_no_whole_number_is_unknown(starts: list[Any], expected: list[Any]) -> None:
    """Whatever a store put in place of a position, ordering goes on without it."""
    fields: dict[str, Any] = {"text": "x", "metadata": {"document_id": "d"}}
    nodes = [
        NodeWithScore(node=TextNode.model_construct(id_=str(place), start_char_idx=start, **fields))
        for place, start in enumerate(starts)
    ]
    ordered = SourceOrder().postprocess_nodes(nodes)
    assert [starts[int(scored.node.node_id)] for scored in ordered] == expected


@pytest.mark.parametrize("page, expected", [("٣" * 5000, "21"), ("9" * 5000, "21"), ("٠١", "12"), ("p²", "21")])
def test_pages_sort_as_numbers_of_any_length_and_script(page: str, expected: str) -> None:
    """A page number too long for Python's integers sorts by its value, and so do other scripts' digits."""
    fields = [{"document_id": "d", "page": page}, {"document_id": "d", "page": "2"}]
    assert "".join(texts(SourceOrder().postprocess_nodes(make_nodes(["1", "2"], metadata=fields)))) == expected


def test_without_any_place_chunk_ids_decide() -> None:
    """Where nothing else is known, numbered chunk ids sort as numbers."""
    nodes = [
        NodeWithScore(node=TextNode(id_=name, text=name, metadata={"document_id": "d"}), score=0.5)
        for name in ("c10", "c9", "c1")
    ]
    assert texts(SourceOrder(by="position").postprocess_nodes(nodes)) == ["c1", "c9", "c10"]


@given(one=st.text(max_size=12), other=st.text(max_size=12))
def test_natural_keys_compare(one: str, other: str) -> None:
    """Any two texts compare, and equal texts are equal."""
    assert (natural(one) < natural(other)) or (natural(other) < natural(one)) or natural(one) == natural(other)
    assert natural(one) == natural(one.upper().lower()) or one.casefold() != one.upper().lower().casefold()


@pytest.mark.parametrize(
    "written",
    [
        *("", "soon", "2026-02-30", "12.03.2026", "20260", "2026-3-4-5", "9999999-01-01", "1984 Main Street"),
        *("2026/13/01", "2026/12", "2026-12/01", "2026年12月1日", "2026-12-01st"),
        *("2026-12-01T25:00", "2026-12-01 10:00 noon", "2026-03-01T99:99", "2026-03-01 banana", "2026-03-01T"),
        *("2026-03-01 13 PM", "2026-03-01 0 am", "2026-03-01T10:00+25:00", "2026-03-01T10:60", "2026-03T10:00"),
        *("2026-W54-1", "2026-W10-8", "2026-03-01T24:01", "20261301", "2026-03-01T10:00:00ZZ", "2026-03-01 10.30"),
    ],
)
def test_what_is_no_date_is_unknown(written: str) -> None:
    """Dates that do not exist, or whose parts may stand for other things, are unknown, not guessed."""
    assert when(written) is None


@pytest.mark.parametrize(
    "written",
    [
        *("2026/12/01", "2026.12.1", "2026-12-1", " 2026-12 ", "20261201", "2026-W49-2", "2026W492", "2026-12-01T00"),
        *("2026-12-01T03:00+03", "2026-12-01t00:00z", "2026-12-01 12 AM", "2026-11-30T24:00", "2026-12-01T00:00 UTC"),
    ],
)
def test_dates_with_the_year_first_are_read(written: str) -> None:
    """Year, month and day in this order are one date, whichever mark stands between them."""
    assert when(written) == when("2026-12-01")


@pytest.mark.parametrize(
    "written, same",
    [
        ("2026-03-01T10:00:00+0300", "2026-03-01T07:00:00"),
        ("2026-03-01T10:00:00-03:30", "2026-03-01T13:30:00"),
        ("2026-03-01T23:30:00.5Z", "2026-03-01T23:30:00.500000+00:00"),
        ("2026-03-01T23:30:00,5Z", "2026-03-01T23:30:00.5"),
        ("2026-03-01T23:30:00.125000000Z", "2026-03-01T23:30:00.125"),
        ("20260301T233000Z", "2026-03-01 23:30"),
        ("2026-03-01 9 PM", "2026-03-01T21:00"),
        ("2026/3/1 9:05 p.m.", "2026-03-01T21:05:00"),
        ("2026-03-01 12:30am", "2026-03-01T00:30"),
        ("2026-03-01 9:05", "2026-03-01T09:05Z"),
    ],
)
def test_times_are_read_in_every_usual_form(written: str, same: str) -> None:
    """Fractions of any length, zones with and without a colon, basic forms, a.m. and p.m.: the hour always counts."""
    assert when(written) == when(same) != when(written[:8])
    assert when(same) is not None


ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=st.none() | ZONES), st.sampled_from(["auto", "minutes", "hours"]))
def test_what_python_writes_is_read(moment: datetime, timespec: str) -> None:
    """Every moment in the form of the standard library is read as that moment."""
    written = moment.isoformat(timespec=timespec)
    again = datetime.fromisoformat(written)
    zoned = again if again.tzinfo else again.replace(tzinfo=timezone.utc)
    offset = zoned.utcoffset() or timedelta(0)
    expected = zoned.replace(tzinfo=None) - datetime(1970, 1, 1)  # noqa: DTZ001 - a zone could leave the range of dates
    assert when(written) == pytest.approx((expected - offset).total_seconds(), abs=1e-4)


@given(st.text(alphabet="0123456789-/.:TZW+ apm", max_size=24))
def test_no_text_makes_reading_raise(written: str) -> None:
    """A date is read or unknown, and the hour of the day never makes more than a day of difference."""
    moment = when(written)
    day = when(re.split("[T ]", written.strip())[0])
    assert moment is None or (day is not None and abs(moment - day) <= 2 * 86400)


@pytest.mark.parametrize("options", [{"by": "rank"}, {"newest": "top"}, {"order": "date"}, {"newest": "first"}])
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    """An unknown order, a misspelt option and one that has no effect are errors at construction."""
    with pytest.raises(ValidationError):
        SourceOrder(**options)
