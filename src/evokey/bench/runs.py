"""Runs: one system taught and tested on one split of one set. One result file each: an interrupted benchmark resumes.

plan(…) → runs;  execute(runs, folder, jobs) → outcomes, as they come;  results(folder) → what is there
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import re
import shlex
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from itertools import product
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from evokey import registry
from evokey.bench import answering, lessons, measures, naming, protocols, systems
from evokey.bench import data as data_
from evokey.bench.clock import Clock
from evokey.bench.data import Dataset, trec
from evokey.bench.lab import HYBRID, Lab
from evokey.bench.measures import MAIN
from evokey.bench.protocols import Question, Split
from evokey.bench.systems import EXPANSION, LIVE, REFERENCE, UNTAUGHT, Lessons, System
from evokey.errors import EvokeyError, InvalidInput
from evokey.protocols import LLM

log = logging.getLogger("evokey")
FORMAT = 3
"""Results of another format are measured again: since 3, the paper's rule has its gate."""
BATCHES = 10
TAUGHT_ASKED = 1_000
"""Taught queries that are asked again, at most."""
FOLDER = "runs"
LLAMA = "llamacpp"
"""The language model where none is named: a small one, in process."""
DISTANCES = {"median": 0.5, "p95": 0.95, "largest": 1.0}
"""Quantiles of how far keys moved."""
Result = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Run:
    data: str = ""
    """Folder or name."""
    encoder: str = HYBRID
    protocol: str = "holdout"
    rate: float | None = None
    """The share that teaches, where the protocol asks for one."""
    seed: int = 0
    policy: str = REFERENCE
    units: str | None = None
    """Whose recorded expansions teach beside the queries."""
    most: int | None = None
    """Judged queries used, at most."""
    batches: int = BATCHES
    """Of a stream."""
    split: str = "test"
    llm: str | None = None
    """The language model for live expansion and answers."""
    answers: int = 0
    """Tested questions with a gold answer that are answered, at most."""
    wrong: int = 0
    """Lessons also name the wrong documents among so many first hits of the untaught index."""
    noise: float = 0.0
    """Share of lessons that name a wrong document as right."""
    shown: int = 0
    """Lessons only name documents among so many first hits of the untaught index."""
    judge: str | None = None
    """The language model that grades answers, if not the one that gives them."""
    verifier: str | None = None
    """Lessons are what this verifier accepts of what the memory finds."""

    @property
    def dataset(self) -> str:
        return Path(self.data).name or self.data

    @property
    def asks(self) -> bool:
        """Whether a language model is asked."""
        return bool(self.answers or self.verifier) or self.policy.partition(":")[0] == LIVE

    @property
    def file(self) -> str:
        """The name of its result."""
        parts: list[Any] = [self.dataset, self.encoder, self.protocol]
        parts += [] if self.rate is None else [f"rate{self.rate:g}"]
        parts += [f"{self.batches}batches"] if self.protocol == "stream" else []
        parts += [self.policy, f"seed{self.seed}"]
        parts += [] if self.units is None else [f"units-{self.units}"]
        parts += [] if not self.wrong else [f"wrong{self.wrong}"]
        parts += [] if not self.noise else [f"noise{self.noise:g}"]
        parts += [] if not self.shown else [f"shown{self.shown}"]
        parts += [] if self.verifier is None else [f"verifier-{self.verifier}"]
        parts += [] if self.most is None else [f"most{self.most}"]
        parts += [] if self.split == "test" else [self.split]
        parts += [] if not self.answers else [f"answers{self.answers}"]
        parts += [] if self.llm is None or not self.asks else [self.llm]
        parts += [] if self.judge is None or not self.answers else [f"judge-{self.judge}"]
        return ".".join(re.sub(r"[^\w+,-]+", "_", str(part)) for part in parts) + ".json"

    @property
    def command(self) -> str:
        """What to type for this result."""
        typed = ["evokey", "bench", self.data, "--encoder", self.encoder, "--policy", self.policy]
        typed += ["--seeds", "1", "--first-seed", str(self.seed)]
        for name, value in asdict(self).items():
            if name not in ("data", "encoder", "policy", "seed") and value != getattr(DEFAULT, name):
                typed += [f"--{name}", str(value)]
        return shlex.join(typed)


DEFAULT = Run()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was measured, was there already, or failed."""

    run: Run
    result: Result | None
    error: str | None = None
    fresh: bool = True


def plan(
    folders: Iterable[str],
    common: Run = DEFAULT,
    *,
    encoders: Sequence[str] = (HYBRID,),
    policies: Sequence[str] = (UNTAUGHT, REFERENCE),
    rates: Sequence[float] = (0.5,),
    seeds: int = 3,
) -> tuple[list[Run], list[str]]:
    """All runs, and why some pairs of an encoder and a policy are not among them. `common`: what all runs share, and
    the first seed."""
    if common.protocol not in protocols.PROTOCOLS:
        names = ", ".join(protocols.PROTOCOLS)
        raise InvalidInput(f"there is no protocol {common.protocol!r}; choose one of: {names}")
    if seeds < 1:
        raise InvalidInput(f"a run needs a seed: {seeds} are too few")
    if not 0 <= common.noise < 1:
        raise InvalidInput(f"--noise is the share of lessons that name a wrong document, not {common.noise}")
    reasons = {pair: systems.fits(*pair, common.units, common.wrong) for pair in product(policies, encoders)}
    sets, pairs = list(dict.fromkeys(folders)), [pair for pair, reason in reasons.items() if reason is None]
    if len({Path(one).name for one in sets}) != len(sets):
        raise InvalidInput(
            "two of the data sets have the same name: results are stored by name, so measure them in two runs"
        )
    known = rates if common.protocol in protocols.RATED else (None,)
    drawn = range(common.seed, common.seed + seeds)
    found = [
        replace(common, data=folder, encoder=encoder, policy=policy, rate=rate, seed=seed)
        for folder, (policy, encoder), rate, seed in product(sets, pairs, known, drawn)
    ]
    left_out = sorted({reason for reason in reasons.values() if reason is not None})
    return sorted(found, key=lambda run: (run.data, run.encoder, run.rate or 0, run.seed)), left_out


def execute(runs: Sequence[Run], folder: Path, *, jobs: int = 1, rankings: Path | None = None) -> Iterator[Outcome]:
    """Measure what is not there yet, in so many processes; every result is written when it comes.

    rankings: a folder for the rankings of the tested queries too, a TREC run file for each run.
    """
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    waiting = []
    for run in runs:
        known = _read(place / run.file)
        if known is None or not (rankings is None or ranking_file(rankings, run).exists()):
            waiting.append(run)
        else:
            yield Outcome(run, known, fresh=False)
    if not waiting:
        return
    with tempfile.TemporaryDirectory(prefix="evokey-bench-", ignore_cleanup_errors=True) as scratch:
        if jobs <= 1:
            yield from (_attempt(run, place, Path(scratch), rankings) for run in waiting)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, context, initializer=_leave_with_parent) as pool:
            begun = [pool.submit(_attempt, run, place, Path(scratch), rankings) for run in waiting]
            for future in as_completed(begun):
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


def ranking_file(folder: Path, run: Run) -> Path:
    return folder / Path(run.file).with_suffix(".trec").name


def _attempt(run: Run, place: Path, scratch: Path, rankings: Path | None) -> Outcome:
    try:
        result = measure(run, scratch)
    except EvokeyError as error:
        return Outcome(run, None, str(error))
    found = result.pop("rankings")
    if rankings is not None:
        rankings.mkdir(parents=True, exist_ok=True)
        separate = {query: trec.separate(hits) for query, hits in found.items()}
        trec.write_run(ranking_file(rankings, run), separate, run.policy, escaped=trec.needs_escape(found))
    write_json(place / run.file, result)
    return Outcome(run, result)


def write_json(path: Path, result: Any, *, indent: int | None = None) -> None:
    """The whole file, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(result, file, ensure_ascii=False, indent=indent)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)


def _read(path: Path) -> Result | None:
    try:
        found: Result = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        log.warning("%s is not a result file; the run is measured again", path)
        return None
    return found if found.get("format") == FORMAT else None


def results(folder: Path) -> list[Result]:
    """All results of a folder, in a stable order."""
    place = folder / FOLDER
    paths = sorted(place.glob("*.json")) if place.is_dir() else []
    found = [known for path in paths if (known := _read(path)) is not None]
    if not found:
        raise InvalidInput(f"{folder} holds no results; make some with: evokey bench DATA --out {folder}")
    return found


# ---- one run


@lru_cache(maxsize=1)
def _load(name: str, split: str) -> Dataset:
    return data_.load(name, split)


@lru_cache(maxsize=1)
def _lab(name: str, split: str, encoder: str, scratch: Path, encode: bool) -> Lab:
    return Lab(_load(name, split), encoder, scratch, encode=encode)


def measure(run: Run, scratch: Path) -> Result:
    """Teach, evolve, ask, evaluate."""
    data = _load(run.data, run.split)
    dealt = protocols.split(data, run.protocol, rate=run.rate or 0.5, seed=run.seed, most=run.most)
    lab = _lab(run.data, run.split, run.encoder, scratch, _must_encode(run, data, dealt))
    taught = _change_lessons(dealt.taught, lab, run) if run.noise or run.shown else dealt.taught
    clock = Clock()
    said = Lessons(run.units, run.wrong, run.verifier, run.llm)
    with systems.system(run.policy, lab, said, seed=run.seed, llm=lambda: model(run.llm)) as system:
        if run.protocol in protocols.IN_STEPS:
            batches = dealt.steps() if run.protocol == "curve" else dealt.batches(run.batches)
            found = _stream(system, dealt, {one.id: one for one in taught}, batches, clock)
        else:
            clock.call("teach", system.teach, taught)
            found = {"report": clock.call("evolve", system.evolve)}
        found |= _test(system, dealt, clock)
        if run.answers:
            asked = answering.answerable(data, dealt.tested)[: run.answers]
            found["answers"] = answering.answer(
                system, data, asked, model(run.llm), scratch, model(run.judge) if run.judge else None
            )
    return {
        "format": FORMAT,
        "command": run.command,
        "version": version("evokey"),
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


def _change_lessons(questions: Sequence[Question], lab: Lab, run: Run) -> Sequence[Question]:
    with systems.system(UNTAUGHT, lab) as untaught:
        if run.noise:
            questions = lessons.add_noise(questions, untaught.rank, lab.data.documents, run.noise, run.seed)
        return lessons.keep_shown(questions, untaught.rank, run.shown) if run.shown else questions


def _must_encode(run: Run, data: Dataset, dealt: Split) -> bool:
    """Whether texts are asked or taught for which no vector lies beside the set."""
    further = (run.units, run.verifier) != (None, None) or run.policy.startswith((EXPANSION, LIVE))
    return further or any(one.id not in data.queries for one in (*dealt.taught, *dealt.tested))


@lru_cache(maxsize=2)
def model(name: str | None) -> LLM:
    made: LLM = registry.build("llm", naming.parse(name or LLAMA))
    return made


def _test(system: System, dealt: Split, clock: Clock) -> Result:
    groups = dealt.groups()
    groups["taught"] = groups["taught"][:TAUGHT_ASKED]
    asked = {one.id: one for one in (*dealt.tested, *groups["taught"])}
    found = {id: clock.search(system, one) for id, one in asked.items()}
    values = measures.evaluate(asked.values(), {id: [one for one, _ in ranking] for id, ranking in found.items()})
    means = {name: measures.mean(values, [one.id for one in ones]) for name, ones in groups.items()}
    return {
        "rankings": {one.id: found[one.id] for one in dealt.tested},
        "queries": len(dealt.tested),
        "counts": {**{name: len(ones) for name, ones in groups.items()}, "taught": len(dealt.taught)},
        "metrics": measures.mean(values, [one.id for one in dealt.tested]),
        **means,
        "values": {one.id: round(values[one.id][MAIN], 6) for one in dealt.tested},
        "taught_values": {one.id: round(values[one.id][MAIN], 6) for one in groups["taught"]},
    }


def _stream(
    system: System, dealt: Split, known: Mapping[str, Question], batches: Sequence[tuple[Question, ...]], clock: Clock
) -> Result:
    """Quality after every batch: of the tested queries, of those that taught, and of the next batch before it does."""
    points = [_point(system, dealt, (), batches[0], clock)]
    for place, batch in enumerate(batches):
        clock.call("teach", system.teach, [known[one.id] for one in batch if one.id in known])
        report = clock.call("evolve", system.evolve)
        so_far = tuple(one for done in batches[: place + 1] for one in done)
        following = batches[place + 1] if place + 1 < len(batches) else ()
        points.append({**_point(system, dealt, so_far, following, clock), "keys": _keys(system)})
    gains = system.gains()
    return {"report": report, "stream": points, **({"gains": gains} if gains else {})}


def _keys(system: System) -> dict[str, dict[str, Any]]:
    """How many keys have moved, and how far."""
    found = {}
    for retriever, moved in system.displacements().items():
        shares = np.quantile(moved, list(DISTANCES.values())) if len(moved) else [0.0] * len(DISTANCES)
        far = {name: round(float(value), 6) for name, value in zip(DISTANCES, shares, strict=True)}
        kind = "sparse" if naming.encoder_kind(retriever) == "sparse" else "dense"
        found[retriever] = {"moved": len(moved), "kind": kind, **far}
    return found


def _point(
    system: System, dealt: Split, known: tuple[Question, ...], following: Sequence[Question], clock: Clock
) -> Mapping[str, Any]:
    groups = Split(known, dealt.tested).groups()
    again = known[:TAUGHT_ASKED]
    asked = {one.id: one for one in (*dealt.tested, *again, *following)}
    found = {id: [one for one, _ in clock.search(system, question)] for id, question in asked.items()}
    values = measures.evaluate(asked.values(), found)
    apart = {name: groups[name] for name in ("related", "unrelated")}
    parts = {"metrics": dealt.tested, **apart, "again": again, "next": following}
    means = {name: measures.mean(values, [one.id for one in ones]) for name, ones in parts.items()}
    return {"taught": len(known), **means, "counts": {name: len(ones) for name, ones in apart.items()}}


def summarise(result: Result) -> Result:
    """A result without its values for single queries."""
    short = {name: value for name, value in result.items() if name not in ("format", "values", "taught_values")}
    if short.get("answers"):
        short["answers"] = {name: value for name, value in short["answers"].items() if name != "rows"}
    return short
