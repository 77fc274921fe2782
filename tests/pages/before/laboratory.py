"""A small set in BEIR layout, and parts of one's own."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import small_sets

small_sets.gap(Path("DATA"), intents=8)
Path("mymodule.py").write_text(
    '''
import numpy as np
from evokey.types import Expansion, Ruling, Unit


class MyEncoder:
    """Texts by their letters."""

    kind, cost = "dense", "nothing"

    def __init__(self, size=26):
        self.size, self.identity = size, f"letters/{size}"

    def documents(self, texts):
        rows = np.zeros((len(texts), self.size), np.float32)
        for row, text in zip(rows, texts):
            for letter in text.lower():
                row[ord(letter) % self.size] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    queries = documents


class MyExpander:
    identity = "mine"

    def expand(self, query, look):
        return Expansion(query, (Unit("leaf" + query.split()[0].strip("askbeg")),), "mine")


class MyVerifier:
    identity, looks_at = "mine", "retrieval"

    def verify(self, attempt):
        return Ruling(True, 1.0, dict(attempt.relevant), "as judged")
'''
)
os.environ["PYTHONPATH"] = os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])
