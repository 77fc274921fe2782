"""Insight, gaps, comparisons and alarms."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from evokey.inspect import comparison
from evokey.inspect.comparison import Comparison
from evokey.serve import insight as insight_
from evokey.serve.access import Owner
from evokey.serve.alarm import Alarm
from evokey.serve.insight import Insight
from evokey.serve.replies import RESPONSES
from evokey.types import Gap

router = APIRouter(prefix="/v1/collections/{collection}", responses=RESPONSES)
DAY = 86_400.0
Days = Annotated[float, Query(gt=0, le=7, description="Days to look back.")]


class Gaps(BaseModel):
    gaps: list[Gap]


class Comparisons(BaseModel):
    comparisons: list[Comparison]
    alarms: list[Alarm]


@router.get("/insight", tags=["insight"])
def insight(access: Owner, days: Days = 7) -> Insight:
    """What people ask and do not find, what is worth teaching, and how well the memory does."""
    return insight_.report(access.memory, time.time() - days * DAY)


@router.get("/gaps", tags=["insight"])
def gaps(access: Owner) -> Gaps:
    """Questions that the documents do not answer, by votes with the reason "not in the documents"."""
    return Gaps(gaps=access.memory.gaps())


@router.get("/comparisons", tags=["insight"])
def comparisons(access: Owner, days: Days = 7) -> Comparisons:
    """Epochs compared by clicks and upvotes, and alarms after an epoch."""
    memory, since = access.memory, time.time() - days * DAY
    shown = [one for one in memory.shown(since) if one.other is not None]
    found = comparison.compare(shown, memory.clicks(), memory.ratings(since))
    return Comparisons(comparisons=found, alarms=access.service.learning.alarms(access.collection))
