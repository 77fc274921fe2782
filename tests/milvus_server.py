"""A real Milvus server (the package milvus), in a process group of its own: started, killed and stopped by tests.

Its etcd has a fixed port, so that a machine runs one at a time: tests wait for each other.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock
from pymilvus import MilvusClient, MilvusException

SECONDS = 120.0
"""Until it answers."""
COMMAND = Path(sys.executable).with_name("milvus-server")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class MilvusProcess:
    """Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._alone = FileLock(Path(tempfile.gettempdir()) / "evokey-milvus-server.lock", timeout=10 * SECONDS)
        self.uri = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [str(COMMAND), "--data", str(self._folder), "--proxy-port", str(self._port)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        deadline = time.monotonic() + SECONDS
        while not self._answers():
            assert self._process.poll() is None, "the server ended by itself"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.5)

    def _answers(self) -> bool:
        try:
            client = MilvusClient(self.uri, timeout=2)
            client.list_collections(timeout=2)
            client.close()
        except MilvusException:
            return False
        return True

    def kill(self) -> None:
        """As a machine that goes down: nothing is said, nothing is written."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> Self:
        self._alone.acquire()
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        self._alone.release()
