"""Client: what Memory does, over HTTP. In async code run it in a thread: `asyncio.to_thread(client.search, "…")`."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from evokey import checks
from evokey.checks import Graded
from evokey.client.decode import read
from evokey.client.wire import Wire, error_of
from evokey.errors import EvokeyError, ServiceFailed
from evokey.types import (
    Answer,
    Citation,
    Document,
    Epoch,
    EpochDiff,
    EpochReport,
    Explanation,
    Forgotten,
    Gap,
    Hit,
    Lesson,
    Passage,
    Rating,
    Section,
    Stats,
    Verdict,
)

POLL = 0.2
"""Seconds between two looks at a job."""


class Hits(list[Hit]):
    """Hits, best first, and the query_id by which they can be rated."""

    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answered(Answer):
    query_id: str | None = None


class Client:
    """A collection of a service. Use as a context manager, or close it."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        collection: str = "default",
        *,
        user: str | None = None,
        timeout: float = 60,
    ) -> None:
        """user: whose word feedback is, where the key has the scope teach-as."""
        self._wire, self._user = Wire(url, key, timeout), user
        self._base = f"/v1/collections/{collection}"

    # ---- documents

    def add(self, documents: Iterable[Document | Mapping[str, Any]], vectors: Any = None) -> int:
        """vectors: one for each document, as Memory.add takes them."""
        told = [_fields(one) if isinstance(one, Document) else dict(one) for one in documents]
        rows = None if vectors is None else _encode_vectors(vectors, len(told))
        return int(self._post("documents", documents=told, vectors=rows)["count"])

    def delete(self, ids: Iterable[str]) -> int:
        return sum(int(self._wire.delete(f"{self._base}/document", id=id)["count"]) for id in ids)

    def get(self, id: str) -> Document:
        return read(Document, self._get("document", id=id))

    def documents(self, after: int = 0, count: int = 50) -> list[tuple[int, Document]]:
        """A page of documents; their texts are cut after 300 characters."""
        page = self._get("documents", after=after, count=count)
        return [(one["number"], read(Document, one)) for one in page["documents"]]

    def export(self, what: str = "documents") -> Iterator[dict[str, Any]]:
        """All documents, or all lessons, one by one."""
        return self._wire.lines(f"{self._base}/export", what=what)

    def __len__(self) -> int:
        return self.stats().documents

    # ---- answering

    def search(
        self, query: str, k: int = 10, where: Mapping[str, Any] | None = None, *, vector: Any = None, **options: Any
    ) -> Hits:
        """The k best documents. Options are those of Memory.search: epoch, group, fold, operators, explore, compare."""
        said = {"query": query, "k": k, "where": where, "vector": _encode_vector(vector), **options}
        told = self._post("search", again=True, text=True, user=self._user, **said)
        found = Hits(_hit(one) for one in told["hits"])
        found.query_id = told["query_id"]
        return found

    def search_many(self, queries: Sequence[str], k: int = 10, where: Mapping[str, Any] | None = None) -> list[Hits]:
        return [self.search(query, k, where) for query in queries]

    def ask(self, query: str, k: int = 5, where: Mapping[str, Any] | None = None) -> Answered:
        return _answer(self._post("ask", query=query, k=k, where=where, user=self._user))

    def ask_stream(
        self, query: str, k: int = 5, where: Mapping[str, Any] | None = None
    ) -> Generator[str, None, Answered]:
        """The same, piece by piece; the return value is the whole answer."""
        said = {"query": query, "k": k, "where": where, "stream": True, "user": self._user}
        for name, told in self._wire.events(f"{self._base}/ask", **said):
            if name == "answer":
                return _answer(told)
            if name == "error":
                raise error_of(told["error"], told["message"])
            yield told["text"]
        raise ServiceFailed("the answer broke off; ask again")

    def explain(self, id: str, query: str | None = None) -> Explanation:
        return read(Explanation, self._post("explain", again=True, document=id, query=query))

    # ---- ratings

    def rate(
        self, query_id: str, up: bool | None, reason: str | None = None, cited: Iterable[str] | None = None
    ) -> Rating | None:
        """Vote on what a query_id showed; None withdraws the vote."""
        vote = {True: "up", False: "down", None: "none"}[up]
        named = None if cited is None else list(cited)
        told = self._post("ratings", query_id=query_id, vote=vote, reason=reason, cited=named, user=self._user)
        return None if told["rating"] is None else read(Rating, told["rating"])

    def click(self, query_id: str, document: str) -> None:
        self._post("clicks", query_id=query_id, document=document)

    def gaps(self) -> list[Gap]:
        return [read(Gap, one) for one in self._get("gaps")["gaps"]]

    # ---- learning

    def feedback(
        self,
        query: str,
        relevant: Graded = (),
        irrelevant: Iterable[str] = (),
        units: Sequence[str] | None = None,
        vector: Any = None,
    ) -> Lesson:
        """vector: the query's, where the memory takes vectors."""
        said = _lesson_fields(query, relevant, irrelevant, units, vector)
        return _lesson(self._post("feedback", user=self._user, **said)["lessons"][0])

    def feedback_many(self, lessons: Iterable[Mapping[str, Any]]) -> list[Lesson]:
        said = [{**_lesson_fields(**one), **({"user": self._user} if self._user else {})} for one in lessons]
        return [_lesson(one) for one in self._post("feedback/batch", lessons=said)["lessons"]]

    def learn(
        self, query: str, expected: str | Sequence[str] | None = None, relevant: Graded | None = None
    ) -> Mapping[str, Any]:
        """What learn did with a query: LearnReport.to_dict."""
        answers = [expected] if isinstance(expected, str) else list(expected or ())
        graded = None if relevant is None else _encode_grades(relevant)
        told: Mapping[str, Any] = self._post("learn", query=query, expected=answers, relevant=graded, user=self._user)
        return told["report"]  # type: ignore[no-any-return]

    def lessons(
        self,
        query: str | None = None,
        actor: str | None = None,
        document: str | None = None,
        held: bool | None = None,
        count: int = 100,
    ) -> list[Lesson]:
        """The newest lessons that meet every condition, the newest first."""
        told = self._get("lessons", query=query, actor=actor, document=document, held=held, count=count)
        return [_lesson(one) for one in told["lessons"]]

    def hold(self, lessons: Iterable[int]) -> int:
        return int(self._post("lessons/hold", lessons=list(lessons))["count"])

    def release(self, lessons: Iterable[int]) -> int:
        return int(self._post("lessons/release", lessons=list(lessons))["count"])

    def protect(self, query: str, relevant: Graded) -> None:
        self._post("protect", query=query, relevant=_encode_grades(relevant))

    def protected_queries(self) -> Mapping[str, Mapping[str, float]]:
        found: Mapping[str, Mapping[str, float]] = self._get("protected")["protected"]
        return found

    # ---- evolving, and time travel

    def evolve(self, dry_run: bool = False, timeout: float = 3_600) -> EpochReport:
        """Begin to evolve, and wait for the report."""
        return _report(self._follow(self._post("evolve", dry_run=dry_run), timeout)["report"])

    def stage(self, timeout: float = 3_600) -> int:
        """Propose, publish nothing, and keep the proposal as the candidate; its number. Search it with epoch or compare
        = "candidate"."""
        job = self._follow(self._post("evolve", dry_run=True), timeout)
        return int(self._post("candidate", job=job["id"])["candidate"]["number"])

    def publish_candidate(self) -> EpochReport:
        return _report(self._post("candidate/publish")["report"])

    def drop_candidate(self) -> None:
        self._wire.delete(f"{self._base}/candidate")

    def _follow(self, job: Any, timeout: float) -> Any:
        """A job when it is over."""
        deadline = time.monotonic() + timeout
        while job["ended"] is None:
            if time.monotonic() > deadline:
                raise ServiceFailed(f"evolve takes longer than {timeout:g} s; it goes on as job {job['id']}")
            time.sleep(POLL)
            job = self._get(f"jobs/{job['id']}")
        if job["error"] is not None:
            raise EvokeyError(job["error"])
        return job

    def forget(
        self, query: str | None = None, actor: str | None = None, document: str | None = None, traffic: bool = False
    ) -> Forgotten:
        told = self._post("forget", query=query, actor=actor, document=document, traffic=traffic)
        return read(Forgotten, told["forgotten"])

    def epochs(self) -> list[Epoch]:
        return [_epoch(one) for one in self._get("epochs")["epochs"]]

    def rollback(self, epoch: int) -> Epoch:
        return _epoch(self._post("rollback", epoch=epoch))

    def diff(self, a: int, b: int) -> EpochDiff:
        return read(EpochDiff, self._get("diff", a=a, b=b))

    def stats(self) -> Stats:
        return read(Stats, self._get("stats"))

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _get(self, path: str, **query: Any) -> Any:
        return self._wire.get(f"{self._base}/{path}", **query)

    def _post(self, path: str, *, again: bool = False, **body: Any) -> Any:
        return self._wire.post(f"{self._base}/{path}", again=again, **body)


def _fields(one: Document) -> dict[str, Any]:
    return {"id": one.id, "text": one.text, "title": one.title, "metadata": dict(one.metadata)}


def _encode_grades(relevant: Graded) -> list[str] | dict[str, float]:
    return dict(relevant) if isinstance(relevant, Mapping) else list(relevant)


def _encode_vectors(vectors: Any, rows: int) -> list[list[float]]:
    """Rows as they are. They are checked first: JSON cannot say NaN."""
    checks.vectors(vectors, rows)
    found: list[list[float]] = np.asarray(vectors, np.float64).tolist()
    return found


def _encode_vector(vector: Any) -> list[float] | None:
    return None if vector is None else _encode_vectors([vector], 1)[0]


def _lesson_fields(
    query: str,
    relevant: Graded = (),
    irrelevant: Iterable[str] = (),
    units: Sequence[str] | None = None,
    vector: Any = None,
) -> dict[str, Any]:
    told = {"query": query, "relevant": _encode_grades(relevant), "irrelevant": list(irrelevant)}
    more = {} if vector is None else {"vector": _encode_vector(vector)}
    return told | {"units": list(units or ())} | more


def _passage(told: Mapping[str, Any]) -> Passage:
    return read(Passage, told)


def _hit(told: Mapping[str, Any]) -> Hit:
    sections = tuple(read(Section, one) for one in told["sections"] or ())
    text = told["passage"]["text"] if told["text"] is None else told["text"]
    document = Document(told["id"], text, told["title"], told["metadata"], sections)
    passage = _passage(told["passage"])
    return Hit(told["id"], told["score"], document, lambda: passage, tuple(told["similar"]), told["epoch"])


def _answer(told: Mapping[str, Any]) -> Answered:
    sources = tuple(Citation(one["document"], _passage(one["passage"])) for one in told["sources"])
    hits = tuple(_hit(one) for one in told["hits"])
    made = (told["query"], told["text"], tuple(told["citations"]), hits, told["model"])
    return Answered(*made, finished=told["finished"], sources=sources, query_id=told["query_id"])


def _lesson(told: Mapping[str, Any]) -> Lesson:
    """Without the hashes of its documents: they stay with the memory."""
    graded = [*told["relevant"].items(), *((id, -1.0) for id in told["irrelevant"])]
    verdicts = tuple(Verdict(id, grade, "") for id, grade in graded)
    more = (told["actor"], told["verifier"], told["time"], told["held"])
    return Lesson(told["number"], told["query"], tuple(told["units"]), verdicts, *more)


def _report(told: Mapping[str, Any]) -> EpochReport:
    return read(EpochReport, {name: value for name, value in told.items() if name != "left_out"})


def _epoch(told: Mapping[str, Any]) -> Epoch:
    report = told["report"]
    return Epoch(
        told["number"], told["kind"], told["lessons_to"], {}, report.get("weights", {}), told["time"], report,
        told["redacted"],
    )  # fmt: skip
