"""Errors as HTTP answers: one form for all of them, with nothing in it that a caller may not know."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from evokey import errors

log = logging.getLogger("evokey.serve")
STATUS: dict[type[Exception], int] = {
    errors.InvalidInput: 422,
    errors.UnknownDocument: 404,
    errors.UnknownResult: 404,
    errors.InvalidSettings: 409,
    errors.BudgetSpent: 503,
    errors.ServiceFailed: 502,
    errors.ExpansionFailed: 502,
    errors.MemoryBusy: 503,
    errors.MemoryClosed: 503,
    errors.StorageFailed: 507,
}
"""The status of an error and of those below it, the nearest first; of others 500."""
WORDS = {401: "NoKey", 403: "NotAllowed", 404: "NotFound", 405: "MethodNotAllowed", 409: "Conflict", 415: "NotJSON"}


class Error(BaseModel):
    error: str = Field(description="What kind of error it is.", examples=["UnknownDocument"])
    message: str = Field(
        description="What is wrong, the rule, and what to do.", examples=["no document has the id 'x'"]
    )


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": text}
    for status, text in {
        400: "The request is no valid JSON.",
        401: "No key, or one that is unknown, expired or revoked.",
        403: "The key may not do this, or not in this collection; or the request comes from another site.",
        404: "There is no such thing.",
        408: "The request arrived too slowly.",
        409: "The memory's settings do not allow it; for example, it has no language model.",
        413: "The request is too large.",
        415: "The body is not application/json.",
        422: "A value cannot be taken.",
        429: "Too many requests, or lessons, of this key.",
        502: "A model or service that was asked failed.",
        503: "Busy, or it took too long; try again.",
        507: "The disk is full or refuses.",
    }.items()
}


class Refusal(HTTPException):
    """An answer that is an error, by its name."""

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.kind = kind


def error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    readable = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": kind, "message": readable}, status, headers)


def status_of(caught: Exception) -> int:
    return next((STATUS[kind] for kind in type(caught).__mro__ if kind in STATUS), 500)


def install(app: FastAPI, hidden: str) -> None:
    """hidden: a path of this machine that no message tells."""

    @app.exception_handler(errors.EvokeyError)
    async def ours(request: Request, caught: errors.EvokeyError) -> JSONResponse:
        status = status_of(caught)
        if status == 500:
            log.error("failed", exc_info=caught)
            return error(500, "Failed", "the service failed; its log says more")
        wait = {"Retry-After": "1"} if status == 503 else None
        return error(status, type(caught).__name__, str(caught).replace(hidden, "…"), wait)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, caught: RequestValidationError) -> JSONResponse:
        said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in caught.errors()[:5]]
        bad_json = any(one["type"] == "json_invalid" for one in caught.errors())
        return error(400 if bad_json else 422, "InvalidInput", "; ".join(said)[:2000])

    @app.exception_handler(HTTPException)
    async def refused(request: Request, caught: HTTPException) -> JSONResponse:
        kind = getattr(caught, "kind", WORDS.get(caught.status_code, "InvalidInput"))
        return error(caught.status_code, kind, str(caught.detail), dict(caught.headers or {}))

    @app.exception_handler(Exception)
    async def failed(request: Request, caught: Exception) -> JSONResponse:
        return error(500, "Failed", "the service failed; its log says more")
