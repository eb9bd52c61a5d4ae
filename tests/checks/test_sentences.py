"""Where sentences end, and which of them claim something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_grounded.checks.sentences import claims_something, sentences, wording
from tests import hostile
from tests.timing import assert_linear

PIECES = (
    *("Dr. ", "e.g. ", "vb. ", "1. ", "Mart ", "3.6.1 ", "$5.00 ", "the end. ", "Next ", "why? ", "Go! ", "… ", "... "),
    *("。", "！", "؟ ", "۔ ", "؛ ", '." ', ".) ", "[S1]", "[S1] ", "【S2】", "[S1", "`a. b` ", "`", "```\n", "~~~\n"),
    *("\n", "\n\n", "- ", "\n* ", "\n1) ", "\n# ", "\n> ", "\n| a | b |\n", "https://x.org/a.b?c=1 ", "** ", "\u00a0"),
)
TEXTS = st.one_of(hostile.texts(), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))


def split(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [part.text for part in sentences(text)]


@given(TEXTS)
def test_parts_are_all_of_the_text(text: str) -> None:
    """Parts stand in order, are what their offsets say, and leave nothing but white space between them."""
    at = 0
    for part in sentences(text):
        assert text[at : part.start].strip() == ""
        assert text[part.start : part.end] == part.text
        assert part.text.strip() == part.text != ""
        at = part.end
    assert text[at:].strip() == ""


@given(TEXTS, TEXTS)
def test_a_blank_line_parts(first: str, second: str) -> None:
    """Two paragraphs are split as each alone, save where a fence is open."""
    first = first.replace("```", "").replace("~~~", "")
    assert split(f"{first}\n\n{second}") == split(first) + split(second)


@given(TEXTS)
def test_no_text_is_too_odd(text: str) -> None:
    """What a sentence says and whether it claims something is told of any text; its words are some of the text's."""
    assert set(wording(text)) <= set(text)
    assert claims_something(text) in {True, False}


@pytest.mark.parametrize(
    "parts",
    [
        ["Dr. Kaya waits 2.5 days.", "Then he goes."],
        ["Use e.g. this one, i.e. the first.", "Not that."],
        ["See No. 5 and Fig. 2.", "The answer is no.", "Ask."],
        ["Kitap, dergi vb. materyaller örn. atlaslar.", "Bkz. sayfa 3."],
        ["Kitap, dergi vb.", "Ayrıca harita."],
        ["1. Mart günü açılır, 3. gün kapanır.", "Bitti."],
        ["Version 3.6.1 costs $5.00.", "J. R. Smith of the U.S. Army said so."],
        ["It began in 1869.", "it was between two teams."],
        ["AMD, Inc. (AMD) sells chips.", "It has 5 sites."],
        ["Is it?", "Yes!", "Good."],
        ['"Stop!" he said.', "She did."],
        ["Wait ... what is it?", "I see…", "Then go."],
        ["See https://x.org/a.b?c=1.", "Or `a. B. C` there."],
        ['He said "no."', "(It was late.)", "End"],
        ["Within 14 days [S1].", "Free. [S1][S2]", "New.[S3]", "End [S1, S2]"],
        ["Five days.[note] is one.", "Two."],
    ],
)
def test_english_and_turkish(parts: list[str]) -> None:
    """Abbreviations, decimals, versions, dates, URLs and code do not end a sentence; markers stay with theirs."""
    assert split(" ".join(parts)) == parts


@pytest.mark.parametrize(
    "parts",
    [
        ["退货期限为30天。[S1]", "请联系我们！", "可以吗？", "“是。”", "好"],
        ["返品は30日以内です。", "無料です！"],
        ["真的吗?", "是"],
    ],
)
def test_chinese_and_japanese(parts: list[str]) -> None:
    """Full-width stops end a sentence without a space, with the quote marks and markers behind them."""
    assert split("".join(parts)) == parts


def test_arabic_and_urdu() -> None:
    """The question mark, full stop and semicolon of Arabic and Urdu end a sentence; a comma does not."""
    parts = ["هل هذا صحيح؟ [S1]", "نعم، هو صحيح؛", "انتهى.", "یہ کتاب ہے۔", "ثم"]
    assert split(" ".join(parts)) == parts


def test_markdown() -> None:
    """Headings, list items, quoted lines, table rows and fences are parts; a wrapped line is not."""
    prose = "# Title\nFirst line\nwrapped. Second.\n- item one. More\n2. Pay.\n> Said so.\n| a | b |\n"
    text = f"{prose}```py\na. B\n\nc\n```\nEnd"
    assert split(text) == [
        *("# Title", "First line\nwrapped.", "Second.", "- item one.", "More", "2. Pay.", "> Said so.", "| a | b |"),
        *("```py\na. B\n\nc\n```", "End"),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        *("", " ", "[S1]", "[S1][S2].", "---", "|---|---|", "# Return policy", "## 3.1 Fees", "**Fees**"),
        *("Would you like to know more?", "Başka bir sorunuz var mı?", "هل هذا صحيح؟", "可以吗？", "Really?"),
        *("Hello!", "Hi there,", "Merhaba!", "Sayın Kaya,", "Sure!", "Of course, happy to help!", "Teşekkürler."),
        *("I hope this helps!", "Hope that helps.", "Umarım yardımcı olmuştur.", "Let me know if you need more."),
        *("Feel free to ask.", "If you have any other questions, ask.", "Sorularınız olursa yazın."),
        *("Based on the sources:", "According to the provided documents", "Verilen belgelere göre:", "Sources: [S1]"),
        *("The rules are as follows:", "Kurallar şunlardır:", "Here is what I found:", "Return window:"),
        *(
            "**Return policy:**",
            "The passage describes two topics:",
            "Thank you very much!",
            "Başka bir sorunuz olursa bana yazın.",
            "Dear Ayşe Kaya,",
        ),
        *("I hope this answers your question.", "Please let me know if you have any other questions."),
        *("Let me know if you have any other questions or need further assistance!", "I'm always happy to help you."),
        *("Thank you for your question.", "Thanks for asking, and feel free to ask again!", "Great question!"),
        *("Please let us know if you'd like more details.", "If you need anything else, just ask.", "Rica ederim!"),
        *("Contact us if you have any questions.", "Feel free to reach out anytime.", "Let me know!"),
        *("We hope this information was helpful to you.", "Umarım bu bilgiler işinize yarar.", "Tabii ki!"),
        *("Daha fazla bilgiye ihtiyacınız olursa bana ulaşabilirsiniz.", "Sorunuz için teşekkür ederim."),
        *("Size yardımcı olmaktan memnuniyet duyarım.", "Hope it clears things up, and you're welcome."),
        *("Let me know if I can help with anything else.", "Let me know if I can be of further assistance."),
        *("Let me know if that helps.", "Let me know if this answers your question.", "Rica ederim, her zaman."),
        *("Please let me know if this is helpful.", "If you have any questions about this, please let me know."),
        *("Feel free to contact us for more information.", "I hope this was helpful and answered your question."),
        *("Happy to help with any other questions.", "Let me know if you need further help with this."),
        *("Please let me know if you need anything else at any time.", "Sure, I can help with that."),
        *("If you need help with anything else, please let me know.", "You are very welcome."),
        *("I hope you find this information helpful.", "Thank you for your patience and understanding."),
        *("How long does it take?", "# Opening hours", "# İade süresi", "# Answer", "# Order"),
    ],
)
def test_claims_nothing(sentence: str) -> None:
    """Headings, questions, greetings, pleasantries, lead-ins and markers state nothing."""
    assert not claims_something(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        *("Books are due after 14 days [S1].", "- 14 gün", "Evet.", "退货期限为30天。", "| Books | 14 days |", "30"),
        *("Based on the sources, books are due after 14 days.", "Belgelere göre süre 14 gündür.", "The limit is 14:"),
        *("Sure, books are free.", "If you need more than two weeks, ask the desk.", "Feel free to renew twice."),
        *(
            "**Fees:** books are free.",
            "**Books are free.**",
            "Thank you notes are printed here.",
            "# not a heading"[2:],
        ),
        *("I hope this helps: the refund takes 90 days and is free.", "Soru olursa: iade süresi doksan gündür."),
        *("I hope this helps: the refund is free.", "Umarım yardımcı olur: iade süresi 90 gündür."),
        "Let me know if you agree that books are never refunded.",
        "Let me know if you agree that books are refunded.",
        "Please feel free to ask for a refund within 90 days, which we always grant.",
        *("If you have more than one card, ask at the desk.", "Umarım iade ücretsizdir.", "Hello refunds are free."),
        *("## Refunds take 90 days", "**Refunds take 90 days**", "# Refunds are free", "# No refunds", "# İade yok"),
        *("## A refund for every book that was lost", "# İade ücretsizdir", "**Ninety days**"),
        *("Refunds are never given:", "Refunds are free:", "Based on the two hundred sources:", "İade yoktur:"),
        *("Did you know refunds take 90 days?", "Did you know that refunds are free?", "Refunds are free, right?"),
        *("Of course you can get it back at anytime [S1].", "Of course you can get it back at anytime."),
        *(
            "Sure, it is free [S1].",
            "Sure, it is free.",
            "Tabii ki olur [S1].",
            "Tabii ki olur.",
            "Elbette faydalı olur.",
        ),
        *("Let me know if you want it: it is free.", "I hope you get it back.", "Feel free to get it at any time."),
        *("Of course that is useful for you.", "Certainly all of it would come back.", "Sure, we do."),
        *("Contact us.", "Please reach out to us.", "Contact us if you want.", "Bize ulaşın.", "Just ask."),
        *("If you need help, contact the desk.", "Thanks to you it is free.", "Tabii, bize yazın, ücretsiz."),
        *(
            "I can help with that refund of 20 TL.",
            "I can help with that refund.",
            "Let me know if I can have it back.",
        ),
        *(
            "Let me know if this is free.",
            "Feel free to contact us for more books.",
            "I can help at any time for free.",
        ),
        *("Happy to help with any refund.", "If you have any questions about this card, ask.", "Her zaman."),
        *("Contact us for information.", "I hope this helps and is free.", "Let me know if that helps: it is free."),
        *("Sure! [S1]", "I hope this helps [S1].", "Really? [S1]", "Is it free [S1]?", "Return policy [S1]:"),
        *(
            "# Return policy [S1]",
            "Hello [S1]!",
            "**Fees** [S1, S2]",
            "Here it is [S1]:",
            "Umarım yardımcı olur 【S1】.",
        ),
        *("İadenin ücretsiz olduğunu biliyor muydunuz?", "Refunds aren't free?", "Sources: never"),
    ],
)
def test_claims_something(sentence: str) -> None:
    """What could be true or false is a claim, also behind polite words."""
    assert claims_something(sentence)


@given(
    st.sampled_from(["I hope this helps", "Sure", "Of course", "Feel free to ask", "Elbette", "Umarım yardımcı olur"]),
    st.sampled_from([" ", ", ", ": ", "; ", " and ", " – "]),
    st.sampled_from(["it is free", "you can get it back", "books come back", "olur", "ücretsiz", "all of it"]),
    st.booleans(),
)
def test_more_than_a_pleasantry_is_a_claim(polite: str, between: str, more: str, first: bool) -> None:
    """A pleasantry claims nothing alone, and something with any other words in front of it or behind."""
    assert not claims_something(f"{polite}.")
    assert claims_something(f"{polite}{between}{more}.")
    assert claims_something(f"{more}{between}{polite}." if first else f"{polite}{between}{more}!")


@given(hostile.texts(), st.sampled_from(["[S1]", "[S1, S2]", "【S3】", "[S1][S2]"]))
def test_what_carries_a_marker_is_a_claim(text: str, marker: str) -> None:
    """A sentence with a marker claims something, whatever its words, unless it has none or only names sources."""
    said = f"Hi {text.replace('`', '')}"
    assert claims_something(f"{said} {marker}")
    assert not claims_something(marker)
    assert not claims_something(f"Kaynaklar: {marker}")


def test_wording_leaves_signs_out() -> None:
    """List numbers, heading signs and markers are not what a sentence says; a range of days is."""
    assert wording("2. Due in 3-5 days [S1], [S2-S4].") == "Due in 3-5 days , ."
    assert wording("### Fees") == "Fees"
    assert wording("[note] and [3] stay") == "[note] and [3] stay"


@pytest.mark.parametrize(
    "unit", [".", "`", "` ", "[", ". ", "a. [S1] ", "\n", ">", " ", '"', '."', "(1) ", "[S1]", "。"]
)
def test_long_runs_take_linear_time(unit: str) -> None:
    """Sixteen thousand characters of any one sign are split and judged in four times the time of four thousand."""

    def read(size: int) -> None:
        for part in sentences((unit * size)[:size] + "x"):
            claims_something(part.text)

    assert_linear(read, 4_000)
