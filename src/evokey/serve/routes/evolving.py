"""Evolving, time travel and forgetting."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from evokey.errors import InvalidInput
from evokey.memory import Memory
from evokey.serve.access import Access, Admin, Owner, Reader
from evokey.serve.models import Evolve, Fine, Forget, JobOut, Number, Rollback, Stage
from evokey.serve.replies import RESPONSES, Refusal
from evokey.types import Candidate, Epoch, EpochDiff, Forgotten

router = APIRouter(prefix="/v1/collections/{collection}", responses=RESPONSES)
NAMED = 50
"""Queries that a preview of a forget names."""


class EpochOut(BaseModel):
    number: int
    kind: str
    time: float
    lessons_to: int
    redacted: bool
    report: dict[str, Any]


class Epochs(BaseModel):
    epochs: list[EpochOut]


class Jobs(BaseModel):
    jobs: list[JobOut]


class ForgetPreview(BaseModel):
    lessons: int
    queries: list[str]
    documents: list[str]


class Forgot(BaseModel):
    forgotten: Forgotten | None
    preview: ForgetPreview | None


@router.post("/evolve", tags=["evolving"], status_code=202)
def evolve(body: Evolve, access: Admin) -> JobOut:
    """Learn from the lessons: a job, which publishes a new epoch if that improves held-out questions."""
    job = access.service.jobs.start(access.collection, access.memory, dry_run=body.dry_run)
    access.audit("evolve, dry run" if body.dry_run else "evolve")
    return JobOut(**job.to_dict())


@router.get("/jobs", tags=["evolving"])
def jobs(access: Owner) -> Jobs:
    """The newest first."""
    return Jobs(jobs=[JobOut(**one.to_dict()) for one in access.service.jobs.all(access.collection)])


@router.get("/jobs/{id}", tags=["evolving"])
def job(id: str, access: Owner) -> JobOut:
    found = access.service.jobs.get(access.collection, id)
    if found is None:
        raise Refusal(404, "NotFound", "there is no such job; the newest 100 are remembered")
    return JobOut(**found.to_dict())


# ---- the candidate: a proposal that is compared before it is published


class CandidateOut(BaseModel):
    number: int = Field(description="Below 0; comparisons name it so.")
    after: int = Field(description="The epoch that it would follow.")
    time: float
    lessons: int
    report: dict[str, Any]

    @classmethod
    def of(cls, one: Candidate) -> CandidateOut:
        return cls(
            number=one.number, after=one.after, time=one.time, lessons=one.lessons, report=one.report.to_dict()
        )  # fmt: skip


class Candidates(BaseModel):
    candidate: CandidateOut | None


class Published(BaseModel):
    report: dict[str, Any]


@router.post("/candidate", tags=["candidate"], status_code=201)
def stage(body: Stage, access: Admin) -> Candidates:
    """Keep what a dry run proposed as the candidate: search it with `epoch` or `compare` = candidate."""
    draft = access.service.jobs.take_draft(access.collection, body.job)
    staged = access.memory.stage(draft) if draft is not None and isinstance(access.memory, Memory) else None
    if staged is None:
        raise Refusal(409, "Conflict", "this is not the last dry run, or it no longer holds; evolve with dry_run again")
    access.audit("stage candidate")
    return Candidates(candidate=CandidateOut.of(staged))


@router.get("/candidate", tags=["candidate"])
def candidate(access: Owner) -> Candidates:
    """The proposal that is compared now, if any."""
    known = access.memory.candidate
    return Candidates(candidate=None if known is None else CandidateOut.of(known))


@router.post("/candidate/publish", tags=["candidate"])
def publish_candidate(access: Admin) -> Published:
    """Publish the candidate as it was compared, whatever lessons came since."""
    report = access.memory.publish_candidate() if isinstance(access.memory, Memory) else None
    if report is None:
        raise Refusal(409, "Conflict", "there is no candidate, or it no longer holds; evolve with dry_run again")
    access.audit("publish candidate")
    return Published(report=report.to_dict())


@router.delete("/candidate", tags=["candidate"])
def drop_candidate(access: Admin) -> Fine:
    """Compare it no longer."""
    if isinstance(access.memory, Memory):
        access.memory.drop_candidate()
    access.audit("drop candidate")
    return Fine()


@router.get("/epochs", tags=["evolving"])
def epochs(access: Owner) -> Epochs:
    """All states of what was learned, the untaught one (0) first."""
    return Epochs(epochs=[_epoch(one) for one in access.memory.epochs()])


def _epoch(one: Epoch) -> EpochOut:
    return EpochOut(
        number=one.number, kind=one.kind, time=one.time, lessons_to=one.lessons_to, redacted=one.redacted,
        report=dict(one.report),
    )  # fmt: skip


@router.get("/diff", tags=["evolving"])
def diff(
    access: Reader,
    a: Annotated[Number, Query(description="The epoch before.")],
    b: Annotated[Number, Query(description="The epoch after.")],
) -> EpochDiff:
    """What changed from epoch a to epoch b: documents by what they were taught, queries by what they find."""
    return access.memory.diff(a, b, access.where(None))


@router.post("/rollback", tags=["evolving"])
def rollback(body: Rollback, access: Admin) -> EpochOut:
    """Publish again what an older epoch had learned, as a new epoch."""
    new = access.memory.rollback(body.epoch)
    access.audit(f"rollback to {body.epoch}")
    return _epoch(new)


@router.post("/forget", tags=["evolving"])
def forget(body: Forget, access: Admin) -> Forgot:
    """Erase lessons and everything learned from them; `preview` only tells what would go."""
    if body.query is body.actor is body.document is None and not body.traffic:
        raise InvalidInput("name what to forget: query, actor, document or traffic")
    if body.preview:
        return Forgot(forgotten=None, preview=_preview(body, access))
    done = access.memory.forget(body.query, body.actor, body.document, body.traffic)
    access.audit("forget")
    return Forgot(forgotten=Forgotten(**asdict(done)), preview=None)


def _preview(body: Forget, access: Access) -> ForgetPreview:
    wanted = (body.query, body.actor, body.document)
    found = access.memory.lessons(*wanted) if any(one is not None for one in wanted) else []
    queries = list(dict.fromkeys(one.query for one in found))
    documents = sorted({verdict.document for one in found for verdict in one.verdicts})
    return ForgetPreview(lessons=len(found), queries=queries[:NAMED], documents=documents[:NAMED])
