"""What the packages for LangChain, Haystack and LlamaIndex have in common (integrations/)."""

from evokey.frameworks.backend import Backend, Retrieved
from evokey.frameworks.opening import open_with

__all__ = ["Backend", "Retrieved", "open_with"]
