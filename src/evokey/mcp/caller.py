"""Who calls a tool, and what that caller may do: by an API key over HTTP, or as the user of this process over stdio."""

from __future__ import annotations

from dataclasses import dataclass

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken

from evokey.errors import MemoryClosed
from evokey.serve.access import Caller, check_scope
from evokey.serve.collections import ONLY
from evokey.serve.keys import ALL, Key
from evokey.serve.replies import Refusal
from evokey.serve.service import Service


@dataclass(frozen=True)
class Door:
    """Finds the caller of a request."""

    service: Service
    user: Key
    """Who calls where the server asks for no keys."""

    def key(self) -> Key:
        """The key of this request. It is looked up each time, so that a revoked key ends at once."""
        if not self.service.options.auth:
            return self.user
        shown = get_access_token()
        key = None if shown is None else self.service.keys.find(shown.token)
        if key is None:
            raise Refusal(401, "NoKey", "show an API key: Authorization: Bearer evk_…")
        if ALL not in key.collections and ONLY not in key.collections:
            raise Refusal(403, "NotAllowed", "this key has no access to this memory")
        return key

    def enter(self, scope: str, *, whole: bool = False) -> Caller:
        """A caller with this scope; whole: and without a filter."""
        key = self.key()
        check_scope(key, scope)
        wait = self.service.pace.wait(key.name, key.rate)
        if wait:
            raise Refusal(429, "TooManyRequests", f"too many calls; wait {max(wait, 0.1):.1f} s, then call again")
        memory = self.service.collections.get(ONLY)
        if memory is None:
            raise MemoryClosed("the server is ending")
        caller = Caller(self.service, key, ONLY, memory)
        if whole:
            caller.check_whole("do this: it concerns all documents")
        return caller


@dataclass(frozen=True)
class KeyVerifier:
    """API keys as the bearer tokens of MCP."""

    service: Service

    async def verify_token(self, token: str) -> AccessToken | None:
        key = self.service.keys.find(token)
        return None if key is None else AccessToken(token=token, client_id=key.name, scopes=sorted(key.scopes))
