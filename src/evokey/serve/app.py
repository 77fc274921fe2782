"""The application: routes, limits, logs and the console, around one running service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

import evokey
from evokey.serve import replies
from evokey.serve.headers import Hardened
from evokey.serve.limits import BoundedBodies
from evokey.serve.logs import Requests
from evokey.serve.options import Options
from evokey.serve.routes import documents, evolving, insight, search, system, teaching
from evokey.serve.service import Service

DESCRIPTION = """An index that learns. Search, rate or teach; evolve learns from that, and publishes only what helps.

Every request has `Authorization: Bearer evk_…`. A key has scopes (read, teach, teach-as, admin) and collections."""


def build(options: Options) -> FastAPI:
    """An application that opens its memories when it starts, and closes them when it ends."""
    service = Service.build(options)
    app = FastAPI(
        title="evokey", version=evokey.__version__, description=DESCRIPTION, lifespan=_lifespan,
        docs_url=None, redoc_url=None, generate_unique_id_function=_operation,
    )  # fmt: skip
    app.state.service = service
    replies.install(app, str(options.folder))
    for part in (system, documents, search, teaching, evolving, insight):
        app.include_router(part.router)
    _serve_console(app)
    app.add_middleware(BoundedBodies, limits=options.limits)
    app.add_middleware(Hardened)
    app.add_middleware(Requests, metrics=service.metrics)
    return app


def _operation(route: APIRoute) -> str:
    return route.name


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    await run_in_threadpool(service.start)
    try:
        yield
    finally:
        await run_in_threadpool(service.stop)


def _serve_console(app: FastAPI) -> None:
    folder = Path(str(resources.files("evokey.serve"))) / "console"

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(folder / "index.html")

    app.mount("/console", StaticFiles(directory=folder), name="console")
