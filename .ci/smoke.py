"""Use the installed package as a stranger would: every public name, and one answer with a citation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import llama_index_grounded
from llama_index_grounded import CitingSynthesizer
from llama_index_grounded.testing import ScriptedLLM, make_nodes


def main() -> str | None:
    """Return what is wrong, or nothing."""
    if not Path(llama_index_grounded.__file__).is_relative_to(sys.prefix):
        return f"imported from {llama_index_grounded.__file__}, not from the wheel"
    if importlib.util.find_spec("ollama") is not None:
        return "an extra is installed"
    for name in llama_index_grounded.__all__:
        getattr(llama_index_grounded, name)
    llm = ScriptedLLM(replies=[{"verdict": "answered", "sources": ["S1"], "answer": "Within 21 days [S1]."}])
    nodes = make_nodes(["Printed books can be returned within 21 days of delivery."])
    response = CitingSynthesizer(llm=llm).synthesize("How many days do I have?", nodes)
    if response.verdict != "answered" or [citation.key for citation in response.citations] != ["S1"]:
        return f"no cited answer: {response.grounded!r}"
    print(f"{len(llama_index_grounded.__all__)} names; {response} -> {response.citations[0].node_id}")
    return None


if __name__ == "__main__":
    sys.exit(main())
