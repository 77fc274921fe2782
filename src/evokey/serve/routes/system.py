"""Health, metrics, keys and the audit log."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

import evokey
from evokey.serve.access import ServiceAdmin, admin_of, caller_of, service_of
from evokey.serve.keys import Act, Key
from evokey.serve.models import Fine, NewKey
from evokey.serve.replies import RESPONSES, Refusal

router = APIRouter(responses=RESPONSES)
KeyName = Annotated[str, Path(pattern="^[a-z0-9][a-z0-9.-]{0,62}$")]


class Whoami(BaseModel):
    name: str
    scopes: list[str]
    collections: list[str]
    actor: str
    filtered: bool
    auth: bool
    version: str


class Secret(BaseModel):
    key: str


class Keys(BaseModel):
    keys: list[dict[str, Any]]


class Acts(BaseModel):
    acts: list[dict[str, Any]]


@router.get("/health", tags=["system"])
def health() -> Fine:
    """The process answers."""
    return Fine()


@router.get("/ready", tags=["system"])
def ready(request: Request) -> Fine:
    """It takes requests; 503 while it ends."""
    if not service_of(request).ready:
        raise Refusal(503, "Ending", "the service is ending")
    return Fine()


@router.get(
    "/metrics", tags=["system"], response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}}
)
def metrics(request: Request) -> Response:
    """Counters for Prometheus; needs a key with the scope admin."""
    admin_of(request)
    service = service_of(request)
    return PlainTextResponse(service.metrics.render(service.collections.open_ones()), media_type="text/plain")


@router.get("/v1/whoami", tags=["system"])
def whoami(request: Request) -> Whoami:
    """What the key may do."""
    key, options = caller_of(request), service_of(request).options
    return Whoami(
        name=key.name, scopes=sorted(key.scopes), collections=list(key.collections), actor=key.actor,
        filtered=key.where is not None, auth=options.auth, version=evokey.__version__,
    )  # fmt: skip


@router.get("/v1/keys", tags=["keys"])
def keys(request: Request, key: ServiceAdmin) -> Keys:
    """All keys, without their secrets."""
    return Keys(keys=[one.to_dict() for one in service_of(request).keys.all()])


@router.post("/v1/keys", tags=["keys"], status_code=201)
def create_key(request: Request, body: NewKey, key: ServiceAdmin) -> Secret:
    """Make a key. It is told this once."""
    new = Key(
        body.name, frozenset(body.scopes), tuple(body.collections), body.actor, body.where, body.rate, body.expires
    )
    secret = service_of(request).keys.create(new)
    _audit(request, key, "create key")
    return Secret(key=secret)


@router.post("/v1/keys/{name}/rotate", tags=["keys"])
def rotate_key(request: Request, name: KeyName, key: ServiceAdmin) -> Secret:
    """A new secret; the old one works for a day more."""
    secret = service_of(request).keys.rotate(name)
    _audit(request, key, "rotate key")
    return Secret(key=secret)


@router.delete("/v1/keys/{name}", tags=["keys"])
def revoke_key(request: Request, name: KeyName, key: ServiceAdmin) -> Fine:
    """The key works no more, from now on."""
    service_of(request).keys.revoke(name)
    _audit(request, key, "revoke key")
    return Fine()


@router.get("/v1/audit", tags=["keys"])
def audit(request: Request, key: ServiceAdmin, count: Annotated[int, Query(ge=1, le=1_000)] = 100) -> Acts:
    """Who did what, the newest first."""
    return Acts(acts=[asdict(one) for one in service_of(request).keys.acts(count)])


def _audit(request: Request, key: Key, action: str) -> None:
    service_of(request).keys.audit(Act(0, 0.0, key.name or "no-auth", action, None))
