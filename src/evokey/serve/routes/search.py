"""Search, answers, and how people rate them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from evokey.errors import EvokeyError
from evokey.serve.access import Access, Reader, Teacher
from evokey.serve.models import AnswerOut, Ask, Click, Explain, Fine, HitOut, Rate, Results, Search
from evokey.serve.replies import RESPONSES, status_of
from evokey.types import Answer, Explanation, Hit, Other, Rating

router = APIRouter(prefix="/v1/collections/{collection}", responses=RESPONSES)


@router.post("/search", tags=["search"])
def search(body: Search, access: Reader) -> Results:
    """The k best documents. No language model is called."""
    memory, where = access.memory, access.where(body.where)
    with access.service.tracer.retrieval(access.collection, body.query, body.k) as span:
        hits = memory.search(
            body.query, body.k, where, body.epoch, body.vector, explore=body.explore, group=body.group,
            fold=body.fold, operators=body.operators, compare=body.compare,
        )  # fmt: skip
        span.note(hits)
    epoch = memory.epoch if body.epoch is None else body.epoch
    told = [HitOut.of(hit, body.text) for hit in hits]
    return Results(query_id=_show(access, body, hits, epoch), epoch=epoch, hits=told)


def _show(access: Access, body: Search, hits: Sequence[Hit], epoch: int) -> str | None:
    if not body.keep:
        return None
    _count(access, hits)
    if not access.service.options.keep_shown:
        return None
    other = _other(access, body, hits)
    query_id = access.memory.show(body.query, hits, actor=access.actor(body.user), other=other, epoch=epoch)
    access.request.state.query_id = query_id
    return query_id


def _count(access: Access, hits: Sequence[Hit]) -> None:
    access.service.metrics.searches.labels(access.collection).inc()
    if not hits:
        access.service.metrics.empty.labels(access.collection).inc()


def _other(access: Access, body: Search, hits: Sequence[Hit]) -> Other | None:
    """The other epoch of a search: interleaved, or in the shadow."""
    if body.compare is not None:
        theirs, both = (tuple(hit.id for hit in hits if hit.epoch == who) for who in (body.compare, None))
        return Other("interleaved", body.compare, theirs, both)
    shadow = access.service.options.shadow
    if shadow is None or body.epoch is not None or body.vector is not None:
        return None
    found = access.memory.search(body.query, body.k, access.where(body.where), shadow)
    return Other("shadow", shadow, tuple(hit.id for hit in found))


@router.post(
    "/ask",
    tags=["search"],
    response_model=AnswerOut,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
def ask(body: Ask, access: Reader) -> Any:
    """An answer from the documents, with its sources; `stream` sends it piece by piece."""
    actor = access.actor(body.user)
    where = access.where(body.where)
    if body.stream:
        pieces = access.memory.ask_stream(body.query, body.k, where)
        return StreamingResponse(_events(access, pieces, actor), media_type="text/event-stream")
    answer = access.memory.ask(body.query, body.k, where)
    return AnswerOut.of(answer, _show_answer(access, answer, actor))


def _show_answer(access: Access, answer: Answer, actor: str | None) -> str | None:
    _count(access, answer.hits)
    if not access.service.options.keep_shown:
        return None
    query_id = access.memory.show(answer.query, answer.hits, answer, actor)
    access.request.state.query_id = query_id
    return query_id


def _events(access: Access, pieces: Generator[str, None, Answer], actor: str | None) -> Iterator[str]:
    """Server-sent events: `piece` with a text, then `answer` with all of it, or `error`."""
    try:
        while True:
            yield _event("piece", {"text": next(pieces)})
    except StopIteration as end:
        answer = AnswerOut.of(end.value, _show_answer(access, end.value, actor))
        yield _event("answer", answer.model_dump())
    except EvokeyError as error:
        told = {"error": type(error).__name__, "message": str(error), "status": status_of(error)}
        yield _event("error", told)


def _event(name: str, told: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(told)}\n\n"


@router.post("/explain", tags=["search"])
def explain(body: Explain, access: Reader) -> Explanation:
    """What a document has learned and from whom; with a query, how that changes its score and rank."""
    return access.memory.explain(body.document, body.query, where=access.where(None))


# ---- ratings


class Rated(BaseModel):
    rating: Rating | None


@router.post("/ratings", tags=["ratings"])
def rate(body: Rate, access: Teacher) -> Rated:
    """Vote on what a query_id showed. Up credits what the answer cites; down asks people; none withdraws."""
    actor, up = access.actor(body.user), {"up": True, "down": False, "none": None}[body.vote]
    access.check_seen(body.cited or [])
    access.count_lessons(body.user)
    rating = access.memory.rate(body.query_id, up, body.reason, body.cited, actor)
    access.service.metrics.ratings.labels(access.collection, body.vote).inc()
    return Rated(rating=rating)


@router.post("/clicks", tags=["ratings"])
def click(body: Click, access: Reader) -> Fine:
    """Somebody opened a document that was shown."""
    access.memory.click(body.query_id, body.document)
    return Fine()
