"""Documents as resources: a list, page by page, and each text by its id."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ListResourcesResult, Resource

from evokey.errors import UnknownDocument
from evokey.mcp.caller import Door
from evokey.mcp.replies import SCHEME, uri_of
from evokey.serve.replies import Refusal

TEMPLATE = f"{SCHEME}{{id}}"
PAGE = 100
"""Documents of one page of the list."""


class Documents:
    def __init__(self, door: Door) -> None:
        self._door = door

    def read(self, id: str) -> str:
        """The whole text of a document, by the id before the # of a hit."""
        try:
            caller = self._door.enter("read")
            return caller.memory.get(id, caller.where(None)).text
        except UnknownDocument as error:
            raise ResourceNotFoundError(str(error)) from error
        except Refusal as refusal:
            raise ResourceError(str(refusal.detail)) from refusal

    async def list_pages(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answers resources/list, which the SDK itself can do for a fixed list alone."""
        if ctx.method != "resources/list":
            return await call_next(ctx)
        cursor = (ctx.params or {}).get("cursor") or "0"
        if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise MCPError(code=INVALID_PARAMS, message="a cursor is the nextCursor of the page before")
        try:
            return await anyio.to_thread.run_sync(self._page, int(cursor))
        except Refusal as refusal:
            raise MCPError(code=INVALID_PARAMS, message=str(refusal.detail)) from refusal

    def _page(self, after: int) -> ListResourcesResult:
        caller = self._door.enter("read")
        found = caller.memory.documents(after, PAGE, caller.where(None))
        resources = [
            Resource(uri=uri_of(one.id), name=one.id, title=one.title or None, mime_type="text/plain")
            for _, one in found
        ]
        return ListResourcesResult(resources=resources, next_cursor=str(found[-1][0]) if len(found) == PAGE else None)
