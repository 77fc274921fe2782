"""A folder of 2,000 real files of every kind: added, synchronised, edited and asked. Makes results/folder.json.

    python benchmarks/folder.py [CORPUS]

The files come from the corpus (corpus.py), so many of each kind, chosen by chance; Word files are made by python-docx
from pages of reStructuredText. Times are of the command `evokey add`, in a process of its own: the first time; again
with nothing changed; again with three files edited, one removed and one broken.

Questions: a sentence of a file, of which every second word that is no stop word is left. Sentences that stand in
several files are not asked. "file" is how often the file is the first hit, or among ten; "passage" how often the first
hit is the file and its passage holds the place of the sentence.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import corpus
import docx

import evokey
from evokey.keys.sentences import spans
from evokey.keys.words import STOP_WORDS

RESULTS = Path(__file__).parent / "results" / "folder.json"
COUNTS = {".rst": 450, ".html": 450, ".py": 450, ".md": 250, ".txt": 150, ".ipynb": 150, ".pdf": 120, ".c": 30}
WORD_FILES = 100
QUESTIONS = 600
LARGEST = 400_000
WORD = re.compile(r"[A-Za-z]{3,}")


def choose(folder: Path, chance: random.Random) -> list[Path]:
    found = []
    for ending, count in COUNTS.items():
        sized = (path for path in folder.rglob(f"*{ending}") if path.is_file() and 500 < path.stat().st_size < LARGEST)
        several = sorted(path for path in sized if "baseline_images" not in path.parts)
        found += chance.sample(several, min(count, len(several)))
    return found


def build(source: Path, tree: Path, chance: random.Random) -> Counter[str]:
    chosen = choose(source, chance)
    for path in chosen:
        place = tree / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
    pages = chance.sample([path for path in chosen if path.suffix == ".rst"], WORD_FILES)
    (tree / "word").mkdir()
    for number, path in enumerate(pages):
        make_word(path.read_text("utf-8", "replace"), tree / "word" / f"{number:03}-{path.stem}.docx")
        (tree / path.relative_to(source)).unlink()  # the same text once
    return Counter(path.suffix for path in tree.rglob("*") if path.is_file())


def make_word(text: str, place: Path) -> None:
    """Underlined lines of a page become headings, blocks between empty lines paragraphs."""
    document = docx.Document()
    lines = [line for line in text.split("\n") if not line.startswith("..")]
    block: list[str] = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if len(below) >= 3 and len(set(below.strip())) == 1 and below[0] in "=-~^*#" and line.strip():
            document.add_heading(_printable(line), 1 if below[0] in "=#*" else 2)
        elif line.strip() and not (len(set(line.strip())) == 1 and len(line) > 2):
            block.append(line.strip())
        elif block:
            document.add_paragraph(_printable(" ".join(block)))
            block = []
    document.save(str(place))


def _printable(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable())


def add(tree: Path, at: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "evokey", "add", str(tree), "--at", str(at), "--json", *options]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    if "error" in found:
        raise SystemExit(found["message"])
    counts = {name: found[name] for name in ("added", "unchanged", "removed", "documents")}
    lists = {name: len(found[name]) for name in ("failed", "skipped", "gone")}
    reasons = [one["reason"].partition(": ")[2][:80] for one in found["failed"]]
    seconds = round(time.perf_counter() - start, 2)
    return {"seconds": seconds, "exit_code": done.returncode, **counts, **lists, "why_failed": Counter(reasons)}


def edit(tree: Path, at: Path, chance: random.Random) -> dict[str, Any]:
    pages = chance.sample(sorted(tree.rglob("*.md")), 4)
    for page in pages[:3]:
        page.write_text(page.read_text("utf-8", "replace") + "\n\nOne more sentence about the heron.\n", "utf-8")
    pages[3].unlink()
    broken = chance.choice(sorted(tree.rglob("*.docx")))
    broken.write_bytes(broken.read_bytes()[:1_000])
    return add(tree, at, "--prune")


def questions(memory: evokey.Memory, chance: random.Random) -> list[tuple[str, str, int]]:
    """Question, document and the place of its answer."""
    numbers = memory.ledger.documents.live().tolist()
    documents = memory.ledger.documents.fetch(numbers).values()
    where = defaultdict[str, list[tuple[str, int]]](list)
    for document in documents:
        for start, end in spans(document.text):
            sentence = " ".join(document.text[start:end].split())
            if 60 <= len(sentence) <= 300 and len(WORD.findall(sentence)) >= 10:
                where[sentence].append((document.id, (start + end) // 2))
    single = {sentence: places[0] for sentence, places in where.items() if len(places) == 1}
    by_document = defaultdict[str, list[str]](list)
    for sentence, (id, _) in single.items():
        by_document[id].append(sentence)
    found = []
    for id in chance.sample(sorted(by_document), min(QUESTIONS, len(by_document))):
        sentence = chance.choice(by_document[id])
        words = [word for word in WORD.findall(sentence) if word.lower() not in STOP_WORDS]
        found.append((" ".join(words[::2]), id, single[sentence][1]))
    return [one for one in found if one[0]]


def ask(memory: evokey.Memory, asked: list[tuple[str, str, int]]) -> dict[str, Any]:
    rows = []
    for question, id, place in asked:
        hits = memory.search(question, k=10)
        ranks = [hit.id for hit in hits]
        first = bool(hits) and ranks[0] == id
        passage = first and hits[0].passage.start <= place < hits[0].passage.end
        length = len(hits[0].passage.text) if hits else 0
        rows.append((Path(id).suffix, first, id in ranks, passage, length))
    return {
        "all": _shares(rows),
        **{kind: _shares([r for r in rows if r[0] == kind]) for kind in sorted({r[0] for r in rows})},
    }


def _shares(rows: list[tuple[str, bool, bool, bool, int]]) -> dict[str, float]:
    columns = {"file_first": 1, "file_in_ten": 2, "passage_first": 3}
    shares = {name: round(fmean(float(row[at]) for row in rows), 3) for name, at in columns.items()}
    return {"questions": len(rows), **shares, "characters_of_passage": round(fmean(row[4] for row in rows))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", default=corpus.CORPUS)
    parser.add_argument("--keys", nargs="*", default=["auto", "full"])
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        kinds = build(given.corpus, tree, random.Random(0))
        found = {"files": sum(kinds.values()), "kinds": dict(kinds.most_common()), "keys": {}}
        for keys in given.keys:
            at = Path(place) / f"kb-{keys}"
            evokey.open(at, keys=keys).close()
            first, again = add(tree, at), add(tree, at)
            with evokey.open(at) as memory:
                answers = ask(memory, questions(memory, random.Random(1)))
            found["keys"][keys] = {"first": first, "again": again, "asked": answers}
            print(keys, json.dumps(found["keys"][keys], indent=1))
        found["three_edited_one_removed_one_broken"] = edit(tree, Path(place) / f"kb-{given.keys[0]}", random.Random(2))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["three_edited_one_removed_one_broken"]))


if __name__ == "__main__":
    main()
