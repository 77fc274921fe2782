"""A small hub on this machine: a real HTTP server that answers as the hub does about the files it is given.

    with Hub({"BeIR/tiny": {"queries.jsonl.gz": b"…"}}) as hub:
        ... HF_ENDPOINT=hub.url ...

It serves what `snapshot_download` asks for: a repository's revision, its tree, and its files. `fetched` counts files.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
Repositories = Mapping[str, Mapping[str, bytes]]


class Hub:
    def __init__(self, repositories: Repositories) -> None:
        self.fetched: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(repositories))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, repositories: Repositories) -> type[BaseHTTPRequestHandler]:
        fetched = self.fetched

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer(body=False)

            def do_GET(self) -> None:
                self._answer(body=True)

            def log_message(self, *_: Any) -> None:
                pass

            def _answer(self, body: bool) -> None:
                parts = unquote(urlsplit(self.path).path).strip("/").removeprefix("api/").split("/")
                name, rest = "/".join(parts[1:3]), parts[3:]
                files = repositories.get(name)
                if parts[0] != "datasets" or files is None:
                    self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)
                elif rest[0] == "revision":
                    about = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": path} for path in files]}
                    self._send(200, json.dumps(about).encode(), {}, body)
                elif rest[0] == "tree":
                    self._send(200, json.dumps([_entry(path, data) for path, data in files.items()]).encode(), {}, body)
                else:
                    data = files["/".join(rest[2:])]
                    if body:
                        fetched.append(f"{name}/{'/'.join(rest[2:])}")
                    self._send(200, data, {"ETag": f'"{_sha1(data)}"', "X-Repo-Commit": COMMIT}, body)

            def _send(self, status: int, data: bytes, headers: Mapping[str, str], body: bool) -> None:
                self.send_response(status)
                for header, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(header, value)
                self.end_headers()
                if body:
                    self.wfile.write(data)

        return Handler


def _entry(path: str, data: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(data), "oid": _sha1(data)}


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()
