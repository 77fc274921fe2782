"""A Milvus collection of keys, behind an alias: rows with their document's number, and a note of whose they are.

An alias names the collection that is searched. Keys that are all to be made again go into a new collection, and the
alias moves there when they are complete: whoever searches meanwhile finds the old ones. What Milvus refuses, or does
not answer, is an error that names the place, never what opens it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np
from grpc import RpcError
from pymilvus import DataType, MilvusClient, MilvusException

from evokey.errors import InvalidSettings, StoreFailed
from evokey.types import Numbers

NOTE = -(1 << 62)
"""The row that says who made the keys, by which encoder."""
ROWS = 1 << 20
"""No document has so many rows: a row is called by its document's number times this, and its place."""
BATCH = 1_000
"""Rows written at a time."""
PAGE = 10_000
"""Rows read at a time."""
SECONDS, PAUSE = 20.0, 0.3
"""For one call, and between two attempts."""
NOT_LOADED = "not loaded"
"""What Milvus says of a collection that it has and does not search yet."""
logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # what fails is raised, and said once
Method = TypeVar("Method", bound=Callable[..., Any])


def check_uri(uri: str) -> str:
    """A place without what opens it: settings are kept in a file."""
    parts = urlsplit(uri)
    if parts.username or parts.password or "@" in parts.netloc:
        raise InvalidSettings(
            "the uri of store 'milvus' holds a user or a password, and settings are kept in a file: name the "
            "environment variable that holds user:password or a token with token_env"
        )
    return uri


def token_from(variable: str | None) -> str:
    if variable is None:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise InvalidSettings(f"store 'milvus' takes its token from the environment variable {variable}: it is not set")
    return token


class Place(Protocol):
    """Something in Milvus."""

    uri: str

    def repeat(self, work: Callable[[], Any]) -> Any: ...


def explain(method: Method) -> Method:
    """What goes wrong in Milvus, as an error of ours."""

    @wraps(method)
    def call(self: Place, *given: Any, **named: Any) -> Any:
        try:
            return self.repeat(partial(method, self, *given, **named))
        except (MilvusException, RpcError, OSError, ValueError) as error:
            said = str(getattr(error, "message", "") or error or type(error).__name__).splitlines()[0][:300]
            raise StoreFailed(
                f"Milvus at {self.uri} did not do what it was asked ({said}). Documents and lessons are safe in the "
                f"ledger; keys that it lacks are written when it answers again, or with: evokey doctor --rebuild"
            ) from error

    return cast(Method, call)


class Collection:
    """What an alias names; made when the first keys come."""

    def __init__(self, uri: str, alias: str, token: str, level: str, *, sparse: bool = False) -> None:
        """sparse: rows are weights of terms, by number, with the terms themselves beside them (bag)."""
        self.sparse, self._payload = sparse, "bag" if sparse else "vector"
        self.uri, self.alias, self.level, self._token = uri, alias, level, token
        self._connected: MilvusClient | None = None
        self._known = False
        self._next: str | None = None
        """A collection that is being filled, and is not searched yet."""

    @property
    def client(self) -> MilvusClient:
        if self._connected is None:
            if "://" not in self.uri:  # milvus-lite logs what it does not have
                logging.getLogger("grpc._server").setLevel(logging.CRITICAL)
            self._connected = MilvusClient(self.uri, token=self._token, timeout=SECONDS)
        return self._connected

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def repeat(self, work: Callable[[], Any], name: str | None = None) -> Any:
        """Once more, while a server that has just started loads what it holds. name: of what is asked; these keys if it
        is not said."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                return work()
            except MilvusException as error:
                if NOT_LOADED not in str(error.message) or time.monotonic() > until:
                    raise
            with suppress(MilvusException):
                self.client.load_collection(name or self._filled)
            time.sleep(PAUSE)

    # ---- versions

    def _current(self) -> str | None:
        """The collection that the alias names."""
        for name in self._versions():
            if self.alias in self.client.list_aliases(name)["aliases"]:
                return name
        return None

    def _versions(self) -> list[str]:
        form = re.compile(rf"{re.escape(self.alias)}_v(\d+)")
        found = [name for name in self.client.list_collections() if form.fullmatch(name)]
        return sorted(found, key=lambda name: int(name.rpartition("_v")[2]))

    @property
    def _filled(self) -> str:
        """Where rows are written."""
        return self._next or self.alias

    @explain
    def exists(self) -> bool:
        self._known = self._known or self._next is not None or self._current() is not None
        return self._known

    @explain
    def create(self, dimension: int | None, *, anew: bool) -> None:
        """What the alias names, unless another process was first; or, anew, a version that is searched once it is
        complete."""
        current = self._current()
        if current is not None and not anew:
            return
        known = self._versions()
        if current is None and known and self._dimension_of(known[-1]) == dimension:
            name = known[-1]  # whoever made it is about to name it, or went before it did
        else:
            name = f"{self.alias}_v{int(known[-1].rpartition('_v')[2]) + 1 if known else 1}"
            self._make(name, dimension)
        if current is not None:
            self._next = name
            return
        try:
            self.client.create_alias(name, self.alias)
        except MilvusException:
            if self._current() is None:
                raise

    def _make(self, name: str, dimension: int | None) -> None:
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=True)
        schema.add_field("row", DataType.INT64, is_primary=True)
        schema.add_field("number", DataType.INT64)
        index = self.client.prepare_index_params()
        if self.sparse:
            schema.add_field("vector", DataType.SPARSE_FLOAT_VECTOR)
            index.add_index("vector", index_type="SPARSE_INVERTED_INDEX", metric_type="IP", params={})
        else:
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
            index.add_index("vector", index_type="HNSW", metric_type="IP", params={"M": 32, "efConstruction": 128})
        self.client.create_collection(name, schema=schema, index_params=index, consistency_level=self.level)

    @explain
    def swap(self) -> None:
        """From now on the version that was filled is searched, if there is one; the others go."""
        if self._next is None:
            return
        current, self._next = self._next, None
        self.client.alter_alias(current, self.alias)
        for name in self._versions():
            if name != current:
                self.client.drop_collection(name)

    @explain
    def remove(self) -> None:
        """All versions."""
        self._next, self._known = None, False
        if self._current() is not None:
            self.client.drop_alias(self.alias)
        for name in self._versions():
            self.client.drop_collection(name)

    # ---- rows

    @explain
    def upsert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), BATCH):
            self.client.upsert(self._filled, [dict(row) for row in rows[start : start + BATCH]])

    @explain
    def delete(self, numbers: Numbers) -> None:
        wanted = [*numbers.tolist(), *(-1 - numbers).tolist()]
        for start in range(0, len(wanted), BATCH):
            self.client.delete(self._filled, filter=f"number in {wanted[start : start + BATCH]}")

    @explain
    def note(self, vector: Any, **said: str) -> None:
        """Who made the keys. vector: one that says nothing."""
        row = {"row": NOTE, "number": NOTE, "vector": vector, "said": json.dumps(said)}
        self.client.upsert(self._filled, [row])

    @explain
    def noted(self) -> dict[str, str]:
        found = self.client.query(self._filled, ids=[NOTE], output_fields=["said"], consistency_level="Strong")
        return dict(json.loads(found[0]["said"])) if found else {}

    @explain
    def dimension(self) -> int | None:
        return self._dimension_of(self._filled)

    def _dimension_of(self, name: str) -> int | None:
        fields = self.client.describe_collection(name)["fields"]
        return next((int(one["params"]["dim"]) for one in fields if "dim" in one["params"]), None)

    @explain
    def numbers(self) -> Numbers:
        """Of all rows: the document of each; −1 − number where a document has none."""
        found: list[int] = []
        iterator = self.client.query_iterator(
            self._filled, filter=f"row > {NOTE}", batch_size=PAGE, output_fields=["number"], consistency_level="Strong"
        )
        while page := iterator.next():
            found.extend(row["number"] for row in page)
        iterator.close()
        return np.array(found, np.int64)

    @explain
    def fetch(self, numbers: Numbers, *, vectors: bool = True, strong: bool = True) -> list[dict[str, Any]]:
        """The rows of these documents, those that stand for none included."""
        fields, found = ["row", "number", *([self._payload] if vectors else [])], list[dict[str, Any]]()
        for some in cut([*numbers.tolist(), *(-1 - numbers).tolist()], BATCH):
            found += self.client.query(
                self._filled, filter=f"number in {some}", output_fields=fields,
                consistency_level="Strong" if strong else self.level,
            )  # fmt: skip
        return found

    @explain
    def search(
        self, vectors: Sequence[Any], limit: int, within: Numbers | None, *, width: int, payload: bool
    ) -> list[list[dict[str, Any]]]:
        """For each vector rows near it, the nearest first, of these documents; payload: with what scores them."""
        found = self.client.search(
            self.alias,
            [vector if self.sparse else vector.tolist() for vector in vectors],
            limit=limit,
            filter="" if within is None else f"number in {within.tolist()}",
            anns_field="vector",
            output_fields=["number", self._payload] if payload else ["number"],
            search_params={"metric_type": "IP", "params": {} if self.sparse else {"ef": max(width, limit)}},
            consistency_level=self.level,
        )
        return [[hit["entity"] for hit in hits] for hits in found]

    @explain
    def find_version(self) -> str | None:
        """Of a server; None: it is a file."""
        return str(self.client.get_server_version()) if "://" in self.uri else None


def cut(values: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
