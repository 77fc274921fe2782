"""Who calls, and what that caller may do: every route under a collection begins here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Path, Request

from evokey import checks
from evokey.filters import And, Where
from evokey.serve.collections import Collection
from evokey.serve.keys import ALL, Act, Key
from evokey.serve.layers import LayerCollection
from evokey.serve.options import is_loopback
from evokey.serve.replies import Refusal
from evokey.serve.service import Service

OWNER = Key("", frozenset({"read", "teach", "teach-as", "admin"}), rate=1e6)
"""Everybody, where the service has no keys: it listens on this machine alone."""
IMPLIED = {"admin": {"read", "teach"}, "teach": {"read"}, "teach-as": {"read", "teach"}}
UNAUTHORIZED = {"WWW-Authenticate": "Bearer"}


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def caller_of(request: Request) -> Key:
    """The key of a request; it is refused where it has none, or comes from a page of another site."""
    service = service_of(request)
    check_origin(request, service.options.auth)
    if not service.options.auth:
        return OWNER
    said = _shown(request)
    key = service.keys.find(said) if said else None
    if key is None:
        raise Refusal(401, "NoKey", "show an API key: Authorization: Bearer evk_…", UNAUTHORIZED)
    request.state.key = key.name
    wait = service.pace.wait(key.name, key.rate)
    if wait:
        raise Refusal(429, "TooManyRequests", f"this key may make {key.rate:g} requests a second", _after(wait))
    return key


def _shown(request: Request) -> str:
    """The key that a request shows; empty: none."""
    kind, _, said = request.headers.get("authorization", "").partition(" ")
    return said.strip() if kind.lower() == "bearer" else ""


def check_origin(request: Request, auth: bool) -> None:
    """A page of another site must not use a browser's way to this service: neither by a form, nor by a name that it
    has made point to this machine."""
    host = request.headers.get("host", "")
    if not auth and not is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise Refusal(403, "WrongHost", "without keys, this service is called by a name of this machine: 127.0.0.1")
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Refusal(403, "OtherSite", "requests of pages from other sites are refused")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refusal(403, "OtherSite", "requests of pages from other sites are refused")
    if request.method in ("POST", "PUT", "DELETE", "PATCH") and not _is_json(request):
        raise Refusal(415, "NotJSON", "send the body as JSON, with Content-Type: application/json")


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (not kind and request.headers.get("content-length", "0") == "0")


def _after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, round(seconds)))}


@dataclass(frozen=True)
class Caller:
    """Somebody with a key in a collection, however the call came: what it may see, say and do."""

    service: Service
    key: Key
    collection: str
    memory: Collection

    def where(self, said: dict[str, Any] | None) -> Where | None:
        """The filter of a request together with the key's own."""
        if self.key.where is None:
            return said
        own = checks.filter(self.key.where)
        return own if said is None else And((own, checks.filter(said)))

    def actor(self, user: str | None) -> str | None:
        """Whose feedback it is: the key's, or one of its users'."""
        if user is None:
            return self.key.actor or None
        if "teach-as" not in self.key.scopes:
            raise Refusal(403, "NotAllowed", "to name a user, a key needs the scope teach-as")
        return f"{self.key.actor}/{user}" if self.key.actor else user

    def count_lessons(self, user: str | None, count: int = 1) -> None:
        """A user, and a key with all its users, may give so many lessons a day."""
        if self.key is not OWNER and not self.service.daily.take(self.key.name, user, count):
            raise Refusal(
                429, "TooManyLessons", "this actor has given all its lessons for today", {"Retry-After": "3600"}
            )

    def check_whole(self, what: str) -> None:
        """What changes or reads everything is not for a key with a filter."""
        if self.key.where is not None:
            raise Refusal(403, "NotAllowed", f"a key with a filter cannot {what}")

    def check_seen(self, names: list[str]) -> None:
        """A caller with a filter names no document outside it."""
        if self.key.where is not None:
            for name in names:
                document = name.rpartition("#")[0]
                opaque = isinstance(self.memory, LayerCollection)  # ids of another search, which has no passages
                exact = opaque or not document or self.memory.ledger.documents.has(name)  # as feedback reads it
                self.memory.get(name if exact else document, self.where(None))

    def audit(self, action: str) -> None:
        self.service.keys.audit(Act(0, 0.0, self.key.name or "no-auth", action, self.collection))


@dataclass(frozen=True)
class Access(Caller):
    """A caller by HTTP."""

    request: Request


def is_allowed(key: Key, scope: str) -> bool:
    return any(one == scope or scope in IMPLIED.get(one, ()) for one in key.scopes)


def require(scope: str, *, whole: bool = False) -> Callable[..., Awaitable[Access]]:
    """A dependency: a caller who has this scope in the collection that the path names. whole: and no filter, because
    the route tells of everybody's questions."""

    async def access(
        request: Request,
        collection: Annotated[str, Path(description="Name of the collection.", examples=["default"], max_length=63)],
    ) -> Access:
        service = service_of(request)
        known = not service.options.auth or service.keys.knows(_shown(request))
        if known and collection in service.collections.open_ones():
            return admit(request, collection)
        return await service.threads.admit(partial(admit, request, collection))

    def admit(request: Request, collection: str) -> Access:
        key, service = caller_of(request), service_of(request)
        check_scope(key, scope)
        if ALL not in key.collections and collection not in key.collections:
            raise Refusal(403, "NotAllowed", "this key has no access to this collection")
        if whole and key.where is not None:
            raise Refusal(403, "NotAllowed", "this tells of all documents and questions, and the key has a filter")
        memory = service.collections.get(collection)
        if memory is None:
            raise Refusal(404, "NotFound", "there is no such collection")
        request.state.collection = collection
        return Access(service, key, collection, memory, request)

    return access


def check_scope(key: Key, scope: str) -> None:
    if not is_allowed(key, scope):
        raise Refusal(403, "NotAllowed", f"this needs a key with the scope {scope}")


def admin_of(request: Request) -> Key:
    """The caller of a route that is about the whole service."""
    key = caller_of(request)
    check_scope(key, "admin")
    if ALL not in key.collections:
        raise Refusal(403, "NotAllowed", "this needs a key for all collections")
    return key


Reader = Annotated[Access, Depends(require("read"))]
Owner = Annotated[Access, Depends(require("read", whole=True))]
"""Reads what concerns everybody: lessons, epochs, questions."""
Teacher = Annotated[Access, Depends(require("teach"))]
Admin = Annotated[Access, Depends(require("admin", whole=True))]
ServiceAdmin = Annotated[Key, Depends(admin_of)]
