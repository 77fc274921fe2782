"""(kind, name) → class, imported on demand. A new component is one line here, and one extra if it needs a package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from evokey.errors import UnknownComponent


@dataclass(frozen=True, slots=True)
class Component:
    path: str
    """module:Class"""
    extra: str | None = None
    """The extra of this project that installs what the module imports."""


COMPONENTS: dict[str, dict[str, Component]] = {
    "keys": {
        "full": Component("evokey.keys.full:Full"),
    },
    "encoder": {
        "bm25": Component("evokey.encoders.bm25:BM25"),
        "wordllama": Component("evokey.encoders.wordllama:WordLlamaEncoder"),
        "given": Component("evokey.encoders.given:Given"),
    },
    "store": {
        "flat": Component("evokey.stores.flat:FlatStore"),
        "sparse": Component("evokey.stores.sparse:SparseStore"),
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
