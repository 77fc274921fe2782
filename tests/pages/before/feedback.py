"""A memory with the documents that the exports name, and the exports, under the names of the page."""

import shutil
from pathlib import Path

import evokey

exports = Path(__file__).parents[2] / "feedback" / "exports"
NAMES = {
    "ubi_queries.json": "queries.ndjson",
    "ubi_events.ndjson": "events.ndjson",
    "phoenix_spans.json": "spans.json",
    "phoenix_annotations.jsonl": "annotations.jsonl",
    "langfuse_traces.json": "traces.json",
    "langfuse_scores.json": "scores.json",
    "langsmith_runs.jsonl": "runs.jsonl",
    "langsmith_feedback.jsonl": "feedback.jsonl",
    "qrels.txt": "qrels.txt",
    "queries.tsv": "queries.tsv",
    "judgments.csv": "judged.csv",
}
for name, called in NAMES.items():
    shutil.copy(exports / name, called)
with evokey.open("kb") as memory:
    memory.add([{"id": id, "text": f"about {id}"} for id in ("git-revert", "git-commit", "git-log", "git-stash")])
