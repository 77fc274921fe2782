"""The shape of the project, checked: imports go one way, the public names are pinned, the registry is sound."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evokey
from evokey import registry
from evokey.errors import UnknownComponent

SOURCE = Path(evokey.__file__).parent
ORDER = [
    ["types", "errors", "words", "network", "reply"],
    ["protocols", "registry", "service", "prompts", "erasure"],
    ["keys", "encoders", "llm", "stores", "rerankers", "fusion", "checks"],
    ["ingest", "ledger", "trust"],
    ["expanders", "generators", "novelty"],
    ["verifiers"],
    ["expand"],
    ["lens"],
    ["overlay"],
    ["retriever"],
    ["explain", "indexing", "reach"],
    ["evolution"],
    ["loop"],
    ["settings", "index"],
    ["backup", "compare", "watch", "forgetting"],
    ["memory"],
    ["demo", "doctor", "thinker", "accounting"],
    ["bench"],
    ["cli"],
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("evokey"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names if alias.name in RANK}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room != "__init__":
        assert {other for other in imported_rooms(path) if RANK[other] > RANK[room]} == set()


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if not path.name.startswith("_")} - {"py.typed"}
    assert rooms == set(RANK)


def test_the_public_names_are_pinned() -> None:
    assert sorted(evokey.__all__) == [
        "Choice", "Document", "EpochReport", "EvokeyError", "Explanation", "Forgotten", "Hit", "Lesson", "Memory",
        "Quality", "Stats", "Verdict", "open",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in registry.COMPONENTS.items() for name in names]
)
def test_every_registered_component_loads_or_names_the_extra_it_wants(kind: str, name: str) -> None:
    try:
        assert callable(registry.load(kind, name))
    except UnknownComponent as error:
        assert f"pip install 'evokey[{registry.component(kind, name).extra}]'" in str(error)


def test_an_unknown_component_is_named_with_the_known_ones() -> None:
    with pytest.raises(evokey.EvokeyError, match=r"no encoder called 'bert'; choose one of: .*bm25, .*wordllama"):
        registry.load("encoder", "bert")
