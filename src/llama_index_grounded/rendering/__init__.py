"""One source as text, and back."""

from llama_index_grounded.rendering.escaping import clean, escape, unescape
from llama_index_grounded.rendering.renderer import Removed, Rendered, Renderer
from llama_index_grounded.rendering.slug import slug
from llama_index_grounded.rendering.xml import XmlRenderer

__all__ = ["Removed", "Rendered", "Renderer", "XmlRenderer", "clean", "escape", "slug", "unescape"]
