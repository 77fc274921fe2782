"""A callback that remembers what each run retrieved, so that a vote on the run becomes a lesson."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from evokey import Layer, Memory
from evokey.client import Client
from evokey.errors import UnknownResult
from evokey.frameworks import Backend, Retrieved
from evokey.types import Rating


@dataclass
class Run:
    """What one run of a chain retrieved and answered."""

    retrieved: list[Retrieved] = field(default_factory=list)
    answer: str = ""


class EvokeyFeedback(BaseCallbackHandler):
    """
    feedback = EvokeyFeedback(memory)
    answer = chain.invoke(question, config={"callbacks": [feedback], "run_id": run_id})
    feedback.rate(run_id, up=True)

    An upvote credits the documents named in `cited`; without it, those that the sentences of the answer match; where
    none match, nothing. A vote down asks people (evokey review) and changes nothing by itself.
    """

    def __init__(self, memory: Memory | Layer | Client, size: int = 10_000) -> None:
        """size: how many runs are remembered, the newest; in this process only."""
        self._backend, self._size = Backend(memory), size
        self._runs: OrderedDict[UUID, Run] = OrderedDict()
        self._roots: dict[UUID, UUID] = {}
        """Root of each run that is under way."""
        self._queries: dict[UUID, str] = {}
        self._lock = Lock()

    def rate(
        self,
        run_id: UUID,
        up: bool,
        cited: Iterable[str] | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> list[Rating]:
        """A vote on a run: one rating for each search that it made. reason: of a vote down, as in Memory.rate."""
        with self._lock:
            run = self._runs.get(run_id)
        if run is None:
            raise UnknownResult(
                f"nothing is kept of the run {run_id}: pass this object in config['callbacks'] and the run_id in "
                f"config['run_id'], and rate it in the same process"
            )
        named = None if cited is None else set(cited)
        rated = []
        for one in run.retrieved:
            credited = one.credit(run.answer) if named is None else [id for id in one.texts if id in named]
            rated.append(self._backend.rate(one, up, credited, reason, actor))
        return [one for one in rated if one is not None]

    # ---- what LangChain calls

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._begin(run_id, parent_run_id)

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._begin(run_id, parent_run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        self._begin(run_id, parent_run_id)
        with self._lock:
            self._queries[run_id] = query

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        texts = {one.id: one.page_content for one in documents if one.id is not None}
        named = (one.metadata.get("evokey_query_id") for one in documents)
        with self._lock:
            root, query = self._roots.pop(run_id, run_id), self._queries.pop(run_id, "")
            if texts:
                self._run(root).retrieved.append(Retrieved(query, texts, next(named, None)))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        with self._lock:
            if self._roots.pop(run_id, None) == run_id and run_id in self._runs:
                self._runs[run_id].answer = _text(outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def _end(self, run_id: UUID) -> None:
        with self._lock:
            self._roots.pop(run_id, None)
            self._queries.pop(run_id, None)

    def _begin(self, run_id: UUID, parent_run_id: UUID | None) -> None:
        with self._lock:
            self._roots[run_id] = run_id if parent_run_id is None else self._roots.get(parent_run_id, parent_run_id)

    def _run(self, root: UUID) -> Run:
        run = self._runs.setdefault(root, Run())
        while len(self._runs) > self._size:
            self._runs.popitem(last=False)
        return run


def _text(outputs: Any) -> str:
    """The answer in what a chain returned; empty where it is nothing to read."""
    if isinstance(outputs, BaseMessage):
        return str(outputs.text)
    if isinstance(outputs, dict):
        return _text(next((outputs[name] for name in ("answer", "output", "result") if name in outputs), ""))
    return outputs if isinstance(outputs, str) else ""
