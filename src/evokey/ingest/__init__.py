"""Files → documents: JSONL, CSV, plain text, Markdown, folders of these, and folders in BEIR layout."""

from evokey.ingest.files import documents, named_by_path, read, records
from evokey.ingest.listing import File, Listing, Skipped, listing

__all__ = ["File", "Listing", "Skipped", "documents", "listing", "named_by_path", "read", "records"]
