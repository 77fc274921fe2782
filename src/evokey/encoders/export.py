"""A sentence-transformers model → a folder that `Onnx` runs without torch.

In int8 some layers lose more than others, first of all the second half of a feed-forward block, whose input has
outliers. They stay in fp32, from the first block on, as many as it takes for the vectors to agree with torch's.
Nothing lies at the folder's place before it has been compared with torch.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evokey.encoders.hub import identity_of, quiet
from evokey.encoders.onnx import MODEL, NOTE, PRECISIONS, TOKENIZER, Note, Onnx, place
from evokey.encoders.presets import PRESETS
from evokey.encoders.sentence_transformers import SentenceTransformers
from evokey.errors import InvalidSettings
from evokey.registry import needs
from evokey.types import Vectors

needs("torch", "onnx", "onnxscript", "onnxruntime")

LEAST = {"fp32": 0.999, "int8": 0.99}
"""Cosine that every vector must have to torch's."""
SAFE = {"fp32": 0.999, "int8": 0.9925}
"""The same on the sentences below: others may do a little worse."""
OPSET = 18
"""Later ones have an own operator for GELU, which onnxruntime runs slowly."""

SENTENCES = [
    "Owls hunt at night.",
    "git revert",
    "What causes high blood pressure?",
    "The committee adjourned without a vote, and the matter was referred to the council's spring session.",
    "0-dimensional biomaterials show inductive properties.",
    "Heat transfer in hypersonic flow over a blunt body with a detached shock wave.",
    "Flights from Boston to Denver on Tuesday morning, under 300 dollars.",
    "He said: “No — not today!”, and closed the door (quietly).",
    "for i in range(10): print(i ** 2)",
    "Statin use lowers cholesterol but may raise the risk of diabetes in older women.",
    "La neige tombe depuis trois jours sur la vallée.",
    "boundary layer",
    "ACE2 receptors; TNF-α; IL-6; p < 0.05",
    "My card was declined at the cafe, how do I raise its limit?",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "An index is a promise that something can be found again.",
]
TEXTS = [*SENTENCES, *(" ".join(SENTENCES[start : start + 6]) for start in range(0, 16, 3)), " ".join(SENTENCES * 2)]


def export(model: str, folder: str | Path | None = None, precision: str = "int8", revision: str | None = None) -> Path:
    """Make the folder of a model: a preset's in its own place unless another is given. Returns where it is."""
    if precision not in PRECISIONS:
        raise InvalidSettings(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")
    if folder is None and model not in PRESETS:
        raise InvalidSettings(f"name the folder into which {model} goes; only presets have a place of their own")
    target = place(model, precision) if folder is None else Path(folder).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidSettings(f"{target} already exists; give a new folder, or remove it first")
    target.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with _still():
            _make(SentenceTransformers(model, revision, device="cpu"), making, precision)
        making.chmod(0o755)
        making.replace(target)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def _make(source: SentenceTransformers, folder: Path, precision: str) -> None:
    note = _note(source, precision)
    (folder / NOTE).write_text(json.dumps(asdict(note), indent=1, ensure_ascii=False) + "\n", "utf-8")
    source._model.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    wanted = source.documents(TEXTS)
    whole = folder / ("whole.onnx" if precision == "int8" else MODEL)
    _trace(source._model[0].auto_model, note.inputs, whole)
    if precision == "int8":
        _quantise(whole, folder, wanted)
        whole.unlink()
    worst = _agreement(folder, wanted)
    if worst < LEAST[precision]:
        raise InvalidSettings(
            f"{source.model} cannot be exported in {precision}: a vector agrees with torch's by a cosine of "
            f"{worst:.4f} alone, and {LEAST[precision]} is asked for"
            f"{'; try --precision fp32' if precision == 'int8' else ''}"
        )


def _note(source: SentenceTransformers, precision: str) -> Note:
    model = source._model
    kinds = [type(module).__name__ for module in model]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise InvalidSettings(f"{source.model} cannot be exported: it is made of {', '.join(kinds)}")
    mode = getattr(model[1], "pooling_mode", None) or model[1].get_pooling_mode_str()
    if mode not in ("mean", "cls"):
        raise InvalidSettings(f"{source.model} cannot be exported: it pools by {mode!r}, not by mean or cls")
    prompts = model.prompts
    return Note(
        identity=identity_of(source.model, source.revision),
        dimension=int(model.get_embedding_dimension()),
        precision=precision,
        pooling=mode,
        query_prefix=prompts.get("query", "") if source.query_prefix is None else source.query_prefix,
        document_prefix=prompts.get("document", "") if source.document_prefix is None else source.document_prefix,
        max_length=int(model.max_seq_length),
        pad=int(model.tokenizer.pad_token_id),
        inputs=_inputs(model),
    )


def _inputs(model: Any) -> tuple[str, ...]:
    given = model.tokenizer(["a text"])
    return tuple(name for name in ("input_ids", "attention_mask", "token_type_ids") if name in given)


def _trace(transformer: Any, inputs: tuple[str, ...], path: Path) -> None:
    import torch

    class Hidden(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.transformer = transformer

        def forward(self, *given: Any) -> Any:
            return self.transformer(**dict(zip(inputs, given, strict=True))).last_hidden_state

    transformer.set_attn_implementation("eager")
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    example = tuple(torch.ones((2, 8), dtype=torch.int64) for _ in inputs)
    torch.onnx.export(
        Hidden().eval(),
        example,
        str(path),
        input_names=list(inputs),
        output_names=["hidden"],
        dynamic_shapes=(tuple(sizes for _ in inputs),),
        dynamo=True,
        external_data=False,
        opset_version=OPSET,
        verbose=False,
    )


def _quantise(whole: Path, folder: Path, wanted: Vectors) -> None:
    from onnxruntime.quantization import quantize_dynamic

    sensitive = _narrowing(whole)
    for left_whole in range(len(sensitive) + 1):
        quantize_dynamic(
            whole,
            folder / MODEL,
            per_channel=True,
            op_types_to_quantize=["MatMul"],
            nodes_to_exclude=sensitive[:left_whole],
        )
        if _agreement(folder, wanted) >= SAFE["int8"]:
            return


def _narrowing(path: Path) -> list[str]:
    """The products that make a long vector shorter, in order: the second half of each feed-forward block."""
    import onnx

    graph = onnx.load(str(path)).graph
    shapes = {one.name: tuple(one.dims) for one in graph.initializer}
    products = [(node.name, shapes.get(node.input[1], (0, 0))) for node in graph.node if node.op_type == "MatMul"]
    return [name for name, shape in products if len(shape) == 2 and shape[0] > shape[1]]


def _agreement(folder: Path, wanted: Vectors) -> float:
    """The worst cosine, all at once and one by one."""
    made = Onnx(str(folder))
    alone = np.concatenate([made.documents([text]) for text in TEXTS])
    return float(min((made.documents(TEXTS) * wanted).sum(axis=1).min(), (alone * wanted).sum(axis=1).min()))


@contextmanager
def _still() -> Iterator[None]:
    """Exporters warn and log, and one configures the root logger: nothing of that is the caller's business."""
    handlers, before = logging.root.handlers[:], logging.root.manager.disable
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)
            logging.root.handlers[:] = handlers
