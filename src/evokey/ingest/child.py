"""Readers that libraries stand behind run in a process of their own: what a broken or hostile file does there, a crash,
an endless loop or gigabytes of memory, ends that process and is an error that names the file.

One process reads many files. It is started with the first, and again after one that ended it. It answers in JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from evokey.errors import InvalidDocument
from evokey.ingest.content import Content

SECONDS = 60.0
"""For one file."""
MEMORY = 2_000_000_000
"""Bytes of memory that reading one file may take, where the operating system can bound that."""
LONGEST_ANSWER = 200_000_000
SIZE = 8


class ChildReader:
    """Use as a context manager, or close it."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, kind: str) -> Content:
        process = self._start()
        timer = threading.Timer(self.seconds, process.kill)
        timer.start()
        try:
            answer = _ask(process, {"path": str(path), "kind": kind})
        finally:
            timer.cancel()
        if answer is None:
            self.close()
            raise InvalidDocument(
                f"{path} cannot be read as {kind}: its reader ended (exit code {process.returncode}); a file gets at "
                f"most {self.seconds:g} seconds and {self.memory / 1e9:g} GB of memory. Convert it, or move it away"
            )
        if "error" in answer:
            raise InvalidDocument(f"{path} cannot be read as {kind}: {answer['error']}")
        return Content.from_dict(answer["content"])

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "evokey.ingest.child", str(self.memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _ask(process: subprocess.Popen[bytes], question: dict[str, str]) -> Any:
    """None: the process ended before it had answered."""
    assert process.stdin is not None and process.stdout is not None
    try:
        _send(process.stdin, question)
        return _receive(process.stdout)
    except (OSError, ValueError):
        return None


def _send(pipe: IO[bytes], value: Any) -> None:
    told = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    pipe.write(len(told).to_bytes(SIZE, "little") + told)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """None at the end of the pipe."""
    size = int.from_bytes(pipe.read(SIZE), "little")
    if not 0 < size <= LONGEST_ANSWER:
        return None
    told = pipe.read(size)
    return json.loads(told) if len(told) == size else None


def _bound_memory(most: int) -> None:
    """On top of what the process has now."""
    with suppress(ImportError, OSError, ValueError, FileNotFoundError):
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(question: dict[str, str]) -> dict[str, Any]:
    from importlib import import_module

    reader = import_module(f"evokey.ingest.readers.{question['kind']}")
    path = Path(question["path"])
    try:
        return {"content": reader.read(path.read_bytes(), path).to_dict()}
    except Exception as error:  # noqa: BLE001 - on a broken file a library may raise anything
        said = " ".join(str(error).split())[:300]
        return {"error": f"{type(error).__name__}: {said}" if said else type(error).__name__}


def main() -> None:
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    bounded = False
    while (question := _receive(questions)) is not None:
        if not bounded:
            _bound_memory(int(sys.argv[1]))
            bounded = True
        _send(answers, _answer(question))


if __name__ == "__main__":
    main()
