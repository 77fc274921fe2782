"""Search, answers, and how people rate them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from evokey.errors import EvokeyError, InvalidInput
from evokey.search.interleaving import PLACES, Team, interleave
from evokey.serve.access import Access, Reader, Teacher
from evokey.serve.collections import Collection
from evokey.serve.models import AnswerOut, Ask, Click, Explain, Fine, HitOut, Rate, Results, Search
from evokey.serve.options import CANDIDATE
from evokey.serve.replies import RESPONSES, status_of
from evokey.types import Answer, Explanation, Hit, Other, Rating

CHANCE = np.random.default_rng()
router = APIRouter(prefix="/v1/collections/{collection}", responses=RESPONSES)


@router.post("/search", tags=["search"], response_model=Results)
async def search(body: Search, access: Reader) -> Response:
    """The k best documents. No language model is called."""
    return await access.service.threads.search(access.memory, partial(_search, body, access))


def _search(body: Search, access: Access) -> Response:
    memory, where = access.memory, access.where(body.where)
    epoch, compare = (_number(memory, one) for one in (body.epoch, body.compare))
    asked: dict[str, Any] = {
        "explore": body.explore,
        "group": body.group,
        "fold": body.fold,
        "operators": body.operators,
    }
    with access.service.tracer.retrieval(access.collection, body.query, body.k) as span:
        hits = memory.search(body.query, body.k, where, epoch, body.vector, **asked)
        mine, other = memory.epoch if epoch is None else epoch, None
        if compare is not None:
            theirs = memory.search(body.query, body.k, where, compare, body.vector, **asked)
            hits, other = _interleave(Team(mine, hits), Team(compare, theirs), body.k)
        span.note(hits)
    told = [HitOut.of(hit, body.text) for hit in hits]
    results = Results(query_id=_show(access, body, hits, mine, other), epoch=mine, hits=told)
    return Response(results.model_dump_json(), media_type="application/json")


def _number(memory: Collection, named: int | str | None) -> int | None:
    """The number of an epoch, by its name."""
    if named is None or isinstance(named, int):
        return named
    if memory.candidate is None:
        raise InvalidInput("there is no candidate; keep a dry run's proposal as one first: POST …/candidate")
    return memory.candidate.number


def _interleave(mine: Team, theirs: Team, k: int) -> tuple[list[Hit], Other]:
    hits = interleave(mine, theirs, k, CHANCE)
    brought, both = (tuple(hit.id for hit in hits if hit.epoch == who) for who in (theirs.epoch, None))
    one, other = (tuple(hit.id for hit in team.hits[:PLACES]) for team in (mine, theirs))
    return hits, Other("interleaved", theirs.epoch, brought, both, (one, other))


def _show(access: Access, body: Search, hits: Sequence[Hit], epoch: int, other: Other | None) -> str | None:
    if not body.keep:
        return None
    _count(access, hits)
    if not access.service.options.keep_shown:
        return None
    other = other or _shadow(access, body)
    query_id = access.memory.show(body.query, hits, actor=access.actor(body.user), other=other, epoch=epoch)
    access.request.state.query_id = query_id
    return query_id


def _count(access: Access, hits: Sequence[Hit]) -> None:
    access.service.metrics.searches.labels(access.collection).inc()
    if not hits:
        access.service.metrics.empty.labels(access.collection).inc()


def _shadow(access: Access, body: Search) -> Other | None:
    """What an epoch finds that answers only to be recorded."""
    named, memory = access.service.options.shadow, access.memory
    if named is None or body.epoch is not None or body.vector is not None:
        return None
    if named == CANDIDATE and memory.candidate is None:
        return None
    shadow = _number(memory, named)
    found = memory.search(body.query, body.k, access.where(body.where), shadow)
    return Other("shadow", shadow or 0, tuple(hit.id for hit in found))


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
