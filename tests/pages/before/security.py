"""A memory that somebody handed over, with a language model behind a local address."""

import shutil

import evokey

llm = {"name": "openai", "model": "small", "base_url": "http://127.0.0.1:11434"}
evokey.open("made", llm=llm).close()
shutil.move("made", "kb")
