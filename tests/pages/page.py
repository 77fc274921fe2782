"""Run the code blocks of a page, from top to bottom, as a reader would: in one folder, in one session.

    python page.py PAGE FOLDER [--before FILE] [--port N] [--skip-install]

Blocks of Python share one namespace, and print what their comments say. Lines of sh blocks run one by one; a server
goes on in the background until the next one, or until the page is over. Settings (toml) and json are read. --before is
run first: what the page's reader has already. The standard library alone is needed: the same file runs pages in an
empty environment (benchmarks/newcomer.py).

A command that prints an API key sets $KEY, and key in Python. Blocks of text are output or figures and are not run; any
other block that is not run has a line <!-- not run: REASON --> before it. A line <!-- NAME.py --> or
<!-- NAME.toml --> says that the reader saves the block as that file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"(?:<!-- not run: (?P<reason>[^\n]+?) -->\n|<!-- (?P<file>\w+\.(?:py|toml)) -->\n)?"
    r"^```(?P<language>[a-z]*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SAID = re.compile(r"print\(.*\)  # (.*)")
SERVER = re.compile(r"^evokey (serve|mcp --http)\b")
KEY = re.compile(r"evk_[\w-]+")
PORTS = {"serve": 8321, "mcp --http": 8322}
RUN = ("python", "sh", "toml", "json")
PATIENCE = 60.0


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    reason: str
    """Why it is not run; "": it is."""
    file: str
    """What the reader saves it as, where a later line needs that."""


def blocks(text: str) -> list[Block]:
    return [
        Block(
            one["language"], one["code"], text.count("\n", 0, one.start("code")), one["reason"] or "", one["file"] or ""
        )
        for one in FENCE.finditer(text)
    ]


def commands(code: str) -> list[str]:
    """The commands of a sh block: comments away, continued lines joined."""
    joined = code.replace("\\\n", " ").splitlines()
    return [line for one in joined if (line := re.sub(r"\s+# .*$|^# .*$", "", one).strip())]


class Session:
    def __init__(self, folder: Path, names: dict[str, Any], port: int | None, install: bool) -> None:
        self.folder, self.names, self.port, self.install = folder, names, port, install
        self.saved: set[str] = set()
        self.servers: list[subprocess.Popen[str]] = []
        programs = _programs(folder)
        path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
        self.environment = os.environ | {"PATH": path, "COLUMNS": "100"}

    def run(self, block: Block) -> None:
        getattr(self, f"_run_{block.language}")(self._with_port(block.code))

    def _with_port(self, code: str) -> str:
        """Another port than the page's, which somebody else may use."""
        return code.replace(str(PORTS["serve"]), str(self.port)) if self.port else code

    def _run_python(self, code: str) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "block", "exec"), self.names)
        said = SAID.findall(code)
        if said and printed.getvalue().splitlines() != said:
            raise AssertionError(f"the page says {said}, and it prints {printed.getvalue().splitlines()}")

    def _run_sh(self, code: str) -> None:
        for line in commands(code):
            if line.startswith("pip install") and not self.install:
                continue
            self._serve(line) if SERVER.match(line) else self._call(line)

    def _call(self, line: str) -> None:
        done = subprocess.run(["bash", "-c", line], env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{line}\n{done.stdout}{done.stderr}")
        if found := KEY.search(done.stdout):
            self.environment["KEY"] = self.names["key"] = found[0]

    def _serve(self, line: str) -> None:
        kind = SERVER.match(line)
        port = self.port or PORTS[kind[1]] if kind else 0
        command = f"exec {line} --port {port}" if self.port else f"exec {line}"
        self.close()  # a page's next server takes the same port
        log = Path(f"server-{len(self.servers)}.log")
        with log.open("w") as out:
            self.servers.append(
                subprocess.Popen(["bash", "-c", command], env=self.environment, stdout=out, stderr=out, text=True)
            )
        started = time.monotonic()
        while not _answers(port):
            if self.servers[-1].poll() is not None or time.monotonic() > started + PATIENCE:
                raise AssertionError(f"{line} does not answer on port {port}\n{log.read_text()}")
            time.sleep(0.1)

    def _run_toml(self, code: str) -> None:
        """Settings of a memory are read as such."""
        if "project" not in tomllib.loads(code) and code not in self.saved:
            from evokey.settings import read

            place = self.folder / "settings" / "evokey.toml"
            place.parent.mkdir(exist_ok=True)
            place.write_text(code, "utf-8")
            read(place)

    def _run_json(self, code: str) -> None:
        json.loads(code)

    def close(self) -> None:
        for one in self.servers:
            one.terminate()
        for one in self.servers:
            one.wait(PATIENCE)
        self.servers.clear()


def _programs(folder: Path) -> Path:
    """Where `evokey` is: beside this Python; where packages come from elsewhere, it is made."""
    if (beside := Path(sys.executable).parent).joinpath("evokey").exists():
        return beside
    program = folder / "bin" / "evokey"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m evokey "$@"\n', "utf-8")
    program.chmod(0o755)
    return program.parent


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--skip-install", action="store_true")
    given = parser.parse_args()
    page, before = given.page.resolve(), given.before and given.before.resolve()
    os.chdir(given.folder)
    sys.path.insert(0, ".")
    os.environ |= {f"XDG_{one}_HOME": str(Path.cwd() / one.lower()) for one in ("CONFIG", "STATE", "CACHE")}
    names: dict[str, Any] = {"__name__": "page", "__file__": str(before)}
    if before:
        exec(compile(before.read_text("utf-8"), str(before), "exec"), names)
    session = Session(Path.cwd(), names, given.port, install=not given.skip_install)
    found, times = blocks(page.read_text("utf-8")), []
    for block in found:
        if block.file:
            Path(block.file).write_text(block.code, "utf-8")
            session.saved.add(block.code)
    try:
        for block in found:
            if block.language in RUN and not block.reason:
                start = time.perf_counter()
                try:
                    session.run(block)
                except BaseException:
                    sys.stderr.write(f"{page.name}, the {block.language} block at line {block.line}:\n")
                    raise
                times.append({"line": block.line, "seconds": round(time.perf_counter() - start, 2)})
    finally:
        session.close()
    sys.stdout.write(json.dumps(times) + "\n")


if __name__ == "__main__":
    main()
