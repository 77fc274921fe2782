"""Feedback, lessons, protected queries, and questions to people."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from evokey.serve.access import Access, Admin, Owner, Teacher
from evokey.serve.models import Counted, Feedback, Fine, Learn, Lessons, ManyFeedback, Protect, Review
from evokey.serve.replies import RESPONSES

router = APIRouter(prefix="/v1/collections/{collection}", responses=RESPONSES)


class LessonsOut(BaseModel):
    lessons: list[dict[str, Any]]


class Protected(BaseModel):
    protected: dict[str, dict[str, float]]


class Question(BaseModel):
    id: int
    query: str
    answer: str | None
    documents: list[dict[str, Any]]
    cites: list[str]
    expected: list[str]
    time: float


class Questions(BaseModel):
    questions: list[Question]


class Learned(BaseModel):
    report: dict[str, Any]


@router.post("/feedback", tags=["teaching"], status_code=201)
def feedback(body: Feedback, access: Teacher) -> LessonsOut:
    """Which documents were right or wrong for a query. The next evolve learns from it."""
    return _teach(access, [body])


@router.post("/feedback/batch", tags=["teaching"], status_code=201)
def feedback_many(body: ManyFeedback, access: Teacher) -> LessonsOut:
    """Many verdicts at once: all are recorded, or none."""
    return _teach(access, body.lessons)


def _teach(access: Access, said: list[Feedback]) -> LessonsOut:
    for one in said:
        access.check_seen([*one.relevant, *one.irrelevant])
        access.count_lessons(one.user)
    lessons = [
        {
            "query": one.query, "relevant": one.relevant, "irrelevant": one.irrelevant, "units": one.units,
            "actor": access.actor(one.user), "vector": one.vector,
        }
        for one in said
    ]  # fmt: skip
    taught = access.memory.feedback_many(lessons)
    access.audit(f"feedback {len(taught)}")
    return LessonsOut(lessons=[one.to_dict() for one in taught])


@router.post("/learn", tags=["teaching"])
def learn(body: Learn, access: Teacher) -> Learned:
    """Expand, search, answer, verify; what was verified becomes a lesson."""
    access.check_whole("learn")
    access.count_lessons(body.user)
    report = access.memory.learn(body.query, body.expected or None, body.relevant, access.actor(body.user))
    return Learned(report=report.to_dict())


@router.get("/lessons", tags=["teaching"])
def lessons(
    access: Owner,
    query: Annotated[str | None, Query(min_length=1, max_length=10_000)] = None,
    actor: Annotated[str | None, Query(min_length=1, max_length=1_000)] = None,
    document: Annotated[str | None, Query(min_length=1, max_length=4_096)] = None,
    held: bool | None = None,
    count: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> LessonsOut:
    """The newest lessons that meet every condition, the newest first."""
    found = access.memory.lessons(query, actor, document, held=held)
    return LessonsOut(lessons=[one.to_dict() for one in reversed(found[-count:])])


@router.post("/lessons/hold", tags=["teaching"])
def hold(body: Lessons, access: Admin) -> Counted:
    """Put lessons on hold: from the next evolve on they take part in nothing."""
    access.audit("hold lessons")
    return Counted(count=access.memory.hold(body.lessons))


@router.post("/lessons/release", tags=["teaching"])
def release(body: Lessons, access: Admin) -> Counted:
    """Let lessons take part again."""
    access.audit("release lessons")
    return Counted(count=access.memory.release(body.lessons))


@router.post("/protect", tags=["teaching"])
def protect(body: Protect, access: Admin) -> Fine:
    """No epoch is published in which these documents rank worse for the query than in the untaught index."""
    access.memory.protect(body.query, body.relevant)
    access.audit("protect")
    return Fine()


@router.get("/protected", tags=["teaching"])
def protected(access: Owner) -> Protected:
    """Protected queries with their documents and grades."""
    return Protected(protected={query: dict(grades) for query, grades in access.memory.protected_queries().items()})


# ---- questions to people


@router.get("/reviews", tags=["reviews"])
def reviews(access: Owner) -> Questions:
    """What waits for a person, oldest first."""
    found = access.memory.reviews().pending()[:100]
    return Questions(questions=[_question(one) for one in found])


def _question(one: Any) -> Question:
    documents = [{"id": doc.id, "title": doc.title, "text": doc.text[:2_000]} for doc in one.documents]
    told = {"cites": list(one.cites), "expected": list(one.expected), "time": one.time}
    return Question(id=one.id, query=one.query, answer=one.answer, documents=documents, **told)


@router.post("/reviews/{id}", tags=["reviews"])
def answer(id: Annotated[int, Path(ge=1, le=2**62)], body: Review, access: Teacher) -> Fine:
    """A person's word: which of the shown documents were right, and which wrong. It becomes a lesson at once."""
    access.check_whole("answer a review")
    queue, actor = access.memory.reviews(), access.actor(body.user)
    question = queue.question(id)
    if body.skip:
        queue.skip(id)
        return Fine()
    access.count_lessons(body.user)
    grades = {**dict.fromkeys(body.right, 1.0), **dict.fromkeys(body.wrong, -1.0)}
    queue.answer(id, bool(body.right), grades, actor=actor)
    if grades:
        access.memory.feedback(question.query, body.right, body.wrong, actor=actor)
    access.audit("review")
    return Fine()
