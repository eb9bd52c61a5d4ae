"""Records in metadata, shown to the model as a table or as keys and values.

    sh uvw run --locked --extra demo --no-dev examples/tables.py

See two nodes shown both ways, and what each way costs. Choose ``TableRenderer`` where a question compares entities that
have the same short attributes: it writes each name once. Choose ``KeyValueRenderer`` where values are long or entities
have different attributes: each name stands beside its value, and no cell is empty. The default renderer shows the
node's own text only.
"""

from __future__ import annotations

import sys

from llama_index_grounded import CitingSynthesizer, TokenBudget
from llama_index_grounded.checks import NumberCheck
from llama_index_grounded.rendering import KeyValueRenderer, Renderer, TableRenderer, XmlRenderer
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from support.command import start

TIERS = {
    "title": "Corporate orders",
    "entities": {
        "1-49 copies": {"discount": "none", "ships within": "3 days", "payment": "in advance"},
        "50-199 copies": {"discount": "15 %", "ships within": "5 days", "payment": "30 days"},
        "200 copies or more": {"discount": "22 %", "ships within": "9 days", "payment": "30 days"},
        "reprints": {"discount": "none", "ships within": "60 days", "payment": "in advance"},
    },
}
EDITIONS = {
    "title": "Catalogue",
    "entities": [
        {
            "name": "Atlas of the Seas",
            "languages": ["English", "Turkish"],
            "condition": "Shrink-wrapped. A copy that was opened can not be returned.",
        },
        {"name": "Atlas of the Seas, e-book", "format": "PDF", "devices": 6},
    ],
}
NODES = make_nodes(["Prices include VAT.", "See also: maps."], metadata=[TIERS, EDITIONS])
LLM = ScriptedLLM([{"verdict": "answered", "sources": ["S1"], "answer": "15 %, within 5 days [S1]."}])


def main() -> None:
    """Show both nodes in three ways, then answer from one."""
    for renderer in (TableRenderer(), KeyValueRenderer(), XmlRenderer()):
        show(renderer)
    answer(TableRenderer(fields=("discount", "ships within")))


def show(renderer: Renderer) -> None:
    """Print what the model would see, and the size of each source."""
    preview = CitingSynthesizer(LLM, renderer=renderer).preview("What is there?", NODES)
    sizes = ", ".join(f"{source.key} takes {source.tokens} tokens" for source in preview.sources)
    print(f"=== {type(renderer).__name__}: {sizes}\n{preview.text}")


def answer(renderer: Renderer) -> None:
    """Pack and ask with one renderer; what it shows of a node is what checks look at and what the response holds."""
    synthesizer = CitingSynthesizer(LLM, renderer=renderer, checks=[NumberCheck()])
    budget = TokenBudget.for_synthesizer(synthesizer, top_n=1)
    question = "What discount do 60 copies get, and when do they ship?"
    response = synthesizer.synthesize(question, budget.postprocess_nodes(NODES, query_str=question))
    print(f"=== {question}\n{response}")
    print(*(f"{check.name} {check.status}: {check.detail}" for check in response.grounded.checks))
    print(response.source_nodes[0].text)


if __name__ == "__main__":
    sys.exit(start("tables", main))
