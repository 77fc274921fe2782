"""Indexes made elsewhere, read into a memory with their vectors: nothing is embedded again."""

from evokey.importing.run import SOURCES, import_index, load_source

__all__ = ["SOURCES", "import_index", "load_source"]
