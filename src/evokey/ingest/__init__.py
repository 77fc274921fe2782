"""Files → documents: JSONL, CSV, plain text, Markdown, folders of these, and folders in BEIR layout."""

from evokey.ingest.files import read, records

__all__ = ["read", "records"]
