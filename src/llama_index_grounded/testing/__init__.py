"""Helpers for your own tests: a scripted LLM, quick nodes, and the laws that every stage keeps."""

from llama_index_grounded.testing.laws import LawError, check_postprocessor
from llama_index_grounded.testing.nodes import make_nodes
from llama_index_grounded.testing.scripted_llm import ScriptedLLM

__all__ = ["LawError", "ScriptedLLM", "check_postprocessor", "make_nodes"]
