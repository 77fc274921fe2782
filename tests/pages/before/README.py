"""A search engine of one's own, and a folder of documents."""

import json
from pathlib import Path

import evokey  # noqa: F401 - the page imports it further down

PAGES = {
    "git-commit": "Record changes to the repository: make a commit.",
    "git-revert": "Record new changes that reverse the effect of earlier ones.",
    "git-log": "Show the history, newest first.",
}


def search(query, k):
    words = set(query.lower().split())
    found = [(id, len(words & set(text.lower().split()))) for id, text in PAGES.items()]
    return sorted(found, key=lambda one: -one[1])[:k]


Path("docs").mkdir()
Path("docs/commands.jsonl").write_text("".join(json.dumps({"id": id, "text": PAGES[id]}) + "\n" for id in PAGES))
