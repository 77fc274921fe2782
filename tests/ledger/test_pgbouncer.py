"""A memory behind PgBouncer, which gives every transaction another session."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from conftest import ranking
from postgres_server import Server

import evokey

CONFIGURATION = """
[databases]
postgres = host={folder} dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_idle_timeout = 5
logfile = {log}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """For a user who is not root."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.fixture
def bouncer(server: Server, folder: Path) -> Iterator[str]:
    """The URL of the server behind PgBouncer in transaction mode."""
    if shutil.which("pgbouncer") is None:
        pytest.skip("SKIPPED FOR WANT OF A PROGRAM: pgbouncer is not a Python package; apt install pgbouncer")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    file, log = folder / "pgbouncer.ini", folder / "pgbouncer.log"
    file.write_text(CONFIGURATION.format(folder=server.folder, port=port, log=log))
    user = ["-u", "pgserver"] if os.geteuid() == 0 else []  # as root it refuses to run
    process = subprocess.Popen([shutil.which("pgbouncer") or "", *user, str(file)], stderr=subprocess.DEVNULL)
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        for _ in range(100):
            try:
                psycopg.connect(url).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def test_a_memory_learns_forgets_and_follows_behind_pgbouncer(
    bouncer: str, server: Server, commands: list[evokey.Document]
) -> None:
    name = server.fresh_name()
    with evokey.open(bouncer, name=name) as memory, evokey.open(bouncer, name=name) as other:
        memory.add(commands)
        memory.feedback("my colleague broke everything", relevant=["git-revert"], actor="ada")
        memory.feedback("who wrote this line", relevant=["git-blame"], irrelevant=["git-log"])
        assert memory.evolve().published
        wanted = ranking(memory, "my colleague broke everything")
        deadline = time.monotonic() + 20
        while other.search("x") and other.epoch != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ranking(other, "my colleague broke everything") == wanted
        assert ranking(other, "tree", where={"tool": "git"}) == ranking(memory, "tree", where={"tool": "git"})
        assert other.forget(actor="ada").erased
        assert memory.lessons(actor="ada") == []
    with evokey.open(server.url, name=name) as direct:
        assert direct.search("who wrote this line", 1)[0].id == "git-blame"
