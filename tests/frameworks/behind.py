"""What may stand behind a framework's interface, each with the same documents: a memory, a layer and a client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layer.library import Library
from serve.served import serving

import evokey
from evokey.client import Client
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options

DOCUMENTS = [
    evokey.Document(
        "git-revert", "Record new changes that reverse the effect of an earlier commit.", metadata={"n": 1}
    ),
    evokey.Document("git-commit", "Record changes to the repository: make a commit.", metadata={"n": 2}),
    evokey.Document("git-log", "Show the history of every commit, newest first.", metadata={"n": 3}),
    evokey.Document("git-blame", "Show who last changed each line of a file, by commit.", metadata={"n": 4}),
]
QUESTION, RIGHT, WRONG = "how do I undo a commit?", "git-revert", "git-commit"
ANSWER = "You record new changes that reverse the effect of an earlier commit."
"""From the right document."""
KINDS = ("memory", "layer", "client")


@contextmanager
def behind(kind: str, folder: Path) -> Iterator[evokey.Memory | evokey.Layer | Client]:
    if kind == "layer":
        library = Library(DOCUMENTS)
        texts = {one.id: one for one in DOCUMENTS}

        def search(query: str, k: int) -> list[tuple[str, float, str]]:
            return [(id, score, texts[id].text) for id, score in library.search(query, k)]

        with evokey.beside(search, folder, allowed=lambda ids: [(id, 0, texts[id].text) for id in ids]) as layer:
            yield layer
        return
    with evokey.open(folder, encoder="bm25") as memory:
        memory.add(DOCUMENTS)
        if kind == "memory":
            yield memory
            return
    with serving(Options(at=folder)) as url:
        key = KeyRing(folder).create(Key("app", frozenset({"admin", "teach-as"}), actor="app"))
        with Client(url, key, user="ada") as client:
            yield client


def embed(texts: list[str]) -> list[list[float]]:
    """A small embedding of words: vectors by hashes of their letters. Not of unit length."""
    return [[3.0 * one for one in _vector(text)] for text in texts]


def embed_otherwise(texts: list[str]) -> list[list[float]]:
    """Another one, of the same dimension."""
    return [_vector(text)[::-1] for text in texts]


def _vector(text: str) -> list[float]:
    counts = [0.0] * 64
    for word in re.findall(r"\w+", text.lower()):
        counts[sum(ord(letter) * 31**at for at, letter in enumerate(word)) % 64] += 1
    return [count + 0.01 for count in counts]
