"""One source as text, and back."""

from llama_index_grounded.rendering.base import BlockRenderer
from llama_index_grounded.rendering.choice import AnyRenderer
from llama_index_grounded.rendering.escaping import clean, escape, unescape
from llama_index_grounded.rendering.json_blocks import JsonRenderer
from llama_index_grounded.rendering.key_value import KeyValueRenderer
from llama_index_grounded.rendering.markdown import MarkdownRenderer
from llama_index_grounded.rendering.renderer import Removed, Rendered, Renderer
from llama_index_grounded.rendering.slug import slug
from llama_index_grounded.rendering.table import TableRenderer
from llama_index_grounded.rendering.xml import XmlRenderer

__all__ = [
    "AnyRenderer",
    "BlockRenderer",
    "JsonRenderer",
    "KeyValueRenderer",
    "MarkdownRenderer",
    "Removed",
    "Rendered",
    "Renderer",
    "TableRenderer",
    "XmlRenderer",
    "clean",
    "escape",
    "slug",
    "unescape",
]
