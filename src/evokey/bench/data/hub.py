"""Files of the hub's data sets: fetched once, then read where they lie, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evokey.errors import InvalidInput, ServiceFailed, UnknownComponent


def fetch(repository: str, patterns: Sequence[str], cache: Path | None = None) -> Path:
    """The folder that holds these files of a data set's repository; its name is their revision."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, HTTPError, RepositoryNotFoundError
    except ModuleNotFoundError as error:
        raise UnknownComponent(
            f"{repository} is on the hub, and {error.name} is not installed. "
            f"Install it with: pip install 'evokey[hub]', or give a folder in BEIR layout"
        ) from error
    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=list(patterns), cache_dir=cache))
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise InvalidInput(f"the hub has no data set {repository}, or none that is open. Check its name.") from error
    except (OSError, HTTPError) as error:
        raise ServiceFailed(
            f"{repository} is neither in the hub's cache on this machine nor could it be fetched "
            f"({_line(error)}). Go online once, copy the cache of a machine that has it and name its folder as cache, "
            f"or give a folder in BEIR layout"
        ) from error


def lacking(what: str, folder: Path) -> InvalidInput:
    return InvalidInput(
        f"{folder} holds no {what} in a known form (.jsonl, .jsonl.gz, .tsv, .parquet). "
        f"If a download broke off, delete the folder and load again; else the hub has changed its files"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
