"""Helpers for your own tests: a scripted LLM, quick nodes, a fixed retriever, and the laws that every stage keeps."""

from llama_index_grounded.testing.fixed_retriever import FixedRetriever
from llama_index_grounded.testing.laws import LawError, check_postprocessor
from llama_index_grounded.testing.nodes import make_nodes
from llama_index_grounded.testing.scripted_llm import ScriptedLLM

__all__ = ["FixedRetriever", "LawError", "ScriptedLLM", "check_postprocessor", "make_nodes"]
