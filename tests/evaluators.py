"""An evaluator of LlamaIndex without prompts, for tests to fill in."""

from __future__ import annotations

from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.prompts.mixin import PromptDictType

__all__ = ["Promptless"]


class Promptless(BaseEvaluator):
    """Has no prompts; a subclass says how it judges."""

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Have none."""
