"""(kind, name) → class, imported on demand. A new component is one line here, and one extra if it needs a package."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evokey.errors import InvalidSettings, UnknownComponent

Named = str | Mapping[str, Any]
"""A component by its name, or with options: {"name": "bm25", "language": "german"}."""


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


_SENTENCES = "evokey.encoders.sentence_transformers:SentenceTransformers"
COMPONENTS: dict[str, dict[str, Component]] = {
    "keys": {
        "full": Component("evokey.keys.full:Full"),
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
    try:
        return COMPONENTS[kind][name]
    except KeyError:
        known = ", ".join(sorted(COMPONENTS[kind]))
        raise UnknownComponent(f"there is no {kind} called {name!r}; choose one of: {known}") from None


def load(kind: str, name: str) -> Any:
    """The class, or an error with the line to type when what it needs is not installed."""
    found = component(kind, name)
    module, _, attribute = found.path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if found.extra is None:
            raise
        raise UnknownComponent(
            f"{kind} {name!r} needs {error.name}; install it with: pip install 'evokey[{found.extra}]'"
        ) from error


@dataclass(frozen=True, slots=True)
class Part:
    """A component as a list shows it."""

    name: str
    about: str
    installed: bool
    install: str | None
    """The line to type where something is missing."""


def parts(kind: str) -> list[Part]:
    """All components of a kind, and whether what they need is there."""
    return [_part(kind, name, found) for name, found in COMPONENTS[kind].items()]


def _part(kind: str, name: str, found: Component) -> Part:
    try:
        load(kind, name)
        missing = None
    except UnknownComponent:
        missing = f"pip install 'evokey[{found.extra}]'"
    return Part(name, found.about or _first_line(found.path.partition(":")[0]), missing is None, missing)


def _first_line(module: str) -> str:
    """Of a module's docstring, without importing it."""
    source = find_spec(module)
    text = ast.get_docstring(ast.parse(Path(source.origin).read_text("utf-8"))) if source and source.origin else None
    return (text or "").partition("\n")[0]


def named(component: Named) -> tuple[str, dict[str, Any]]:
    """Name and options of a component."""
    if isinstance(component, str):
        return component, {}
    options = dict(component)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InvalidSettings(f"a component with options needs its name: {{'name': 'bm25', …}}, not {component!r}")
    return name, options


def made(kind: str, name: str, options: Mapping[str, Any]) -> Any:
    """The component itself, or an error that tells the options it was given."""
    try:
        return load(kind, name)(**{**component(kind, name).options, **options})
    except TypeError as error:
        given = ", ".join(f"{option} = {value!r}" for option, value in options.items())
        raise InvalidSettings(f"{kind} {name!r} does not take these options: {given} ({error})") from error


def encoder_kind(name: str, options: Mapping[str, Any]) -> str:
    """dense, sparse or multi: what the class says of itself, or of the options it would be made with."""
    found = load("encoder", name)
    kind: str = found.kind_of(options) if hasattr(found, "kind_of") else found.kind
    return kind


def encoder_cost(name: str, options: Mapping[str, Any]) -> str:
    """What encoding costs, without making the encoder: nothing, time or money."""
    if name == "cached":
        return encoder_cost(*named(options["encoder"]))
    cost: str = load("encoder", name).cost
    return cost


def needs(*packages: str) -> None:
    """What an import would say if one of these is not installed, without the seconds that the import takes."""
    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
