"""Contrastive training of a sentence-transformers encoder from lessons.

A step compares each question of a batch with its right text, with the right texts of the other questions, and with
texts that were named wrong or that the encoder itself ranks high for the question (mined anew after each epoch). After
each epoch the held-out questions are asked; the weights of the best epoch are kept. Interrupted, the same call goes on
after the last finished epoch.

This module runs where only numpy, torch and sentence-transformers are installed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evokey.encoders.hub import folder_of, quiet
from evokey.tuning import batches
from evokey.tuning.batches import Batch, Ints, Known, Mined, Positives

if TYPE_CHECKING:
    from evokey.tuning.pairs import TrainingSet

CHECKPOINT, BEST, MODEL = "checkpoint.pt", "best.pt", "model"
LONGEST_GRADIENT = 1.0
WEIGHT_DECAY = 0.01
ENCODED = 64
"""Texts that are encoded at a time; on a GPU four times as many."""
ASKED = 1024
"""Questions that are compared with all texts at a time."""


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    epochs: int = 12
    patience: int = 3
    """Epochs without a better score after which training stops."""
    batch_size: int = 32
    """Pairs of a question and a right text."""
    learning_rate: float = 2e-5
    warmup: float = 0.1
    """Share of all steps in which the learning rate rises; afterwards it falls to 0."""
    temperature: float = 0.05
    hard_negatives: int = 4
    """Mined texts for each pair."""
    mined_depth: int = 50
    """How deep in the encoder's own ranking they are looked for."""
    positives: int = 4
    """Right texts of one question in an epoch, at most."""
    max_length: int | None = None
    """Tokens of a text while training; None: as many as the model reads."""
    query_prefix: str | None = None
    document_prefix: str | None = None
    """None: the model's own."""
    device: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """epoch: 1 for the first; 0 while the encoder is measured before training."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float | None = None
    score: float | None = None
    """nDCG@10 of the held-out questions, after an epoch."""


@dataclass(frozen=True, slots=True)
class Trained:
    model: Path
    """A folder that sentence-transformers loads."""
    before: float | None
    after: float | None
    """nDCG@10 of the held-out questions; None without any."""
    epoch: int
    """The epoch whose weights were kept; 0: none was better than the encoder as it came."""
    scores: tuple[float, ...]
    """After each epoch, beginning with the encoder as it came."""
    seconds: float
    device: str


@dataclass(frozen=True, slots=True)
class State:
    """What is known after an epoch."""

    epoch: int = 0
    best: int = 0
    scores: tuple[float, ...] = ()
    """Beginning with the encoder as it came; none without held-out questions."""
    seconds: float = 0.0

    def add(self, score: float | None, seconds: float) -> State:
        """After one more epoch. Without held-out questions the last one counts as the best."""
        epoch = self.epoch + 1
        better = score is None or score > self.scores[self.best]
        scores = self.scores if score is None else (*self.scores, score)
        return State(epoch, epoch if better else self.best, scores, seconds)


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Task:
    """Both sets over one list of texts."""

    texts: list[str]
    questions: list[str]
    known: Known
    named: Positives
    """By question, texts that the training data has as negatives; those that were named wrong come first."""
    held_out: list[str]
    held_out_positives: Positives


def train(
    model: str | Path,
    data: TrainingSet,
    held_out: TrainingSet,
    folder: Path,
    options: TrainingOptions,
    progress: Report | None = None,
) -> Trained:
    """model: a folder of sentence-transformers. Writes the trained one into `folder`, with checkpoints on the way.

    Without held-out questions there is no early stopping: all epochs run, and the last one is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    task = join(data, held_out)
    training = Training(load(model, options), task, options, progress or (lambda _: None))
    return training.run(folder, fingerprint(model, task, options))


def join(data: TrainingSet, held_out: TrainingSet) -> Task:
    texts = list(dict.fromkeys([*data.texts, *held_out.texts]))
    number = {text: place for place, text in enumerate(texts)}
    right, asked = ([[number[part.texts[one]] for one in row] for row in part.positives] for part in (data, held_out))
    wrong = [[number[data.texts[one]] for one in row] for row in data.negatives]
    return Task(texts, list(data.queries), Known(right, data.weights), wrong, list(held_out.queries), asked)


def load(model: str | Path, options: TrainingOptions) -> Any:
    """In full precision, whatever the weights are stored in."""
    import torch
    from sentence_transformers import SentenceTransformer

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    with quiet():
        return SentenceTransformer(str(folder_of(str(model))), device=device, local_files_only=True).float()


def fingerprint(model: str | Path, task: Task, options: TrainingOptions) -> str:
    """Of everything that a checkpoint depends on."""
    said = json.dumps([str(model), asdict(task), asdict(options)], ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Training:
    model: Any
    task: Task
    options: TrainingOptions
    report: Report
    mined: list[Ints] = field(default_factory=list)

    def run(self, folder: Path, name: str) -> Trained:
        with own_length(self.model, self.options.max_length):
            state = self._run_epochs(folder, name)
        best = self._torch.load(folder / BEST, map_location=self.model.device, weights_only=True)
        self.model.load_state_dict(best)
        self._save_model(folder / MODEL)
        for file in (CHECKPOINT, BEST):
            (folder / file).unlink(missing_ok=True)
        scores = state.scores
        return Trained(
            folder / MODEL, scores[0] if scores else None, scores[state.best] if scores else None,
            state.best, scores, state.seconds, device_name(self.model.device),
        )  # fmt: skip

    def _run_epochs(self, folder: Path, name: str) -> State:
        began = time.perf_counter()
        optimizer = self._torch.optim.AdamW(self.model.parameters(), weight_decay=WEIGHT_DECAY)
        state = self._restore(folder / CHECKPOINT, name, optimizer)
        earlier = 0.0 if state is None else state.seconds
        score = self._measure()
        if state is None:
            state = State(scores=() if score is None else (score,))
            self._write(folder / BEST, self.model.state_dict())
            self.report(Progress(0, self.options.epochs, 0, self.steps, score=score))
        while state.epoch < self.options.epochs and state.epoch - state.best < self.options.patience:
            self._train_epoch(state.epoch + 1, optimizer)
            score = self._measure()
            state = state.add(score, earlier + time.perf_counter() - began)
            self.report(Progress(state.epoch, self.options.epochs, self.steps, self.steps, score=score))
            if state.best == state.epoch:
                self._write(folder / BEST, self.model.state_dict())
            self._write(folder / CHECKPOINT, {"name": name, "state": asdict(state), "model": self.model.state_dict(),
                                              "optimizer": optimizer.state_dict()})  # fmt: skip
        return state

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return -(-self.task.known.count_pairs(self.options.positives) // self.options.batch_size)

    @property
    def _torch(self) -> Any:
        import torch

        return torch

    # ---- an epoch

    def _train_epoch(self, epoch: int, optimizer: Any) -> None:
        """What is drawn depends on the seed and the epoch alone, so that a resumed training is the same training."""
        options = self.options
        rng = np.random.default_rng([options.seed, epoch])
        self._torch.manual_seed(int(rng.integers(2**31)))
        mined = Mined(self.mined, options.hard_negatives)
        drawn = batches.make_batches(self.task.known, mined, options.positives, options.batch_size, rng)
        scaler = self._torch.amp.GradScaler(self.model.device.type, enabled=self._precision == self._torch.float16)
        self.model.train()
        for step, batch in enumerate(drawn, 1):
            for group in optimizer.param_groups:
                group["lr"] = self._rate((epoch - 1) * self.steps + step)
            loss = self._step(batch, optimizer, scaler)
            self.report(Progress(epoch, options.epochs, step, self.steps, loss=loss))

    def _rate(self, step: int) -> float:
        total = self.steps * self.options.epochs
        rising = max(1.0, self.options.warmup * total)
        return self.options.learning_rate * min(step / rising, (total + 1 - step) / max(1.0, total + 1 - rising))

    def _step(self, batch: Batch, optimizer: Any, scaler: Any) -> float:
        torch = self._torch
        optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            loss = self._loss(batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LONGEST_GRADIENT)
        scaler.step(optimizer)
        scaler.update()
        return float(loss.detach())

    def _loss(self, batch: Batch) -> Any:
        """Cross-entropy of the right text among all texts of the batch that are not masked, weighted mean of pairs."""
        torch, device = self._torch, self.model.device
        asked = self._embed([self._query(self.task.questions[one]) for one in batch.questions])
        read = self._embed([self._document(self.task.texts[one]) for one in batch.texts])
        scores = (asked @ read.T).float() / self.options.temperature
        scores = scores.masked_fill(torch.from_numpy(batch.masked).to(device), -torch.inf)
        losses = torch.nn.functional.cross_entropy(scores, torch.from_numpy(batch.wanted).to(device), reduction="none")
        weights = torch.tensor(batch.weights, dtype=losses.dtype, device=device)
        return (losses * weights).sum() / weights.sum()

    def _embed(self, texts: list[str]) -> Any:
        prepare = getattr(self.model, "preprocess", None) or self.model.tokenize
        features = {name: one.to(self.model.device) for name, one in prepare(texts).items() if hasattr(one, "to")}
        found = self.model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(found, dim=-1)

    def _query(self, text: str) -> str:
        return self._prefix(self.options.query_prefix, "query") + text

    def _document(self, text: str) -> str:
        return self._prefix(self.options.document_prefix, "document") + text

    def _prefix(self, given: str | None, side: str) -> str:
        if given is not None:
            return given
        return str(self.model.prompts.get(side) or "")

    # ---- measuring and mining

    def _measure(self) -> float | None:
        """nDCG@10 of the held-out questions; on the way, what the encoder now confuses is noted for the next epoch."""
        texts = self._encode([self._document(one) for one in self.task.texts])
        if self.options.hard_negatives:
            deep = self.options.mined_depth + max(map(len, self.task.known.positives), default=0)
            found = self._rank(self.task.questions, texts, deep)
            rows = zip(self.task.named, self.task.known.remove(found), strict=True)
            named = self.options.hard_negatives
            self.mined = [
                np.unique(np.array([*given[:named], *row[: self.options.mined_depth]], np.int64)) for given, row in rows
            ]
        if not self.task.held_out:
            return None
        return batches.mean_ndcg(self._rank(self.task.held_out, texts, batches.CUTOFF), self.task.held_out_positives)

    def _rank(self, questions: Sequence[str], texts: Any, depth: int) -> Ints:
        torch = self._torch
        asked = self._encode([self._query(one) for one in questions])
        parts = [asked[start : start + ASKED] @ texts.T for start in range(0, len(asked), ASKED)]
        best = [torch.topk(part, min(depth, len(texts))).indices for part in parts]
        found: Ints = torch.cat(best).cpu().numpy()
        return found

    def _encode(self, texts: list[str]) -> Any:
        """Short and long texts in batches of their own; the vectors come in the order of the texts."""
        torch = self._torch
        size = ENCODED * 4 if self.model.device.type == "cuda" else ENCODED
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        self.model.eval()
        with torch.inference_mode(), self._autocast():
            parts = [order[start : start + size] for start in range(0, len(order), size)]
            made = torch.cat([self._embed([texts[place] for place in part]).float() for part in parts])
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return made[back.to(made.device)]

    @property
    def _precision(self) -> Any:
        """Half precision on a GPU alone."""
        if self.model.device.type != "cuda":
            return None
        return self._torch.bfloat16 if self._torch.cuda.is_bf16_supported() else self._torch.float16

    def _autocast(self) -> Any:
        precision = self._precision
        return nullcontext() if precision is None else self._torch.autocast(self.model.device.type, dtype=precision)

    # ---- files

    def _restore(self, file: Path, name: str, optimizer: Any) -> State | None:
        """The last finished epoch of the same training, if any."""
        if not file.exists():
            return None
        known = self._torch.load(file, map_location=self.model.device, weights_only=True)
        if known["name"] != name:
            return None
        self.model.load_state_dict(known["model"])
        optimizer.load_state_dict(known["optimizer"])
        return State(**{**known["state"], "scores": tuple(known["state"]["scores"])})

    def _write(self, file: Path, content: Any) -> None:
        """The whole file, or the one before."""
        part = file.with_suffix(".part")
        self._torch.save(content, part)
        part.replace(file)

    def _save_model(self, folder: Path) -> None:
        part = folder.with_suffix(".part")
        for old in (part, folder):
            shutil.rmtree(old, ignore_errors=True)
        with quiet():
            self.model.save(str(part), create_model_card=False)
        part.replace(folder)


@contextmanager
def own_length(model: Any, length: int | None) -> Iterator[None]:
    """At most so many tokens of a text, and afterwards as many as before."""
    before = model.max_seq_length
    if length is not None:
        model.max_seq_length = min(length, before or length)
    try:
        yield
    finally:
        model.max_seq_length = before


def device_name(device: Any) -> str:
    """NVIDIA H200, or the number of threads of a CPU."""
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"CPU, {torch.get_num_threads()} threads"
