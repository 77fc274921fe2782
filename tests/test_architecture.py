"""The shape of the project, checked: imports go one way, the public names are pinned, the registry is sound."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import evokey
from evokey import registry
from evokey.errors import UnknownComponent

SOURCE = Path(evokey.__file__).parent
ORDER = [
    ["types", "errors", "once", "http", "filters"],
    ["postgres"],
    ["scoring"],
    ["protocols", "registry", "erasure"],
    ["encoders"],
    ["keys", "llm", "stores", "checks"],
    ["ingest", "ledger", "passages"],
    ["expanders", "generators"],
    ["verifiers"],
    ["search"],
    ["evolution"],
    ["settings"],
    ["tuning"],
    ["loop", "forgetting", "inspect"],
    ["seeding"],
    ["memory", "layer"],
    ["inspect.displacement", "inspect.hubness"],
    ["inspect.accounting", "inspect.doctor", "inspect.installation", "inspect.migrate", "loop.thinker"],
    ["demo", "inspect.figure"],
    ["client", "serve"],
    ["frameworks", "importing", "mcp"],
    ["bench", "feedback"],
    ["cli"],
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
"""Of rooms, and of modules that stand elsewhere than their room."""


def rank_of(module: str) -> int:
    """Of the room, or of the module itself."""
    parts = module.split(".")
    return next(RANK[name] for end in (2, 1) if (name := ".".join(parts[:end])) in RANK)


def imported(path: Path) -> set[str]:
    """The modules of this project that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "evokey":
            base = node.module.partition(".")[2]
            for alias in node.names:
                name = f"{base}.{alias.name}".strip(".")
                found.add(name if (SOURCE / name.replace(".", "/")).with_suffix(".py").exists() else base)
    return found - {""}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    if module not in ("__init__", "__main__"):
        assert {other for other in imported(path) if rank_of(other) > rank_of(module)} == set()


def test_what_one_database_alone_knows_stays_in_its_own_files() -> None:
    dialect = ("sqlite3", "sqlite_sequence", "json_each", "lastrowid", "INSERT OR", "PRAGMA", "group_concat")
    plain = [path for path in (SOURCE / "ledger").rglob("*.py") if path.parent.name != "sqlite"]
    shared = [path for path in plain if path.parent.name != "postgres"]
    assert {path.name for path in shared if "psycopg" in path.read_text("utf-8")} == set()
    assert {path.name: word for path in plain for word in dialect if word in path.read_text("utf-8")} == {}


def test_nobody_outside_of_the_ledger_sees_its_database() -> None:
    outside = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(SOURCE / "ledger")]
    inner = {f"ledger.{name}" for name in ("database", "sqlite.database", "sqlite.dialect", "postgres.database")}
    assert {path.name: found for path in outside if (found := imported(path) & inner)} == {}


def test_at_most_ten_modules_stand_at_the_root() -> None:
    assert len([path for path in SOURCE.iterdir() if path.suffix == ".py"]) <= 10


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if not path.name.startswith("_")} - {"py.typed"}
    assert rooms == {name for name in RANK if "." not in name}


PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")
HOP = re.compile(r"^ +([a-z_/0-9]+\.py) +([a-z_]+)?(?:  |$)", re.MULTILINE)


@pytest.mark.parametrize(("file", "function"), sorted(set(HOP.findall(PAGE))))
def test_each_hop_of_the_figure_is_a_function_of_its_file(file: str, function: str) -> None:
    tree = ast.parse((SOURCE / file).read_text("utf-8"))
    assert not function or function in {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def test_every_file_and_room_that_the_page_names_exists() -> None:
    named = {*re.findall(r"[a-z_0-9/]+\.py\b", PAGE), *re.findall(r"`([a-z]+/)`", PAGE)}
    roots = SOURCE, Path(__file__).parents[1]
    assert {name for name in named if not any((root / name).exists() for root in roots)} == set()


def test_the_public_names_are_pinned() -> None:
    assert sorted(evokey.__all__) == [
        "Choice", "Document", "EpochReport", "EvokeyError", "Explanation", "Forgotten", "Hit", "Layer", "Lesson",
        "Memory", "Quality", "Section", "Stats", "Verdict", "beside", "open",
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
