"""How much of an answer's wording its sources have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.overlap import DEFAULT_THRESHOLD, support
from tests.checks.overlap_cases import ANSWERS, RULES, SENTENCES
from tests.timing import assert_within


@given(ANSWERS)
def test_a_text_supports_itself(text: str) -> None:
    """An answer that is its source, whole, has full support."""
    assert support(text, [text]) == 1.0


@given(ANSWERS, st.lists(ANSWERS, max_size=3), ANSWERS)
def test_a_further_source_never_hurts(answer: str, sources: list[str], further: str) -> None:
    """Without negations one more source, at either end, never lowers the support, and their order does not matter."""
    more = support(answer, [*sources, further])
    assert more >= support(answer, sources) - 1e-9
    assert math.isclose(more, support(answer, [further, *reversed(sources)]))


@given(ANSWERS, SENTENCES, ANSWERS)
def test_a_further_sentence_never_helps(answer: str, sentence: str, source: str) -> None:
    """The weakest sentence decides, so an answer that says more is supported no better."""
    both = support(f"{answer} {sentence}", [source])
    assert both == min(support(answer, [source]), support(sentence, [source]))


@pytest.mark.parametrize(
    "better, worse",
    [
        ("A book may be returned within 30 days.", "A book may be returned within 90 days."),
        ("Damaged books may not be returned.", "Damaged books may be returned."),
        ("Damaged books can't be returned.", "Damaged books may be returned."),
        ("There is no fee for that.", "There is a fee for that."),
        ("The library in Ankara opens at 9:00.", "The library in Konya opens at 9:00."),
        ("The library in Ankara opens at 9:00.", "The museum in Ankara opens at 9:00."),
        ("A late return costs $5 per week.", "A late return costs €5 per week."),
        ("A late return costs $5.", "A return costs late members days in Ankara."),
        ("Late returns cost $5.", "Cats sleep a lot."),
        ("Late returns cost $5.", "Late returns cost $5. Cats sleep a lot."),
    ],
)
def test_what_is_twisted_has_less(better: str, worse: str) -> None:
    """Another number, name, word, currency or order, a lost or added negation, and an invented sentence each cost."""
    assert support(better, [RULES]) > support(worse, [RULES])


def test_known_reports() -> None:
    """A percentage, a year and a negation that were altered fail at the default threshold."""
    source = ["The rate was 87% in 2021. Staff who left are not eligible for three years."]
    assert support("The rate was 87% in 2021.", source) == 1.0
    assert support("Staff who left are not eligible for three years.", source) == 1.0
    assert support("The rate was 85% in 2021.", source) <= 0.5
    assert support("The rate was 85% [S1].", source) < DEFAULT_THRESHOLD
    assert support("The rate was 87% in 2022.", source) <= 0.5
    assert support("Staff who left are eligible for three years.", source) < 1.0


def test_turkish_endings_do_not_matter() -> None:
    """Turkish answers inflect the words of their source; another number or topic is still seen."""
    source = ["Kitaplar 14 gün içinde iade edilmelidir. Gecikme ücreti günlük 5 TL'dir."]
    assert support("Kitabı 14 günde iade etmelisiniz.", source) >= DEFAULT_THRESHOLD
    assert support("Gecikme ücreti günde 5 TL.", source) >= DEFAULT_THRESHOLD
    assert support("Kitaplar 30 günde iade edilir.", source) < DEFAULT_THRESHOLD
    assert support("Üyelik bir yıl sürer ve ücretsizdir.", source) < DEFAULT_THRESHOLD


def test_chinese_is_compared_by_characters() -> None:
    """Without spaces, neighbouring characters are what an answer shares with its source."""
    source = ["商品的退货期限为30天，自收到之日起。"]
    assert support("退货期限为30天。[S1]", source) == 1.0
    assert support("退货期限为60天。", source) < support("退货期限为30天。", source) / 2 + 0.01
    assert support("可以免费升级会员。", source) == 0.0


def test_the_question_counts_half() -> None:
    """To repeat what was asked supports an answer less than to say something that the source says."""
    question, answer = "What does a late return cost?", "A late return costs Kaya."
    assert support(answer, [RULES], question) < support(answer, [RULES])


def test_a_name_counts_double() -> None:
    """A name that is missing costs more than another word."""
    source = ["The desk near Ankara opens early."]
    assert support("The desk near Konya opens early.", source) < support("The shop near Ankara opens early.", source)


def test_a_negation_is_looked_for_everywhere() -> None:
    """Where sources disagree, what one of them says, word for word, has full support."""
    sources = ["Books may be returned.", "Books may not be returned."]
    for answer in sources:
        assert support(answer, sources) == support(answer, sources[::-1]) == 1.0


def test_words_far_apart_are_not_together() -> None:
    """The same words in one sentence of a source support more than scattered over many."""
    together = "Kaya opened the desk in Ankara. It rained. It snowed. We slept."
    apart = "Kaya slept. It rained. We opened it. It snowed. The desk broke. It rained. Ankara is big."
    answer = "Kaya opened the desk in Ankara."
    assert support(answer, [together]) == 1.0
    assert support(answer, [apart]) < DEFAULT_THRESHOLD


def test_meaning_is_not_seen() -> None:
    """A limit, written down: who does what to whom is not seen, and a fair paraphrase is taken for invented."""
    assert support("Kaya paid Ayla, and Ayla paid Can.", ["Ayla paid Can, and Kaya paid Ayla."]) >= DEFAULT_THRESHOLD
    assert support("Borrowers have a month to bring items back.", [RULES]) < DEFAULT_THRESHOLD


def test_a_long_answer_takes_no_long_time() -> None:
    """Sixteen thousand characters against a source of as many are compared within three seconds of processor time."""
    text = " ".join(f"Member {at} of Ankara returned book {at * 7} within {at % 30} days." for at in range(300))[
        :16_000
    ]
    assert assert_within(3, lambda: support(text, [text])) > DEFAULT_THRESHOLD
    assert assert_within(3, lambda: support("a b c " * 2_600, ["a b c. " * 2_300])) >= 0


@pytest.mark.parametrize("name, least", [("faithbench", 0.65), ("halueval_qa", 0.9)])
def test_public_answers_are_ranked(name: str, least: float) -> None:
    """Supported answers of a public set mostly score higher than unsupported ones."""
    file = Path(__file__).parents[2] / "../shared/data" / f"{name}.dev.jsonl"
    if not file.exists():
        pytest.skip(f"../shared/data/{file.name} is not there")
    scores: dict[str, list[float]] = {"supported": [], "unsupported": []}
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        label = "supported" if row["label"] == "benign" else row["label"]
        if label in scores:
            said = row["answer"] if "answer" in row else row["claim"]
            scores[label].append(support(said, row["context"], row["question"] or ""))
    good, bad = scores["supported"], scores["unsupported"]
    above = sum((one > other) + (one == other) / 2 for one in good for other in bad)
    assert above / (len(good) * len(bad)) > least
