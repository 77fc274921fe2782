"""Files → documents: text, Markdown, HTML, PDF, Word, reStructuredText, notebooks, source code, JSONL, CSV; folders.

A file of its own is one document, called by its path. Its text is Markdown, whatever it was before, with metadata that
the file has or that are found out: path, kind, modified, language, author, pages, and the front matter.
"""

from evokey.ingest.child import ChildReader
from evokey.ingest.files import READER, documents, file_bytes, named_by_path, read, records, source
from evokey.ingest.ignoring import Selection
from evokey.ingest.listing import File, Listing, Skipped, listing

__all__ = [
    "READER",
    "ChildReader",
    "File",
    "Listing",
    "Selection",
    "Skipped",
    "documents",
    "file_bytes",
    "listing",
    "named_by_path",
    "read",
    "records",
    "source",
]
