"""Passages of chunks as LlamaIndex's own parsers cut them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from llama_index.core.node_parser import (
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
)
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import BaseNode, Document, NodeWithScore, TransformComponent

from llama_index_grounded.evidence import included_text
from llama_index_grounded.selection import ScopedDedup
from llama_index_grounded.selection.passages import PassageMerger, origin_of
from llama_index_grounded.selection.stretches import GAP
from tests.selection.cuts import place, text_node
from tests.selection.parts import bodies, ids, run

ENGLISH = [
    "Printed books can be returned within twenty-one days of delivery.",
    "They must be unread.",
    "A refund is paid to the original payment method.",
    "It takes five working days, or e.g. ten for a transfer abroad.",
    "No.",
    "Damaged books are replaced free of charge when we receive two photographs!",
    "Is a gift card returnable? No.",
]
TURKISH = [
    "Basılı kitaplar teslimattan sonra yirmi bir gün içinde iade edilebilir.",
    "Kitaplar okunmamış olmalıdır.",
    "İade ücreti ilk ödeme yöntemine yatırılır.",
    "Ödeme beş iş günü sürer; yurt dışına havale on gün alır.",
    "Hayır.",
    "Hasarlı kitaplar, iki fotoğraf ulaştığında ücretsiz değiştirilir!",
    "Hediye kartı iade edilir mi? Hayır.",
]


def write(sentences: Sequence[str], *, numbered: bool = True) -> str:
    """Write a document of several paragraphs, with white space of every kind between them."""
    paragraphs = [" ".join(f"{k}. {s}" if numbered else s for s in sentences[k % 3 :]) for k in range(8)]
    return "  " + "".join(p + gap for p, gap in zip(paragraphs, ["\n\n", " \n\n\n", "\n", "\t\n\n"] * 2, strict=True))


def sections(sentences: Sequence[str], *, level: str = "##") -> str:
    """Write a document whose sections have equal texts under different headings."""
    return "\n\n".join(
        f"{level} {name}\n\n{' '.join([*sentences, *sentences, *sentences])} {name}."
        for name in ("AB-100", "AB-200", "AB-300")
    )


DOCUMENTS = {
    "english": write(ENGLISH),
    "turkish": write(TURKISH),
    "repeats itself": write(ENGLISH, numbered=False),
    "equal sections": sections(ENGLISH),
    "equal turkish sections": "# Yardım\n\n" + sections(TURKISH, level="###"),
}

PARSERS: dict[str, Callable[[], list[TransformComponent]]] = {
    "sentences 40/0": lambda: [SentenceSplitter(chunk_size=40, chunk_overlap=0)],
    "sentences 60/30": lambda: [SentenceSplitter(chunk_size=60, chunk_overlap=30)],
    "sentences 200/120": lambda: [SentenceSplitter(chunk_size=200, chunk_overlap=120)],
    "no neighbours": lambda: [SentenceSplitter(chunk_size=60, chunk_overlap=30, include_prev_next_rel=False)],
    "windows": lambda: [SentenceWindowNodeParser()],
    "tokens 50/20": lambda: [TokenTextSplitter(chunk_size=50, chunk_overlap=20)],
    "markdown": lambda: [MarkdownNodeParser()],
    "markdown, sentences": lambda: [MarkdownNodeParser(), SentenceSplitter(chunk_size=60, chunk_overlap=30)],
    "markdown, tokens": lambda: [MarkdownNodeParser(), TokenTextSplitter(chunk_size=50, chunk_overlap=20)],
}


def parse(document: str, parsers: Sequence[TransformComponent], name: str = "d") -> list[NodeWithScore]:
    """Cut a document as an ingestion pipeline does."""
    nodes: Sequence[BaseNode] = [Document(text=document, id_=name, metadata={"title": name})]
    for parser in parsers:
        nodes = parser(nodes)
    return [NodeWithScore(node=node, score=1 - k / 1000) for k, node in enumerate(nodes)]


def selections(nodes: Sequence[NodeWithScore]) -> list[list[NodeWithScore]]:
    """Return what retrievers might return: all, in both orders, every other one, two of three, and distant pairs."""
    pairs = [[nodes[k], nodes[-1 - k]] for k in range(len(nodes) // 2)]
    return [list(nodes), list(nodes[::-1]), list(nodes[::2]), [*nodes[1::3], *nodes[::3]], *pairs[:8]]


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("name", [name for name in PARSERS if name != "no neighbours"])
def test_a_passage_stands_in_the_document(document: str, name: str) -> None:
    """Whatever was retrieved of whatever parser's chunks, each passage is a part of the document, word for word."""
    nodes = parse(document, PARSERS[name]())
    for chosen in selections(nodes):
        result = run([PassageMerger()], chosen)
        joined = [scored for scored in result if any(d.twin == scored.node.node_id for d in result.trail.decisions)]
        assert all(included_text(scored.node) in document for scored in joined)
        for scored in chosen:
            assert any(included_text(scored.node) in body for body in bodies(result))


OVERLAPPING = ["sentences 60/30", "sentences 200/120", "no neighbours", "windows", "tokens 50/20"]


@pytest.mark.parametrize("name", OVERLAPPING)
@pytest.mark.parametrize("language", ["english", "turkish"])
def test_all_overlapping_chunks_make_the_document(name: str, language: str) -> None:
    """All chunks of one document, worst first, are one passage: the document, but for white space at its ends."""
    nodes = parse(DOCUMENTS[language], PARSERS[name]())
    assert len(nodes) > 4
    (scored,) = run([PassageMerger()], nodes[::-1])
    assert included_text(scored.node).strip() == DOCUMENTS[language].strip()
    start, end = place(scored)
    assert DOCUMENTS[language][start:end] == included_text(scored.node)
    texts = {node.node.node_id: included_text(node.node) for node in nodes}
    for offset in range(0, len(included_text(scored.node)), 97):
        origin = origin_of(scored.node, offset)
        assert origin is not None
        assert included_text(scored.node)[offset] in texts[origin.node_id]


def test_equal_sections_are_not_mixed() -> None:
    """Chunks of two sections with equal texts at equal places of their own stay with their sections."""
    nodes = parse(DOCUMENTS["equal sections"], PARSERS["markdown, sentences"]())
    for body in bodies(run([PassageMerger()], nodes)):
        assert sum(name in body for name in ("AB-100", "AB-200", "AB-300")) <= 1


def test_neighbours_with_white_space_between_them_need_a_gap() -> None:
    """SentenceSplitter without overlap leaves out white space, which nobody has: a mark stands for it."""
    nodes = parse(DOCUMENTS["english"], PARSERS["sentences 40/0"]())[:2]
    assert ids(run([PassageMerger()], nodes)) == ids(nodes)
    assert bodies(run([PassageMerger(max_gap=4)], nodes)) == [GAP.join(bodies(nodes))]


def test_sentences_that_are_joined_are_not_replaced_by_the_window_of_one() -> None:
    """A passage of sentences has no window of its own, so LlamaIndex's replacement leaves it as it is."""
    nodes = parse(DOCUMENTS["english"], [SentenceWindowNodeParser(window_size=1)])
    replace = MetadataReplacementPostProcessor(target_metadata_key="window")
    result = run([PassageMerger(), replace], [nodes[1], nodes[2], nodes[9]])
    assert bodies(result)[0] == bodies(nodes)[1] + bodies(nodes)[2]
    assert bodies(result)[1] == nodes[9].node.metadata["window"]


def test_windows_in_place_of_sentences_are_not_joined() -> None:
    """Behind the replacement the text is not what the range says: nothing is joined by it."""
    nodes = parse(DOCUMENTS["english"], [SentenceWindowNodeParser(window_size=1)])[:3]
    replace = MetadataReplacementPostProcessor(target_metadata_key="window")
    assert ids(run([replace, PassageMerger()], nodes)) == ids(nodes)


def test_two_documents_with_one_text_stay_two() -> None:
    """Chunks of two documents at the same places make two passages, each citing its own document."""
    pairs = zip(*(parse(DOCUMENTS["english"], PARSERS["sentences 60/30"](), name) for name in "de"), strict=True)
    result = run([PassageMerger(), ScopedDedup()], [scored for pair in pairs for scored in pair])
    assert [scored.node.ref_doc_id for scored in result] == ["d", "e"]
    assert bodies(result)[0] == bodies(result)[1]


def test_an_earlier_text_of_the_document_is_not_mixed_in() -> None:
    """Chunks that stayed in the index from before an update have another source text: they stay apart."""
    old, new = DOCUMENTS["english"], DOCUMENTS["english"].replace("twenty-one", "fourteen")
    unknown = PARSERS["no neighbours"]
    nodes = [*parse(old, unknown())[:1], *parse(new, unknown())[1:2]]
    assert ids(run([PassageMerger()], nodes)) == ids(nodes)


def test_one_wrong_neighbour_does_not_part_the_others() -> None:
    """A chunk whose text is not what its neighbour says of the place stays alone; the chunks before it are joined."""
    nodes = parse(DOCUMENTS["english"], PARSERS["sentences 60/30"]())[:3]
    text_node(nodes[2]).text = "x" * len(included_text(nodes[2].node))
    assert ids(run([PassageMerger()], nodes)) == [nodes[0].node.node_id, nodes[2].node.node_id]
