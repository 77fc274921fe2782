"""What a memory's directory may reach: settings in it name no host, key, code, model or file that nobody allowed.

A directory may come from anybody. Each setting that reaches outside is a need, and each need must be met by an
allowance from outside the directory: an argument of evokey.open, `evokey allow`, or the user's own configuration. An
allowance is the very thing, as text: an address (https://host:port), a variable and where it may go
(NAME@https://host:port), code (module:function), a model of the hub (owner/name, owner/name@revision), or a path (all
below it is allowed too). docs/security.md says the same for users.
"""

from __future__ import annotations

import inspect
import json
import os
import shlex
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from evokey import registry
from evokey.encoders.presets import preset
from evokey.errors import InvalidSettings, NotAllowed, UnknownComponent
from evokey.llm.prompts import is_text

FILES = frozenset({"at", "file", "folder", "queries", "prompt"})
"""Options that name a file or a folder to read or write. Those inside the memory's directory are its own."""
LOCAL = {
    "encoder": {"onnx", "sentence-transformers", "token-vectors", "bge-m3", "bge-m3-sparse", "bge-m3-multi", "splade"},
    "reranker": {"cross-encoder"},
    "llm": {"llamacpp"},
    "expander": {"turbo-rewriter"},
}
"""Components that load a model here: what is in its files runs, wherever they lie."""
CONFIGURATION, ALLOWED = "config.toml", "allowed.json"
MODELS, MODEL = "models", "model"
"""Where the revisions of tuned encoders are, and in each of them a model, if it is one."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of a memory as its settings name it."""

    setting: str
    kind: str
    name: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Need:
    """Something outside the directory that a setting reaches."""

    setting: str
    allowance: str
    what: str


def needs(components: Iterable[Component], folder: Path) -> list[Need]:
    """All that these components reach outside the memory's folder, parts inside parts too."""
    return [need for one in components for need in _needs(one, folder)]


def check(wanted: Sequence[Need], granted: Iterable[str], folder: Path) -> None:
    """Raise if anything is needed that nobody allowed; the error says how to."""
    known = list(granted)
    missing = [need for need in wanted if not is_met(need, known)]
    if not missing:
        return
    told = "; ".join(f"{one.setting} {one.what}: {one.allowance}" for one in missing)
    unmet = list(dict.fromkeys(one.allowance for one in missing))
    if not all(one.isprintable() for one in unmet):
        raise InvalidSettings(
            f"{folder}: {missing[0].setting} contains characters that are not allowed in a name: {unmet!r}"
        )
    typed = shlex.join(["evokey", "allow", *unmet, "--at", str(folder)])  # it may be hostile, and is copied
    raise NotAllowed(
        f"{folder} reaches outside its own directory: {told}. A directory cannot allow that itself. If you trust it, "
        f"run: {typed}; or open it with evokey.open(…, allow={unmet!r}); or, for all memories, add it to allow in "
        f"{configuration()}"
    )


def models(folder: Path) -> list[Need]:
    """Models in a directory, of encoders that were tuned: what is in their files runs."""
    found = sorted(folder.glob(f"{MODELS}/*/{MODEL}"))
    return [Need(str(path.relative_to(folder)), str(path.resolve()), "is a model that was trained") for path in found]


def links(folder: Path) -> list[Need]:
    """Links in a directory that lead out of it. Devices and pipes have no place there."""
    found, home = [], folder.resolve()
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent) / name for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) and not path.resolve().is_relative_to(home):
                found.append(Need(str(path.relative_to(folder)), str(path.resolve()), "is a link to"))
            elif not (stat.S_ISLNK(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise InvalidSettings(
                    f"{path} is neither a file nor a folder, and does not belong in a memory; remove it"
                )
    return found


def outside(setting: str, path: Path, folder: Path) -> list[Need]:
    """The need of a path, unless it lies in the folder."""
    there = Path.cwd() / path
    return [] if there.resolve().is_relative_to(folder.resolve()) else [Need(setting, str(there.resolve()), "is")]


def _needs(one: Component, folder: Path) -> Iterator[Need]:
    try:
        found = registry.component(one.kind, one.name)
    except UnknownComponent:
        return  # it cannot be made
    if not found.package:
        yield Need(one.setting, one.name, "names code to run")
    if found.package == "evokey":
        yield from _needs_of_own(one)
    else:
        yield from _needs_of_foreign(one)
    for option in sorted(FILES & one.options.keys()):
        if isinstance(one.options[option], str) and not (option == "prompt" and is_text(one.options[option])):
            yield from outside(f"{one.setting}.{option}", Path(one.options[option]).expanduser(), folder)
    for option in sorted(registry.INSIDE.keys() & one.options.keys()):
        held, kind = one.options[option], registry.INSIDE[option]
        for inner in held if isinstance(held, list | tuple) else [held]:
            if isinstance(inner, str | Mapping):
                yield from _needs(Component(f"{one.setting}.{option}", kind, *registry.name_and_options(inner)), folder)


def _needs_of_own(one: Component) -> Iterator[Need]:
    """What evokey's own components reach is known."""
    if "base_url" in one.options or "key_env" in one.options:
        yield from _host(one)
    if one.name in LOCAL.get(one.kind, ()) or "model" in registry.component(one.kind, one.name).options:
        yield from _model(one)
    if one.kind == "store" and isinstance(one.options.get("uri"), str):
        yield from _engine(one)
    if isinstance(one.options.get("function"), str):
        yield Need(f"{one.setting}.function", one.options["function"], "names code to run")


def _needs_of_foreign(one: Component) -> Iterator[Need]:
    """What an option of another package's component reaches is not known here, so every text is a need."""
    for option, value in one.options.items():
        if option not in FILES and option not in registry.INSIDE:
            for text in _texts(value):
                yield Need(f"{one.setting}.{option}", text, f"is given to a component of another package, {one.name}")


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value of TOML."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _host(one: Component) -> Iterator[Need]:
    """Where a key is sent counts with the key; the provider's own key at its own address is no need."""
    address, variable = one.options.get("base_url"), one.options.get("key_env")
    try:
        provider = registry.load(one.kind, one.name).provider
        home, origin = provider.origin(), provider.origin(address)
    except UnknownComponent:  # what is not installed cannot be called
        provider, home, origin = None, "", str(address)
    if variable is not None and not (origin == home and variable == provider.key_env):
        yield Need(f"{one.setting}.key_env", f"{variable}@{origin}", "sends an environment variable to a host")
    elif origin != home:
        yield Need(f"{one.setting}.base_url", origin, "names a host")


def _engine(one: Component) -> Iterator[Need]:
    """Where the keys of documents are sent; a file is a path, and the user's own to name."""
    uri, variable = str(one.options["uri"]), one.options.get("token_env")
    parts = urlsplit(uri)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else uri
    yield Need(f"{one.setting}.uri", origin, "names where keys are kept")
    if variable is not None:
        yield Need(f"{one.setting}.token_env", f"{variable}@{origin}", "sends an environment variable to a host")


def _model(one: Component) -> Iterator[Need]:
    """A model that evokey itself names is no need, unless a folder here or a revision stands in for it."""
    own = registry.component(one.kind, one.name).options.get("model") or _default(one)
    name, revision = one.options.get("model") or own, one.options.get("revision")
    if not isinstance(name, str):
        return
    known = preset(name) is not None
    if not known and Path(name).expanduser().exists():
        yield Need(f"{one.setting}.model", str(Path(name).expanduser().resolve()), "names a model here")
    elif revision is not None or not (known or name == own):
        yield Need(f"{one.setting}.model", f"{name}@{revision}" if revision else name, "names a model to load")


def _default(one: Component) -> Any:
    try:
        parameters = inspect.signature(registry.load(one.kind, one.name)).parameters
    except UnknownComponent:
        return None
    return parameters["model"].default if "model" in parameters else None


def is_met(need: Need, known: Sequence[str]) -> bool:
    """Whether it is allowed. Where a key may go, calls may go; below a path that is allowed, all is."""
    wanted, path = need.allowance, Path(need.allowance)
    if wanted in known or ("://" in wanted and any(one.partition("@")[2] == wanted for one in known)):
        return True
    return path.is_absolute() and any(path.is_relative_to(one) for one in known if Path(one).is_absolute())


# ---- what the user allowed, outside of all memories


def configuration() -> Path:
    """The file in which users write what every memory may reach: allow = ["…"]."""
    return _own("XDG_CONFIG_HOME", ".config", "APPDATA") / CONFIGURATION


def allowances(folder: Path) -> list[str]:
    """What the user's configuration allows all memories, and what was allowed this one."""
    return [*_read_configuration(), *_read_allowances().get(str(folder.resolve()), [])]


def record(folder: Path, allowances: Iterable[str]) -> None:
    """Note, in the user's own state directory, what the memory at this place may reach."""
    wanted = list(dict.fromkeys(allowances))
    if not wanted:
        return

    def add(known: dict[str, list[str]]) -> None:
        place = str(folder.resolve())
        known[place] = list(dict.fromkeys([*known.get(place, []), *wanted]))

    _change(add)


def withdraw(folder: Path) -> None:
    """Allow the memory at this place nothing of its own any more."""
    _change(lambda known: known.pop(str(folder.resolve()), None))


def _change(edit: Callable[[dict[str, list[str]]], object]) -> None:
    file = _state()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(f"{file}.lock"):
        known = _read_allowances()
        edit(known)
        making = file.with_suffix(f".{os.getpid()}.tmp")
        making.write_text(json.dumps(known, indent=1, ensure_ascii=False), "utf-8")
        making.replace(file)


def _read_allowances() -> dict[str, list[str]]:
    try:
        found: dict[str, list[str]] = json.loads(_state().read_text("utf-8"))
    except OSError:  # nothing that can be read allows anything
        return {}
    except ValueError as error:
        raise InvalidSettings(
            f"{_state()} cannot be read ({error}); correct it, or remove it and allow again"
        ) from error
    return found


def _read_configuration() -> list[str]:
    file = configuration()
    try:
        found = tomllib.loads(file.read_text("utf-8")).get("allow", [])
    except OSError:
        return []
    except ValueError as error:
        raise InvalidSettings(f"{file} cannot be read as TOML: {error}") from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidSettings(f'{file}: allow is a list of texts, such as allow = ["http://127.0.0.1:11434"]')
    return found


def _state() -> Path:
    return _own("XDG_STATE_HOME", ".local/state", "LOCALAPPDATA") / ALLOWED


def _own(variable: str, below_home: str, on_windows: str) -> Path:
    """A folder of this user, where the system keeps such things."""
    if os.environ.get(variable):
        return Path(os.environ[variable]) / "evokey"
    if sys.platform == "win32" and os.environ.get(on_windows):
        return Path(os.environ[on_windows]) / "evokey"
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home has allowed nothing, and nothing can be noted
        return Path(os.devnull) / "evokey"
    return home / ("Library/Application Support" if sys.platform == "darwin" else below_home) / "evokey"
