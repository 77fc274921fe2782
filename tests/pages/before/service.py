"""A memory, and the shell's word where it is."""

import os

import evokey

with evokey.open("kb") as memory:
    memory.add([{"id": "install.md", "text": "How to install it: run pip install evokey."}])
os.environ["EVOKEY_AT"] = "kb"
