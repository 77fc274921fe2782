"""A memory of before, with other encoders."""

import evokey

with evokey.open("kb") as memory:
    memory.add([{"id": "git-log", "text": "Show the history, newest first."}])
