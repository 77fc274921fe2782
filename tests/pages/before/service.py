"""A memory, and the shell's word where it is."""

import os
from pathlib import Path

import evokey

with evokey.open("kb") as memory:
    memory.add([{"id": "install.md", "text": "How to install it: run pip install evokey."}])
Path("collections").mkdir()
search = "def search(query, k, **filters):\n    return [('shoe', 1.0)][:k]\n"
allowed = "def allowed(ids, **filters):\n    return ids\n"
Path("shop_search.py").write_text(search + allowed)
os.environ["EVOKEY_AT"] = "kb"
