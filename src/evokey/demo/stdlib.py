"""The documentation of the Python standard library, read from the interpreter that runs: no file to download, the same
corpus for everybody with the same Python. `entries()` imports the public modules, takes every docstring it finds on a
module, class, function, method or property, and names each one the way its users do: `os.path.dirname`, `str.join`,
`len`. An object reachable under several names appears once, under its public home."""

import importlib
import inspect
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

# Importing these prints, opens a browser, takes over the terminal, or needs Tk, which many machines lack.
_SIDE_EFFECTS = {"antigravity", "this", "readline", "rlcompleter", "tkinter", "turtle", "turtledemo", "idlelib"}
# Their contents have a public home elsewhere (os, os.path, re, dis, xml.parsers.expat, urllib.request).
_IMPLEMENTATIONS = {"posix", "nt", "posixpath", "ntpath", "genericpath", "nturl2path", "opcode", "pyexpat"}
_IMPLEMENTATIONS |= {"sre_compile", "sre_constants", "sre_parse"}
_NOT_FOR_USERS = {"ensurepip", "lib2to3", "pydoc_data", "test", "tests", "xxlimited", "xxlimited_35", "xxsubtype"}
# Gone by Python 3.13: left out of 3.11 and 3.12 too, so that nobody is sent to a dead end.
_REMOVED = {"aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp"}
_REMOVED |= {"mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau"}
_REMOVED |= {"telnetlib", "uu", "xdrlib"}
_SKIPPED = _SIDE_EFFECTS | _IMPLEMENTATIONS | _NOT_FOR_USERS | _REMOVED

# Packages whose documentation names few of their submodules or none; of any other package all public ones are read.
_DOCUMENTED_PARTS: dict[str, set[str]] = {
    "asyncio": set(),
    "concurrent.futures": set(),
    "ctypes": {"util"},
    "encodings": {"idna"},
    "importlib": {"abc", "machinery", "metadata", "resources", "util"},
    "importlib.metadata": set(),
    "importlib.resources": {"abc"},
    "json": set(),
    "multiprocessing": {"connection", "managers", "pool", "shared_memory", "sharedctypes"},
    "sqlite3": set(),
    "unittest": {"mock"},
    "xml.dom": {"minidom", "pulldom"},
    "xml.etree": {"ElementTree"},
    "xml.parsers": {"expat"},
    "xml.parsers.expat": set(),
}

# A second name of a class that hides the one people use: the methods belong to socket.socket.
_HIDING_ALIASES = {"socket.SocketType"}

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Docstrings that no person wrote: of enumerations and the fields of named tuples; and, of named tuples, dataclasses and
# syntax nodes, those that only repeat the name or the signature.
_GENERATED = ("An enumeration.", "Alias for field number")
_NAME_OR_CALL = re.compile(r"\w+(\([^()]*\))?")
_PLAIN_DEFAULTS = (bool, int, float, str, bytes, type(None))


class _Elided:
    def __repr__(self) -> str:
        return "..."


@dataclass(frozen=True)
class Entry:
    """One documented name: `kind` is module, class, function, method, property or form (typing's `Optional`)."""

    id: str
    title: str
    text: str
    kind: str
    module: str


@dataclass(frozen=True)
class _Candidate:
    """A public name under which an object was found; the lowest `rank` becomes its home."""

    rank: tuple[int, bool, bool, bool, int, str]
    id: str
    kind: str
    module: str
    found: object


def entries() -> list[Entry]:
    """Read the corpus, sorted by id; about a second, half of it imports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = dict(_public_modules())
        homes = _best_homes(_exports(modules))
        members = _best_homes(_members(homes))
        written = {entry.id: entry for entry in map(_entry, [*members.values(), *homes.values()]) if entry}
    return [written[id] for id in sorted(written) if not _echoes_function(written[id], written)]


def _public_modules() -> Iterator[tuple[str, types.ModuleType]]:
    for name in sorted(sys.stdlib_module_names - _SKIPPED):
        yield from _module_tree(name)
    # os.path is an attribute, not a submodule that a walk would find.
    yield from _module_tree("os.path")


def _module_tree(name: str) -> Iterator[tuple[str, types.ModuleType]]:
    """The module and, for a package, its documented submodules; nothing where the platform lacks it."""
    if not _is_public(name):
        return
    try:
        module = importlib.import_module(name)
    except ImportError:
        return
    yield name, module
    parts = {part.name for part in pkgutil.iter_modules(getattr(module, "__path__", []))} - _SKIPPED
    for part in sorted(parts & _DOCUMENTED_PARTS.get(name, parts)):
        yield from _module_tree(f"{name}.{part}")


def _exports(modules: dict[str, types.ModuleType]) -> Iterator[_Candidate]:
    for name, module in modules.items():
        yield _Candidate((0, False, False, False, 0, name), name, "module", name, module)
        declared = getattr(module, "__all__", None)
        for public in sorted(vars(module) if declared is None else declared):
            found = getattr(module, public, None)
            kind = _export_kind(found)
            if kind and _is_public(f"{name}.{public}") and (declared is not None or _belongs(found, name)):
                yield _candidate(name, public, found, kind)


def _is_public(id: str) -> bool:
    return not id.rpartition(".")[2].startswith("_") and id not in _HIDING_ALIASES


def _export_kind(found: object) -> str:
    if inspect.isclass(found):
        return "class"
    if inspect.isroutine(found) or "__wrapped__" in getattr(found, "__dict__", ()):
        return "function"
    if type(found).__module__ == "typing" and found.__doc__ != type(found).__doc__:
        return "form"
    return ""


def _belongs(found: object, module: str) -> bool:
    """Whether a module without `__all__` defines the object, or shows what its C half defines, and did not import it
    for its own use."""
    origin = getattr(found, "__module__", None) or module
    return module == "builtins" or origin == module or origin.startswith("_") or origin in _IMPLEMENTATIONS


def _candidate(module: str, public: str, found: object, kind: str) -> _Candidate:
    if module == "builtins":
        return _Candidate((0, _is_renamed(found, public), False, False, 0, public), public, kind, module, found)
    id = f"{module}.{public}"
    undeclared = public not in getattr(sys.modules[module], "__all__", ())
    foreign = _package(getattr(found, "__module__", None) or "") != _package(module)
    return _Candidate((0, _is_renamed(found, public), undeclared, foreign, id.count("."), id), id, kind, module, found)


def _is_renamed(found: object, public: str) -> bool:
    return bool(getattr(found, "__name__", public) != public)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _best_homes(candidates: Iterable[_Candidate]) -> dict[int, _Candidate]:
    best: dict[int, _Candidate] = {}
    for candidate in candidates:
        key = id(candidate.found)
        if key not in best or candidate.rank < best[key].rank:
            best[key] = candidate
    return best


def _members(homes: dict[int, _Candidate]) -> Iterator[_Candidate]:
    for home in homes.values():
        if isinstance(home.found, type):
            for distance, base in enumerate(home.found.__mro__):
                if base is home.found or (id(base) not in homes and _is_hidden_part(base, home.module)):
                    yield from _own_members(home, base, nearer=home.found.__mro__[:distance])


def _is_hidden_part(base: type, module: str) -> bool:
    """Whether a base class without a public name, such as _socket.socket, lends its methods to the public class."""
    return base.__module__.startswith("_") or _package(base.__module__) == _package(module)


def _own_members(home: _Candidate, base: type, nearer: tuple[type, ...]) -> Iterator[_Candidate]:
    for name, member in vars(base).items():
        kind = _member_kind(member)
        overridden = any(name in vars(owner) for owner in nearer)
        if kind and _is_public(name) and not overridden:
            # Of two classes as near to a private base the shorter name is the usual one: ExitStack, AsyncExitStack.
            rank = (len(nearer), _is_renamed(member, name), False, False, len(home.id), f"{home.id}.{name}")
            yield _Candidate(rank, f"{home.id}.{name}", kind, home.module, member)


def _member_kind(member: object) -> str:
    # A descriptor without a docstring of its own shows its type's; a bare builtin is a setting, not a method.
    if _function_inside(member).__doc__ == type(member).__doc__ or inspect.isbuiltin(member):
        return ""
    if isinstance(member, cached_property) or inspect.isdatadescriptor(member):
        return "property"
    return "method" if inspect.isroutine(member) else ""


def _function_inside(member: object) -> Any:
    """What a class or static method wraps; 3.11 gives the wrapper of a C function the docstring of its type."""
    return member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def _entry(candidate: _Candidate) -> Entry | None:
    docstring = _function_inside(candidate.found).__doc__
    text = _ADDRESS.sub("", inspect.cleandoc(docstring)).strip() if isinstance(docstring, str) else ""
    if not text or text.startswith(_GENERATED) or _NAME_OR_CALL.fullmatch(text):
        return None
    return Entry(candidate.id, candidate.id + _call(candidate, text), text, candidate.kind, candidate.module)


def _call(candidate: _Candidate, text: str) -> str:
    """The parenthesised parameters, from the object or else from the first line of its docstring."""
    if candidate.kind not in {"class", "function", "method"}:
        return ""
    try:
        return _parameters(candidate)
    except (TypeError, ValueError, AttributeError, NameError):
        # The last two: curses defaults exist only on an open screen; 3.14 evaluates annotations only when asked.
        written = re.match(rf"(?:\w+\.)?{re.escape(candidate.id.rpartition('.')[2])}(\([^()]*\))", text)
        return " ".join(written[1].split()) if written else ""


def _parameters(candidate: _Candidate) -> str:
    found = candidate.found
    if isinstance(found, type) and issubclass(found, Enum):
        return ""
    parameters = list(inspect.signature(_function_inside(found)).parameters.values())
    if candidate.kind == "method" and not isinstance(found, staticmethod):
        parameters = parameters[1:]
    return str(inspect.Signature([_readable(parameter) for parameter in parameters]))


def _readable(parameter: inspect.Parameter) -> inspect.Parameter:
    """Without annotation, and without a default whose repr is long or differs from run to run."""
    default = parameter.default
    if default is not parameter.empty and not isinstance(default, _PLAIN_DEFAULTS):
        default = _Elided()
    return parameter.replace(annotation=parameter.empty, default=default)


def _echoes_function(entry: Entry, written: dict[str, Entry]) -> bool:
    """Whether a module-level function of the same name and text exists: random.choice is random.Random.choice."""
    twin = written.get(f"{entry.module}.{entry.id.rpartition('.')[2]}")
    return twin is not None and twin.id != entry.id and twin.text == entry.text
