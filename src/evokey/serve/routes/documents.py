"""Collections and documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from evokey.serve.access import Admin, Owner, Reader, ServiceAdmin, Teacher, caller_of, service_of
from evokey.serve.keys import ALL
from evokey.serve.models import AddDocuments, Counted, DocumentOut, Id, NewCollection, Number
from evokey.serve.replies import RESPONSES
from evokey.types import Document, Stats

router = APIRouter(prefix="/v1", responses=RESPONSES)
PAGE = 500
"""Documents that an export reads at once."""


class Collections(BaseModel):
    collections: list[str]
    layers: list[str] = Field(description="Those that learn beside another search, and have no documents.")


class Page(BaseModel):
    documents: list[DocumentOut]
    next: int | None


@router.get("/collections", tags=["collections"])
def list_collections(request: Request) -> Collections:
    """The collections that the key may use."""
    key, known = caller_of(request), service_of(request).collections
    names = [one for one in known.names() if ALL in key.collections or one in key.collections]
    return Collections(collections=names, layers=[one for one in known.layers() if one in names])


@router.post("/collections", tags=["collections"], status_code=201)
def create_collection(request: Request, body: NewCollection, key: ServiceAdmin) -> Collections:
    """Make an empty collection. Other settings are for the owner of the machine: evokey init."""
    encoders: list[Any] = [
        {"name": "bm25", "language": body.language} if one == "bm25" and body.language else one
        for one in dict.fromkeys(body.encoder)
    ]
    more = {} if body.restricted is None else {"restricted": body.restricted}
    service_of(request).collections.create(body.name, {"encoder": encoders, **more})
    return Collections(collections=[body.name], layers=[])


@router.post("/collections/{collection}/documents", tags=["documents"], status_code=201)
def add(body: AddDocuments, access: Teacher) -> Counted:
    """Insert documents, or replace those with the same id: all of them, or none."""
    access.check_whole("add documents")
    count = access.memory.add([one.model_dump() for one in body.documents], body.vectors)
    access.audit(f"add {count} documents")
    return Counted(count=count)


@router.get("/collections/{collection}/documents", tags=["documents"])
def browse(
    access: Reader,
    after: Annotated[Number, Query(description="The `next` of the page before.")] = 0,
    count: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Page:
    """A page of the documents, in the order they came; texts are cut after 300 characters."""
    found = access.memory.documents(after, count, access.where(None))
    last = found[-1][0] if len(found) == count else None
    return Page(documents=[_document(one, number, 300) for number, one in found], next=last)


@router.get("/collections/{collection}/document", tags=["documents"])
def read(access: Reader, id: Annotated[Id, Query(examples=["install.md"])]) -> DocumentOut:
    """A whole document."""
    return _document(access.memory.get(id, access.where(None)))


@router.delete("/collections/{collection}/document", tags=["documents"])
def delete(access: Admin, id: Annotated[Id, Query(examples=["install.md"])]) -> Counted:
    """Remove a document. What it was taught waits, in case it comes back."""
    count = access.memory.delete([id])
    access.audit("delete document")
    return Counted(count=count)


@router.get("/collections/{collection}/stats", tags=["collections"])
def stats(access: Reader) -> Stats:
    """What the memory holds."""
    return access.memory.stats(access.where(None))


@router.get(
    "/collections/{collection}/export",
    tags=["documents"],
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {}}, "description": "One JSON object a line."}},
)
def export(access: Owner, what: Literal["documents", "lessons"] = "documents") -> StreamingResponse:
    """Everything, line by line, as evokey add and evokey feedback --file read it."""
    access.audit(f"export {what}")
    lines = _documents(access) if what == "documents" else (one.to_dict() for one in access.memory.lessons())
    written = (f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    return StreamingResponse(written, media_type="application/jsonl")


def _documents(access: Owner) -> Iterator[dict[str, Any]]:
    after = 0
    while page := access.memory.documents(after, PAGE):
        yield from (asdict(one) for _, one in page)
        after = page[-1][0]


def _document(one: Document, number: int | None = None, cut: int | None = None) -> DocumentOut:
    sections = [] if cut else [asdict(section) for section in one.sections]
    return DocumentOut(
        number=number, id=one.id, title=one.title, text=one.text[:cut], metadata=dict(one.metadata), sections=sections
    )
