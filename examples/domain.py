"""Rules for legal texts in the prompt, and a rule of one's own behind them.

    sh uvw run --locked --extra demo --no-dev examples/domain.py

See which lines each choice adds to the system prompt, what they cost in tokens, and an answer. Rules ask; the citation
is validated in code under any of them.
"""

from __future__ import annotations

import sys

from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.synthesis import system_prompt
from llama_index_grounded.testing import ScriptedLLM, make_nodes
from support.command import start

LEGAL = system_prompt("legal")
OURS = f"{LEGAL}\n- Call the customer the Buyer and the bookstore the Seller."
PAGE = {"title": "Corporate order agreement", "section": "4.2 Term and notice", "last_updated": "2026-02-01"}
NODES = make_nodes(
    ["It is renewed for another year unless one side gives notice in writing one month before it ends."], metadata=PAGE
)
QUESTION = "Can we leave after one year?"
REPLY = {
    "verdict": "yes",
    "sources": ["S1"],
    "answer": "Yes. Clause 4.2 of the agreement of 2026-02-01: it is renewed for another year unless the Buyer or the "
    "Seller gives notice in writing one month before it ends [S1]. This is information, for advice see a lawyer.",
}


def main() -> None:
    """Compare the prompts, then ask under our rules."""
    general, legal, ours = (synthesizer_with(prompt) for prompt in (None, LEGAL, OURS))
    show_added("legal", general, legal)
    show_added("our own rule", legal, ours)
    response = ours.synthesize(QUESTION, NODES)
    print(f"=== {QUESTION}\n{response}")
    for citation in response.citations:
        print(f"[{citation.key}] {citation.title}, {citation.section}")


def synthesizer_with(prompt: str | None) -> CitingSynthesizer:
    """Make a synthesizer; without a prompt it has the general rules."""
    return CitingSynthesizer(ScriptedLLM([REPLY]), system_prompt=prompt)


def show_added(name: str, before: CitingSynthesizer, after: CitingSynthesizer) -> None:
    """Print the lines that one prompt has beyond another, without asking a model."""
    old, new = (synthesizer.preview(QUESTION, NODES) for synthesizer in (before, after))
    rules_before, rules_after = ((plan.messages[0].content or "").splitlines() for plan in (old, new))
    print(f"=== {name}: {new.tokens - old.tokens} tokens more")
    print("\n".join(f"+ {line}" for line in rules_after if line not in rules_before))
    print(f"lines taken out: {sum(line not in rules_after for line in rules_before)}")


if __name__ == "__main__":
    sys.exit(start("domain", main))
