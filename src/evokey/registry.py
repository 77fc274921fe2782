"""A component of any kind: (kind, name) → class, imported on demand, and from there to the component itself.

A component of evokey's own is one line here, and one extra if it needs a package. Others join by an entry point of the
group evokey.components, named kind.name, or are named by their place, "module:Class".
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import Any

from evokey.errors import InvalidSettings, UnknownComponent

Options = Mapping[str, Any]
Named = str | Options
"""A component by its name, or with options: {"name": "bm25", "language": "german"}."""
Described = Any
"""The same, or the component itself, an object; of a store, its class."""
GROUP = "evokey.components"
"""The group of entry points by which other packages join. What is installed is trusted."""
OBJECT = "object"
"""The name, in settings, of a component that was passed as an object and cannot be built from its settings."""


@dataclass(frozen=True, slots=True)
class Component:
    path: str
    """module:Class"""
    extra: str | None = None
    """The extra of this project that installs what the module imports."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that this name stands for; those a user gives go over them."""
    about: str = ""
    """One line for lists; without it, the first line of the module's docstring."""
    package: str = "evokey"
    """The installed package that it comes with; "": named by its place."""


INSIDE = {
    "llm": "llm", "encoder": "encoder", "reranker": "reranker", "retrieval": "verifier", "generation": "verifier",
    "methods": "expander",
}  # fmt: skip
"""Options that hold a component, or a list of them, and its kind."""
OFFERS = {
    "encoder": ("kind", "cost", "identity", "documents", "queries"),
    "keys": ("rows",),
    "store": ("kinds", "exact", "snapshot", "open", "follow", "write", "flush", "check", "drop"),
    "fusion": ("fused", "weightings"),
    "reranker": ("identity", "scores"),
    "llm": ("identity", "complete", "stream"),
    "expander": ("identity", "expand"),
    "generator": ("identity", "answer", "stream"),
    "verifier": ("identity", "looks_at", "verify"),
    "policy": ("propose", "overlay"),
}
"""Kind → what a component of it must have (protocols.py says what each is)."""
_SENTENCES = "evokey.encoders.sentence_transformers:SentenceTransformers"
COMPONENTS: dict[str, dict[str, Component]] = {
    "keys": {
        "full": Component("evokey.keys.full:Full"),
        "auto": Component("evokey.keys.auto:Auto"),
        "title": Component("evokey.keys.title:Title"),
        "abstract": Component("evokey.keys.abstract:Abstract"),
        "keywords": Component("evokey.keys.keywords:Keywords"),
        "chunks": Component("evokey.keys.chunks:Chunks"),
    },
    "encoder": {
        "bm25": Component("evokey.encoders.bm25:BM25"),
        "wordllama": Component("evokey.encoders.wordllama:WordLlamaEncoder"),
        "given": Component("evokey.encoders.given:Given"),
        "openai": Component("evokey.encoders.openai:OpenAI", "remote"),
        "cohere": Component("evokey.encoders.cohere:Cohere", "remote"),
        "voyage": Component("evokey.encoders.voyage:Voyage", "remote"),
        "cached": Component("evokey.encoders.cached:Cached"),
        "sentence-transformers": Component(_SENTENCES, "local"),
        **{
            name: Component(_SENTENCES, "local", {"model": name}, about)
            for name, about in {
                "all-MiniLM-L6-v2": "MiniLM (384 dimensions): small and good; its weights come with the package.",
                "gte-base": "GTE base (thenlper, 768 dimensions), from the hub.",
                "bge-base-en-v1.5": "BGE base (BAAI, 768 dimensions), with its query instruction, from the hub.",
                "bge-large-en-v1.5": "BGE large (BAAI, 1024 dimensions), with its query instruction, from the hub.",
                "distilbert-base-uncased": "DistilBERT, mean of its tokens (768 dimensions), from the hub.",
            }.items()
        },
        "token-vectors": Component(
            "evokey.encoders.sentence_transformers:TokenVectors",
            "local",
            about="Late interaction with any sentence-transformers model: a vector for each token.",
        ),
        "bge-m3": Component(
            "evokey.encoders.bge_m3:BgeM3",
            "local",
            about="BGE-M3, dense (1024 dimensions, many languages), from the hub.",
        ),
        "bge-m3-sparse": Component(
            "evokey.encoders.bge_m3:BgeM3Sparse",
            "local",
            about="BGE-M3, learned sparse: a weight for each token, from the hub.",
        ),
        "bge-m3-multi": Component(
            "evokey.encoders.bge_m3:BgeM3Multi",
            "local",
            about="BGE-M3, late interaction: a vector for each token, from the hub.",
        ),
        "splade": Component("evokey.encoders.splade:Splade", "local"),
        "onnx": Component("evokey.encoders.onnx:Onnx", "onnx"),
    },
    "reranker": {
        "cross-encoder": Component("evokey.search.rerankers.cross_encoder:CrossEncoder", "local"),
        "endpoint": Component("evokey.search.rerankers.endpoint:Endpoint", "remote"),
    },
    "store": {
        "flat": Component("evokey.stores.flat:FlatStore"),
        "late": Component("evokey.stores.late:LateStore"),
        "sparse": Component("evokey.stores.sparse:SparseStore"),
        "ann": Component("evokey.stores.ann:AnnStore", "ann"),
        "milvus": Component("evokey.stores.milvus:MilvusStore", "milvus"),
        "milvus-sparse": Component("evokey.stores.milvus_sparse:MilvusSparse", "milvus"),
        "pgvector": Component("evokey.stores.pgvector:PgVector", "postgres"),
    },
    "fusion": {
        "weighted": Component("evokey.search.fusion:Weighted"),
        "reciprocal": Component("evokey.search.fusion:Reciprocal"),
    },
    "llm": {
        "openai": Component("evokey.llm.openai:OpenAI", "remote"),
        "anthropic": Component("evokey.llm.anthropic:Anthropic", "remote"),
        "llamacpp": Component("evokey.llm.llamacpp:LlamaCpp", "llamacpp"),
        "recorded": Component("evokey.llm.recorded:Recorded"),
        "budgeted": Component("evokey.llm.budgeted:Budgeted"),
        "cached": Component("evokey.llm.cached:Cached"),
    },
    "expander": {
        "query": Component("evokey.expanders.query:Query"),
        "given": Component("evokey.expanders.given:Given"),
        "recorded": Component("evokey.expanders.recorded:Recorded"),
        "several": Component("evokey.expanders.several:Several"),
        "hyde": Component("evokey.expanders.hyde:HyDE"),
        "diver": Component("evokey.expanders.diver:Diver"),
        "decomposition": Component("evokey.expanders.decomposition:Decomposition"),
        "facet": Component("evokey.expanders.facet:Facet"),
        "contrastive": Component("evokey.expanders.contrastive:Contrastive"),
        "clarify": Component("evokey.expanders.clarify:Clarify"),
        "specify": Component("evokey.expanders.specify:Specify"),
        "custom-rewriter": Component("evokey.expanders.custom:CustomRewriter"),
        "bge-rewriter": Component("evokey.expanders.bge:BGERewriter"),
        "turbo-rewriter": Component("evokey.expanders.turbo:TurboRewriter"),
        "synonyms": Component("evokey.expanders.synonyms:Synonyms", "wordnet"),
        "prf": Component("evokey.expanders.prf:PRF"),
    },
    "ledger": {
        "postgres": Component("evokey.ledger.postgres.database:Postgres", "postgres"),
    },
    "tool": {
        "export-onnx": Component("evokey.encoders.export:export", "export"),
    },
    "verifier": {
        "labels": Component("evokey.verifiers.labels:Labels"),
        "answer-match": Component("evokey.verifiers.answer_match:AnswerMatch"),
        "rerank": Component("evokey.verifiers.rerank:Rerank"),
        "exact-match": Component("evokey.verifiers.exact_match:ExactMatch"),
        "token-f1": Component("evokey.verifiers.token_f1:TokenF1"),
        "rouge": Component("evokey.verifiers.rouge:Rouge", "rouge"),
        "task-loss": Component("evokey.verifiers.task_loss:TaskLoss"),
        "judge": Component("evokey.verifiers.judge:Judge"),
        "human": Component("evokey.verifiers.human:Human"),
        "custom": Component("evokey.verifiers.custom:Custom"),
        "unified": Component("evokey.verifiers.unified:Unified"),
    },
    "generator": {
        "cited": Component("evokey.generators.cited:Cited"),
    },
    "policy": {
        "guarded": Component("evokey.evolution.guarded:Guarded"),
        "paper": Component("evokey.evolution.paper:Paper"),
    },
}


def component(kind: str, name: str) -> Component:
    """Evokey's own first, then what is installed, then a class by its place; nothing is imported."""
    found = COMPONENTS[kind].get(name) or installed_components().get(kind, {}).get(name)
    if found is not None:
        return found
    if ":" in name:
        return Component(name, package="")
    known = ", ".join(sorted({*COMPONENTS[kind], *installed_components().get(kind, {})}))
    raise UnknownComponent(f"there is no {kind} called {name!r}; choose one of: {known}; or name its 'module:Class'")


def installed_components() -> Mapping[str, Mapping[str, Component]]:
    """Kind → name → component, of other packages."""
    return _find_installed(tuple(sys.path))


@lru_cache(maxsize=4)
def _find_installed(path: tuple[str, ...]) -> Mapping[str, Mapping[str, Component]]:
    found: dict[str, dict[str, Component]] = {}
    for entry in entry_points(group=GROUP):
        kind, _, name = entry.name.partition(".")
        package = entry.dist.name if entry.dist else entry.module
        found.setdefault(kind, {}).setdefault(name, Component(f"{entry.module}:{entry.attr}", package=package))
    return found


def load(kind: str, name: str) -> Any:
    """The class, or an error with the line to type when what it needs is not installed."""
    found = component(kind, name)
    module, _, attribute = found.path.partition(":")
    if found.package != "evokey":
        return _load_foreign(kind, name, found)
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if found.extra is None:
            raise
        raise UnknownComponent(
            f"{kind} {name!r} needs {error.name}; install it with: pip install 'evokey[{found.extra}]'"
        ) from error


def _load_foreign(kind: str, name: str, found: Component) -> Any:
    module, _, attribute = found.path.partition(":")
    try:
        return attrgetter(attribute)(import_module(module))
    except Exception as error:
        source = f" of the package {found.package}" if found.package else ""
        raise UnknownComponent(
            f"{kind} {name!r}{source} cannot be imported from {found.path}: {type(error).__name__}: {error}"
        ) from error


@dataclass(frozen=True, slots=True)
class Part:
    """A component as a list shows it."""

    name: str
    about: str
    installed: bool
    install: str | None
    """The line to type where something is missing, or what is wrong."""
    package: str = "evokey"
    """The package that it comes with."""


def parts(kind: str) -> list[Part]:
    """All components of a kind, those of other packages last, and whether what they need is there."""
    known = {**installed_components().get(kind, {}), **COMPONENTS[kind]}
    own = [name for name in known if known[name].package == "evokey"]
    return [_part(kind, name, known[name]) for name in (*own, *sorted(known.keys() - {*own}))]


def _part(kind: str, name: str, found: Component) -> Part:
    try:
        made, missing = load(kind, name), None
    except UnknownComponent as error:
        made, missing = None, f"pip install 'evokey[{found.extra}]'" if found.extra else str(error)
    if found.package == "evokey":
        about = found.about or _first_line(found.path.partition(":")[0])
    else:
        about = (inspect.getdoc(made) or "").partition("\n")[0] if made is not None else ""
    return Part(name, about, missing is None, missing, found.package)


def _first_line(module: str) -> str:
    """Of a module's docstring, without importing it."""
    source = find_spec(module)
    text = ast.get_docstring(ast.parse(Path(source.origin).read_text("utf-8"))) if source and source.origin else None
    return (text or "").partition("\n")[0]


def name_and_options(component: Named) -> tuple[str, dict[str, Any]]:
    """Name and options of a component."""
    if isinstance(component, str):
        return component, {}
    options = dict(component)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InvalidSettings(f"a component with options needs its name: {{'name': 'bm25', …}}, not {component!r}")
    return name, options


def build(kind: str, described: Any, **around: Any) -> Any:
    """A component of any kind: by its name, by name with options, or itself where it is an object already.

    Parts inside its options are built too (INSIDE). `around` is what the place offers where it will work, such as the
    memory's llm: it goes to parameters of that name which no option sets, here and in the parts inside.
    """
    if not isinstance(described, str | Mapping):
        return check_object(kind, described)
    name, options = name_and_options(described)
    make, preset = load(kind, name), component(kind, name).options
    taken = inspect.signature(make).parameters
    offered = {one: value for one, value in around.items() if one in taken and value is not None}
    given = {**offered, **preset, **options}
    _check_options(kind, name, taken, given, around)
    inside = {option: _build_inside(option, value, around) for option, value in given.items()}
    try:
        made = make(**inside)
    except TypeError as error:
        said = ", ".join(f"{option} = {value!r}" for option, value in options.items())
        raise InvalidSettings(f"{kind} {name!r} does not take these options: {said} ({error})") from error
    return made if component(kind, name).package == "evokey" else check_object(kind, made)


def _build_inside(option: str, value: Any, around: Mapping[str, Any]) -> Any:
    if option not in INSIDE or not isinstance(value, str | Mapping | list | tuple):
        return value
    if isinstance(value, list | tuple):
        return [build(INSIDE[option], one, **around) for one in value]
    return build(INSIDE[option], value, **around)


def _check_options(
    kind: str, name: str, taken: Mapping[str, inspect.Parameter], given: Mapping[str, Any], around: Mapping[str, Any]
) -> None:
    """Against the signature: no option that is unknown, none missing."""
    if any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return
    known = ", ".join(one for one in taken if one not in around) or "none"
    if unknown := [one for one in given if one not in taken]:
        raise InvalidSettings(f"{kind} {name!r} has no option {', '.join(unknown)}; its options are: {known}")
    missing = [name for name, one in taken.items() if one.default is one.empty and name not in given]
    if "llm" in missing:
        raise InvalidSettings(f"{kind} {name!r} asks a language model, and none is set: llm = {{name = …}}")
    if missing:
        raise InvalidSettings(f"{kind} {name!r} needs the option {', '.join(missing)}; its options are: {known}")


def check_object(kind: str, made: Any) -> Any:
    """The same object, if it has what its kind must offer. A store is made for its keys, so it is given as a class."""
    if isinstance(made, type) and kind != "store":
        raise InvalidSettings(f"{kind}: {made.__name__} is a class; pass an object of it: {made.__name__}(…)")
    missing = [one for one in OFFERS[kind] if not hasattr(made, one)]
    if missing:
        raise InvalidSettings(
            f"{kind} is a name, a mapping with name and options, or an object that has {', '.join(OFFERS[kind])}; "
            f"this {type(made).__name__} has no {', '.join(missing)}"
        )
    return made


def encoder_kind(name: str, options: Mapping[str, Any]) -> str:
    """dense, sparse or multi: what the class says of itself, or of the options it would be made with."""
    found = load("encoder", name)
    kind = found.kind_of(options) if hasattr(found, "kind_of") else getattr(found, "kind", None)
    if kind not in ("dense", "sparse", "multi"):
        raise InvalidSettings(f"encoder {name!r} must say its kind, dense, sparse or multi, in its class: not {kind!r}")
    return str(kind)


def encoder_cost(name: str, options: Mapping[str, Any]) -> str:
    """What encoding costs, without making the encoder: nothing, time or money."""
    if name == OBJECT or not component("encoder", name).package:
        return "time"  # code that a directory names is not imported just to look at it
    if name == "cached":
        return encoder_cost(*name_and_options(options["encoder"]))
    cost: str = load("encoder", name).cost
    return cost


def needs(*packages: str) -> None:
    """What an import would say if one of these is not installed, without the seconds that the import takes."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
