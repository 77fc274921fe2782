"""The process of a background learner, seen from this one; and how the two talk: pickles, with their lengths before."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from evokey.postgres.address import Address


@dataclass
class Thinker:
    """The other process: it opens the memory, and answers what it is asked."""

    place: Path | Address
    """Of the memory. It is told by the pipe: arguments of a process are seen by everybody on the machine."""
    allow: Sequence[str] = ()
    """What its opening may reach: the same that was allowed here."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def ask(self, what: str, *arguments: Any) -> Any:
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        send(process.stdin, (what, arguments))
        done, value = receive(process.stdout)
        if not done:
            raise RuntimeError(value)
        return value

    def stop(self) -> None:
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError, ValueError):  # half a message may be on its way
                    pipe.close() if pipe is not None else None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._stopped:
            raise EOFError("stopped")
        if self._process is None:
            command = [sys.executable, "-m", "evokey.loop.thinker"]
            source = str(Path(__file__).parents[2])
            path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
            )
            assert self._process.stdin is not None
            send(self._process.stdin, (self.place, list(self.allow)))
        return self._process


def send(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("the other process has ended")
    data = pipe.read(*struct.unpack("<Q", head))
    return pickle.loads(data)
