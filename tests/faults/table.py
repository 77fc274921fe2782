"""Inject ten thousand faults of twelve kinds, and count the harm: `python tests/faults/table.py` (or make faults).

Every fault has a kind and a number, which seeds all chance in it: --kind NAME --seed N shows one again. Results are
noted one by one beside the table, so that a run that was stopped goes on; those of other code are not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import boundaries  # noqa: E402
import damage  # noqa: E402
import live  # noqa: E402
import scenarios  # noqa: E402
import services  # noqa: E402
import versions  # noqa: E402
import wire  # noqa: E402
import world  # noqa: E402
from report import HARMS, PAGE, RESULT, page, render  # noqa: E402
from world import BASES, Harm, Trial, prepare  # noqa: E402

FAST = Path("/dev/shm")
WORKERS = 2
Faults = list[tuple[str, int]]
"""Kinds and seeds."""
CHUNK = 48
"""Faults that one process meets before it makes room for a fresh one."""
LONGEST = 40
"""Seconds after which a fault counts as a hang."""
DISK = "6m"


@dataclass(frozen=True)
class Kind:
    inject: Callable[[Trial], None]
    share: int
    """Of hundred faults: those that take long are fewer."""
    what: str
    paid: bool = False
    """Whether the memory has an encoder over HTTP."""
    disk: bool = False
    """Whether it needs a file system of its own."""


KINDS = {
    "kill": Kind(live.kill, 10, "SIGKILL before or after a write, a sync or a rename; unsynced files torn or empty"),
    "interrupt": Kind(live.interrupt, 9, "Ctrl-C at any moment from opening to closing"),
    "full disk": Kind(live.full_disk, 7, "no room left on a real file system, at once or some pages later", disk=True),
    "keys cut": Kind(damage.cut_key, 15, "one or several files of the keys cut"),
    "keys flipped": Kind(damage.flip_key, 15, "bits flipped in files of the keys"),
    "ledger damaged": Kind(damage.damage_truth, 16,
                           "ledger, log, count of commits, settings or manifest cut or flipped"),
    "restored": Kind(damage.restored, 7, "an older ledger beside newer keys, older or foreign keys beside a ledger"),
    "two versions": Kind(versions.versions, 8, "a memory of the version before, killed while it is brought up to date; "
                         "memories of a newer version; the version before on a memory of this one"),
    "dead service": Kind(services.dead_service, 2, "the encoder's service refuses, fails, hangs or breaks off", True),
    "lying service": Kind(services.lying_service, 2, "it sends wrong dimensions, counts, numbers, or no JSON", True),
    "others": Kind(live.others, 2, "a second writer, readers and backups while one process writes; it dies or closes"),
    "missing": Kind(damage.missing, 7, "files and folders gone or replaced; a file system that turns read-only",
                    disk=True),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    logging.getLogger("evokey").setLevel(logging.CRITICAL)
    with _home() as home:
        _prepare(home)
        if options.seed is not None:
            return _show(home, options.kind[0], options.seed)
        kinds = options.kind or list(KINDS)
        wanted = plan(kinds, options.count)
        with Journal(options.out.with_suffix(".jsonl"), keep=not options.afresh) as journal:
            left = [one for one in wanted if one not in journal.known]
            Crew(home, left, journal).work(time.monotonic() + 3600 * options.hours, len(wanted))
            rows = table({one: journal.known[one] for one in wanted if one in journal.known}, kinds)
    _say("\n" + render(rows))
    done = sum(row["injected"] for row in rows)
    if options.write:
        result = {"faults": done, "kinds": rows, "seconds": round(sum(row["seconds"] for row in rows))}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
        if options.out == RESULT:
            PAGE.write_text(page(), "utf-8")
    return 1 if any(row[harm] for row in rows for harm in HARMS) or done < len(wanted) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULT, help="the table; what is done so far is noted beside it")
    parser.add_argument("--hours", type=float, default=2.0, help="stop then; another call goes on")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind (may be repeated)")
    parser.add_argument("--count", type=int, default=10_000, help="faults of all kinds together")
    parser.add_argument("--seed", type=int, help="only this fault of the kind, with all that goes wrong")
    parser.add_argument("--afresh", action="store_true", help="forget what was done before")
    options = parser.parse_args(arguments)
    options.write = not options.kind or options.out != RESULT
    if options.seed is not None and len(options.kind or ()) != 1:
        parser.error("--seed needs one --kind")
    return options


def plan(kinds: Sequence[str], count: int) -> Faults:
    """Kinds and seeds, all kinds side by side from the beginning to the end."""
    whole = sum(KINDS[kind].share for kind in kinds)
    found = []
    for kind in kinds:
        times = -(-count * KINDS[kind].share // whole)
        found += [((seed + 0.5) / times, kind, seed) for seed in range(times)]
    return [(kind, seed) for _, kind, seed in sorted(found)]


# ---- what was done


class Journal:
    """A line for every fault, written by the process that met it."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self.path = path
        lines = path.read_text().splitlines() if keep and path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        self.known = {(one["kind"], one["seed"]): one for one in found if one["code"] == _code(one["kind"])}

    def __enter__(self) -> Journal:
        self.path.write_text("".join(f"{json.dumps(one)}\n" for one in self.known.values()))
        self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._read = self.path.stat().st_size
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def note(self, entry: dict[str, Any]) -> None:
        os.write(self._handle, f"{json.dumps({**entry, 'code': _code(entry['kind'])})}\n".encode())

    def follow(self) -> None:
        """Read what the processes have written since."""
        found = os.pread(self._handle, 1 << 26, self._read)
        found = found[: found.rfind(b"\n") + 1]
        self._read += len(found)
        for line in found.splitlines():
            one = json.loads(line)
            self.known[one["kind"], one["seed"]] = one


@cache
def _code(kind: str) -> str:
    """Results belong to the code that they were got with."""
    paths = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")]
    shared = (world, scenarios, boundaries, wire, live, damage, sys.modules[KINDS[kind].inject.__module__])
    paths += {Path(str(module.__file__)) for module in shared}
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:12]


# ---- processes


class Crew:
    """Two processes at a time, each for some faults. One that dies is a crash of the fault that it was at."""

    def __init__(self, home: Path, wanted: Faults, journal: Journal) -> None:
        self._home, self._journal = home, journal
        self._queue = [wanted[at : at + CHUNK] for at in range(0, len(wanted), CHUNK)][::-1]
        self._running: dict[int, tuple[int, Faults]] = {}
        """By process: its place, and what it was given."""

    def work(self, end: float, total: int) -> None:
        try:
            while self._send(end):
                child, status = os.wait()
                if child in self._running:
                    self._take_back(child, status)
                    _progress(self._journal, total)
        finally:
            for child in self._running:
                os.kill(child, signal.SIGKILL)

    def _send(self, end: float) -> bool:
        """Give every free place something to do, up to the end; whether anybody is at work."""
        for slot in set(range(WORKERS)) - {slot for slot, _ in self._running.values()}:
            if self._queue and time.monotonic() < end:
                chunk = self._queue.pop()
                self._running[_fork(self._home / f"worker{slot}", self._home, chunk, self._journal)] = slot, chunk
        return bool(self._running)

    def _take_back(self, child: int, status: int) -> None:
        _, chunk = self._running.pop(child)
        self._journal.follow()
        rest = [one for one in chunk if one not in self._journal.known]
        if not rest:
            return
        kind, seed = rest[0]
        told = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
        crash = {"harm": "crash", "what": told, "errors": {}, "checked": 0, "seconds": 0.0}
        self._journal.note({"kind": kind, "seed": seed, **crash})
        self._journal.follow()
        self._queue.append(rest[1:])


def _fork(place: Path, home: Path, chunk: Faults, journal: Journal) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for one in (signal.SIGALRM, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        with Worker(place, home) as worker:
            for kind, seed in chunk:
                signal.alarm(LONGEST)
                journal.note(worker.meet(kind, seed))
        code = 0
    except BaseException:  # noqa: BLE001  a child must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)


class Worker:
    """What a process needs to meet faults: a server, a file system."""

    def __init__(self, place: Path, home: Path) -> None:
        self._place, self._home, self._stack = place, home, ExitStack()
        self._server: services.Embedder | None = None
        self._disk: Path | None = None

    def __enter__(self) -> Worker:
        self._place.mkdir(exist_ok=True)
        self._stack.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def meet(self, kind: str, seed: int) -> dict[str, Any]:
        begun, harm, what = time.perf_counter(), None, ""
        trial = self._trial(KINDS[kind], random.Random(f"{kind} {seed}"))
        try:
            KINDS[kind].inject(trial)
        except Harm as error:
            harm, what = error.kind, f"{error}\n{_last(error)}"
        except Exception as error:  # noqa: BLE001  whatever it was is a failure of this fault, and the next is tried
            harm, what = "raw error", f"{type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}"
        seconds = round(time.perf_counter() - begun, 3)
        return {"kind": kind, "seed": seed, "harm": harm, "what": what[:4000], "errors": Counter(trial.errors),
                "checked": trial.checked, "seconds": seconds}  # fmt: skip

    def _trial(self, kind: Kind, chance: random.Random) -> Trial:
        base = "paid" if kind.paid else chance.choice(list(BASES))
        options: dict[str, Any] = {}
        server = self._serve() if kind.paid else None
        folder = self._home / base
        if server is not None:
            server.show()
            server.calm()
            folder, options = self._addressed(server), {"allow": [server.host]}
        trial = Trial(self._place / "trial", folder, chance, options, place=self._own_disk() if kind.disk else None)
        trial.server, trial.seen_live = server, None
        return trial

    def _serve(self) -> services.Embedder:
        if self._server is None:
            self._server = services.Embedder()
            self._server.__enter__()
            self._stack.callback(self._server.hide)
        return self._server

    def _addressed(self, server: services.Embedder) -> Path:
        """The prepared memory, with the server's address in its settings."""
        folder = self._place / "paid"
        if not folder.exists() or server.host not in (folder / "evokey.toml").read_text():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self._home / "paid", folder)
            path = folder / "evokey.toml"
            path.write_text(path.read_text().replace("http://127.0.0.1:1", server.host))
        return folder

    def _own_disk(self) -> Path | None:
        """A small file system; None where this user may not mount one."""
        if self._disk is None:
            folder = self._place / "disk"
            folder.mkdir(exist_ok=True)
            self._disk = mount(folder, self._stack)
        shutil.rmtree(self._disk / "kb", ignore_errors=True)
        (self._disk / "ballast").unlink(missing_ok=True)
        return self._disk


def mount(folder: Path, stack: ExitStack) -> Path:
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        raise RuntimeError("faults of full disks need a file system of their own: run as root")
    stack.callback(subprocess.run, ["umount", "-l", folder], capture_output=True, check=False)
    return folder


def _last(error: BaseException) -> str:
    cause = error.__cause__ or error
    return "".join(traceback.format_exception(cause))[-1500:]


# ---- setting up


@contextmanager
def _home() -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="evokey-faults-", dir=FAST if FAST.is_dir() else None))
    os.environ["EVOKEY_FAULTS_HOME"] = str(home)
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[variable] = str(home / variable.lower())
    try:
        yield home
    finally:
        for disk in home.glob("worker*/disk"):
            while os.path.ismount(disk):
                subprocess.run(["umount", "-l", disk], capture_output=True, check=True)
        shutil.rmtree(home, ignore_errors=True)


def _prepare(home: Path) -> None:
    """The memories that are copied. Nothing here may leave a thread: processes are forked later."""
    for name, encoder in BASES.items():
        prepare(home / name, encoder)
    versions.older_source()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with services.Embedder() as server:
                origin = server.host
                prepare(home / "paid", ["bm25", {**services.PAID, "base_url": f"{origin}/v1"}])
            path = home / "paid" / "evokey.toml"
            path.write_text(path.read_text().replace(origin, "http://127.0.0.1:1"))
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the memory with a service could not be made")


def _show(home: Path, kind: str, seed: int) -> int:
    with Worker(home / "worker0", home) as worker:
        entry = worker.meet(kind, seed)
    _say(json.dumps({key: value for key, value in entry.items() if key != "what"}, indent=1))
    _say(entry["what"])
    return 1 if entry["harm"] else 0


# ---- the table


def table(known: dict[tuple[str, int], dict[str, Any]], kinds: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for kind in kinds:
        found = [one for (name, _), one in known.items() if name == kind]
        harms = Counter(one["harm"] for one in found)
        errors: Counter[str] = Counter()
        for one in found:
            errors.update(one["errors"])
        rows.append({
            "kind": kind, "what": KINDS[kind].what, "injected": len(found),
            "checked": sum(one["checked"] for one in found),
            "errors": dict(errors.most_common()), **{harm: harms[harm] for harm in HARMS},
            "seconds": round(sum(one["seconds"] for one in found), 1),
        })  # fmt: skip
    return rows


def _progress(journal: Journal, total: int) -> None:
    done, harms = len(journal.known), sum(one["harm"] is not None for one in journal.known.values())
    bar = "█" * (30 * done // max(total, 1))
    text = f"{bar:30} {done:,} of {total:,} faults, {harms} with harm"
    sys.stderr.write(f"\r{text}" if sys.stderr.isatty() else f"{text}\n")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
