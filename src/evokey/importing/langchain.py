"""What LangChain's own stores write: the folder of its FAISS store, or the file of InMemoryVectorStore.dump.

The folder has its texts in a pickle, and a pickle can run any code. It is read only with the flag, and then only values
and LangChain's own documents are made of it: anything else in it is an error.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evokey.errors import InvalidInput
from evokey.importing.records import Place, Record

KNOWN = {"InMemoryDocstore", "Document"}


class LangChain:
    def __init__(self, place: Place) -> None:
        self._path = Path(place.path)
        self.metric = "cosine"
        if self._path.is_dir():
            if not (self._path / "index.pkl").exists():
                raise InvalidInput(f"{self._path} has no index.pkl, which FAISS.save_local writes")
            if not place.trust_pickle:
                raise InvalidInput(
                    f"{self._path / 'index.pkl'} is a pickle, which can run code of whoever wrote it; if you wrote it, "
                    f"pass --trust-pickle"
                )
            from evokey.importing.faiss import Vectors  # a dump needs no faiss

            self._vectors = Vectors(str(self._path / "index.faiss"))
            self.metric = self._vectors.metric
        elif not self._path.is_file():
            raise InvalidInput(f"{self._path} is neither a folder of FAISS.save_local nor a file of a dump")

    def records(self) -> Iterator[Record]:
        yield from self._of_folder() if self._path.is_dir() else self._of_file()

    def _of_file(self) -> Iterator[Record]:
        for id, one in json.loads(self._path.read_text("utf-8")).items():
            yield Record(id, one["text"], one["vector"], one.get("metadata") or {})

    def _of_folder(self) -> Iterator[Record]:
        with (self._path / "index.pkl").open("rb") as file:
            documents, ids = Reader(file).load()
        for at, vector in self._vectors:
            one = documents.state["_dict"][ids[at]].state
            fields = one.get("__dict__", one)
            yield Record(ids[at], fields["page_content"], vector, fields.get("metadata") or {})


class Shell:
    """In the place of an object of LangChain: what it holds, and none of its code."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state


class Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0].startswith("langchain") and name in KNOWN:
            return Shell
        if (module, name) in (("builtins", "set"), ("builtins", "dict")):
            return {"set": set, "dict": dict}[name]
        raise InvalidInput(f"the pickle names {module}.{name}, which no store of LangChain holds; it is not read")
