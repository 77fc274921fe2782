"""The MCP server, put together: tools, resources and who may use them."""

from __future__ import annotations

from dataclasses import replace

from mcp.server import MCPServer
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp_types import Tool
from pydantic import AnyHttpUrl

import evokey
from evokey.mcp.caller import Door, KeyVerifier
from evokey.mcp.documents import TEMPLATE, Documents
from evokey.mcp.tools import KINDS, Tools, report_errors
from evokey.memory import Memory
from evokey.serve.access import OWNER, is_allowed
from evokey.serve.collections import ONLY
from evokey.serve.keys import Key
from evokey.serve.service import Service

INSTRUCTIONS = """A memory of documents whose search learns from what is used.
1. Before you answer, call search with the user's question in the user's words.
2. Answer from the hits, and cite their ids.
3. Then call used with the query_id and the ids that your answer rests on. It is one short call.
4. If you had to reword the question to find the answer, call teach with the rewordings as units."""


class Server(MCPServer):
    """Shows a caller the tools that it may call."""

    door: Door

    async def list_tools(self) -> list[Tool]:
        key, memory = self.door.key(), self.door.service.collections.get(ONLY)
        speaks = isinstance(memory, Memory) and (
            memory.settings.llm is not None or memory.settings.generator["name"] != "cited"
        )
        return [
            tool
            for tool in await super().list_tools()
            if is_allowed(key, KINDS[tool.name].scope) and (speaks or tool.name != "ask")
        ]


def build(service: Service, user: Key | None = None) -> Server:
    """user: who calls where no keys are asked for; the owner, unless said otherwise."""
    door = Door(service, user or OWNER)
    documents, tools = Documents(door), Tools(door)
    server = Server(
        "evokey", title="evokey", instructions=INSTRUCTIONS, version=evokey.__version__, log_level="WARNING",
        auth=_auth(service), token_verifier=KeyVerifier(service) if service.options.auth else None,
        middleware=[documents.list_pages],
    )  # fmt: skip
    server.door = door
    for name, kind in KINDS.items():
        call = report_errors(getattr(tools, name), str(service.options.folder))
        server.add_tool(call, name, annotations=kind.hints, structured_output=True)
    ids_are_no_paths = ResourceSecurity(exempt_params={"id"})
    server.resource(TEMPLATE, name="document", mime_type="text/plain", security=ids_are_no_paths)(documents.read)
    return server


def _auth(service: Service) -> AuthSettings | None:
    """Bearer tokens that no OAuth server issues: `evokey api-keys` does."""
    if not service.options.auth:
        return None
    here = AnyHttpUrl(f"http://{service.options.host}:{service.options.port}")
    return AuthSettings(issuer_url=here, resource_server_url=None)


def name_user(scopes: list[str], actor: str) -> Key:
    """The user of this process, with some of the scopes."""
    return replace(OWNER, scopes=frozenset(scopes), actor=actor)
