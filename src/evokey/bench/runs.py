"""Runs: one system taught and tested on one split of one set. One file each, so that what was interrupted goes on.

plan(…) → runs;  carried_out(runs, folder, jobs) → outcomes, as they come;  results(folder) → what is there
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from evokey import registry
from evokey.bench import answering, measures, protocols, systems
from evokey.bench import data as data_
from evokey.bench.data import Dataset
from evokey.bench.lab import HYBRID, Lab
from evokey.bench.measures import DEPTH, MAIN
from evokey.bench.protocols import Question, Split
from evokey.bench.systems import EXPANSION, LIVE, Lessons, System
from evokey.errors import EvokeyError, InvalidInput
from evokey.protocols import LLM

log = logging.getLogger("evokey")
FORMAT = 2
BATCHES = 10
TAUGHT_ASKED = 1_000
"""Taught queries that are asked again, at the most."""
FOLDER = "runs"
LLAMA = "llamacpp"
"""The language model where none is named: a small one, in process."""
DISTANCES = {"median": 0.5, "p95": 0.95, "largest": 1.0}
"""What is said of how far keys moved."""
Result = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Run:
    data: str
    """Folder or name."""
    encoder: str
    protocol: str
    rate: float | None
    """The share that teaches, where the protocol asks for one."""
    seed: int
    policy: str
    units: str | None = None
    """Whose recorded expansions teach beside the queries."""
    most: int | None = None
    """Judged queries taken, at the most."""
    batches: int = BATCHES
    """Of a stream."""
    split: str = "test"
    llm: str | None = None
    """The language model that expands live and answers."""
    answers: int = 0
    """Tested questions with a gold answer that are answered, at the most."""
    wrong: int = 0
    """Of how many that the untaught index finds first a lesson names the wrong ones."""

    @property
    def dataset(self) -> str:
        return Path(self.data).name or self.data

    @property
    def asks(self) -> bool:
        """Whether a language model is asked."""
        return bool(self.answers) or self.policy.partition(":")[0] == LIVE

    @property
    def file(self) -> str:
        """The name of its result."""
        parts: list[Any] = [self.dataset, self.encoder, self.protocol]
        parts += [] if self.rate is None else [f"rate{self.rate:g}"]
        parts += [f"{self.batches}batches"] if self.protocol == "stream" else []
        parts += [self.policy, f"seed{self.seed}"]
        parts += [] if self.units is None else [f"units-{self.units}"]
        parts += [] if not self.wrong else [f"wrong{self.wrong}"]
        parts += [] if self.most is None else [f"most{self.most}"]
        parts += [] if self.split == "test" else [self.split]
        parts += [] if not self.answers else [f"answers{self.answers}"]
        parts += [] if self.llm is None or not self.asks else [self.llm]
        return ".".join(re.sub(r"[^\w+,-]+", "_", str(part)) for part in parts) + ".json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was carried out, was there already, or failed."""

    run: Run
    result: Result | None
    error: str | None = None
    fresh: bool = True


def plan(
    folders: Iterable[str],
    *,
    encoders: Sequence[str] = (HYBRID,),
    policies: Sequence[str] = ("none", "guarded"),
    protocol: str = "holdout",
    rates: Sequence[float] = (0.5,),
    seeds: int = 3,
    units: str | None = None,
    most: int | None = None,
    batches: int = BATCHES,
    split: str = "test",
    llm: str | None = None,
    answers: int = 0,
    wrong: int = 0,
) -> tuple[list[Run], list[str]]:
    """All runs, and why some pairs of an encoder and a policy are not among them."""
    if protocol not in protocols.PROTOCOLS:
        raise InvalidInput(f"there is no protocol {protocol!r}; choose one of: {', '.join(protocols.PROTOCOLS)}")
    if seeds < 1:
        raise InvalidInput(f"a run needs a seed: {seeds} are too few")
    rated = protocol in ("holdout", "stream")
    runs, left_out = [], []
    sets = list(folders)
    for encoder in encoders:
        for policy in policies:
            reason = systems.fits(policy, encoder, units, wrong)
            if reason is not None:
                left_out.append(reason)
                continue
            for folder in sets:
                for rate in rates if rated else (None,):
                    for seed in range(seeds):
                        given = (folder, encoder, protocol, rate, seed, policy, units, most, batches, split)
                        runs.append(Run(*given, llm, answers, wrong))
    names = [run.dataset for run in {run.data: run for run in runs}.values()]
    if len(names) != len(set(names)):
        raise InvalidInput("two of the data sets have the same name: results are kept by name, so measure them apart")
    return sorted(runs, key=lambda run: (run.data, run.encoder, run.rate or 0, run.seed)), sorted(set(left_out))


def carried_out(runs: Sequence[Run], folder: Path, *, jobs: int = 1) -> Iterator[Outcome]:
    """Carry out what is not there yet, in so many processes; every result is written when it comes."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    waiting = []
    for run in runs:
        known = _known(place / run.file)
        if known is None:
            waiting.append(run)
        else:
            yield Outcome(run, known, fresh=False)
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="evokey-bench-", ignore_cleanup_errors=True) as scratch:
        if jobs <= 1:
            yield from (_attempted(run, place, Path(scratch)) for run in waiting)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, initializer=_leave_with_parent) as pool:
            for future in as_completed([pool.submit(_attempted, run, place, Path(scratch)) for run in waiting]):
                yield future.result()


def _leave_with_parent() -> None:
    """A worker whose parent was killed has nobody to work for."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempted(run: Run, place: Path, scratch: Path) -> Outcome:
    try:
        result = carry_out(run, scratch)
    except EvokeyError as error:
        return Outcome(run, None, str(error))
    written(place / run.file, result)
    return Outcome(run, result)


def written(path: Path, result: Any) -> None:
    """Whole, or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(result, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)


def _known(path: Path) -> Result | None:
    try:
        found: Result = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        log.warning("%s is no result, and is made again", path)
        return None
    return found if found.get("format") == FORMAT else None


def results(folder: Path) -> list[Result]:
    """All results of a folder, in a stable order."""
    place = folder / FOLDER
    paths = sorted(place.glob("*.json")) if place.is_dir() else []
    found = [known for path in paths if (known := _known(path)) is not None]
    if not found:
        raise InvalidInput(f"{folder} holds no results; make some with: evokey bench DATA --out {folder}")
    return found


# ---- one run


@lru_cache(maxsize=1)
def _loaded(name: str, split: str) -> Dataset:
    return data_.load(name, split)


@lru_cache(maxsize=1)
def _lab(name: str, split: str, encoder: str, scratch: Path, encode: bool) -> Lab:
    return Lab(_loaded(name, split), encoder, scratch, encode=encode)


def carry_out(run: Run, scratch: Path) -> Result:
    """Teach, evolve, ask, judge."""
    data = _loaded(run.data, run.split)
    dealt = protocols.split(data, run.protocol, rate=run.rate or 0.5, seed=run.seed, most=run.most)
    lab = _lab(run.data, run.split, run.encoder, scratch, _must_encode(run, data, dealt))
    clock = Clock()
    lessons = Lessons(run.units, run.wrong)
    with systems.system(run.policy, lab, lessons, seed=run.seed, llm=lambda: model(run.llm)) as system:
        if run.protocol == "stream":
            found = _streamed(run, system, dealt, clock)
        else:
            clock.call("teach", system.teach, dealt.taught)
            report = clock.call("evolve", system.evolve)
            found = {"report": report, **_asked(system, dealt, clock)}
        if run.answers:
            found["answers"] = answering.answered(system, data, dealt.tested, run.answers, model(run.llm), scratch)
    return {
        "format": FORMAT,
        **asdict(run),
        "dataset": data.name,
        "documents": len(data.documents),
        **found,
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu,
        "search_ms": clock.search_ms,
        "vectors": "given" if lab.given else "encoded",
        "problems": list(data.problems),
    }


def _must_encode(run: Run, data: Dataset, dealt: Split) -> bool:
    """Whether texts are asked or taught for which no vector lies beside the set."""
    further = run.units is not None or run.policy.startswith((EXPANSION, LIVE))
    return further or any(one.id not in data.queries for one in (*dealt.taught, *dealt.tested))


@lru_cache(maxsize=1)
def model(name: str | None) -> LLM:
    made: LLM = registry.build("llm", name or LLAMA)
    return made


class Clock:
    """How long things take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        """Seconds of processors, which a busy machine does not stretch."""
        self._searches: list[float] = []

    def call(self, what: str, work: Any, *given: Any) -> Any:
        began, busy = time.perf_counter(), time.process_time()
        found = work(*given)
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - began
        self.cpu[what] = self.cpu.get(what, 0.0) + time.process_time() - busy
        return found

    def search(self, system: System, question: Question) -> list[str]:
        began = time.perf_counter()
        found = system.rank(question, DEPTH + len(question.excluded))
        self._searches.append(time.perf_counter() - began)
        return found

    @property
    def search_ms(self) -> float | None:
        """The median."""
        return 1000 * statistics.median(self._searches) if self._searches else None


def _asked(system: System, dealt: Split, clock: Clock) -> Result:
    groups = dealt.groups()
    groups["taught"] = groups["taught"][:TAUGHT_ASKED]
    asked = {one.id: one for one in (*dealt.tested, *groups["taught"])}
    rankings = {id: clock.search(system, one) for id, one in asked.items()}
    values = measures.judged(asked.values(), rankings)
    means = {name: measures.mean(values, [one.id for one in ones]) for name, ones in groups.items()}
    return {
        "queries": len(dealt.tested),
        "counts": {**{name: len(ones) for name, ones in groups.items()}, "taught": len(dealt.taught)},
        "metrics": measures.mean(values, [one.id for one in dealt.tested]),
        **means,
        "values": {one.id: round(values[one.id][MAIN], 6) for one in dealt.tested},
        "taught_values": {one.id: round(values[one.id][MAIN], 6) for one in groups["taught"]},
    }


def _streamed(run: Run, system: System, dealt: Split, clock: Clock) -> Result:
    """Quality after every batch: of the tested queries, and of the next batch before it teaches."""
    batches = dealt.batches(run.batches)
    points = [_point(system, dealt, (), batches[0], clock)]
    for place, batch in enumerate(batches):
        clock.call("teach", system.teach, batch)
        report = clock.call("evolve", system.evolve)
        known = tuple(one for done in batches[: place + 1] for one in done)
        following = batches[place + 1] if place + 1 < len(batches) else ()
        points.append({**_point(system, dealt, known, following, clock), "keys": _keys(system)})
    gains = system.gains()
    return {"report": report, "stream": points, **({"gains": gains} if gains else {}), **_asked(system, dealt, clock)}


def _keys(system: System) -> dict[str, dict[str, Any]]:
    """How many keys have moved, and how far."""
    found = {}
    for retriever, moved in system.moved().items():
        shares = np.quantile(moved, list(DISTANCES.values())) if len(moved) else [0.0] * len(DISTANCES)
        far = {name: round(float(value), 6) for name, value in zip(DISTANCES, shares, strict=True)}
        kind = "sparse" if registry.encoder_kind(retriever, {}) == "sparse" else "dense"
        found[retriever] = {"moved": len(moved), "kind": kind, **far}
    return found


def _point(
    system: System, dealt: Split, known: tuple[Question, ...], following: Sequence[Question], clock: Clock
) -> Mapping[str, Any]:
    groups = Split(known, dealt.tested).groups()
    asked = {one.id: one for one in (*dealt.tested, *following)}
    values = measures.judged(asked.values(), {id: clock.search(system, one) for id, one in asked.items()})
    parts = {"metrics": dealt.tested, "related": groups["related"], "unrelated": groups["unrelated"], "next": following}
    means = {name: measures.mean(values, [one.id for one in ones]) for name, ones in parts.items()}
    return {"taught": len(known), **means}


def told(result: Result) -> Result:
    """A result without its values for single queries."""
    told = {name: value for name, value in result.items() if name not in ("format", "values", "taught_values")}
    if told.get("answers"):
        told["answers"] = {name: value for name, value in told["answers"].items() if name != "rows"}
    return told
