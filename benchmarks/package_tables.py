"""Tables of what a user meets first: the package, a newcomer's run, and an imported index."""

from __future__ import annotations

from collections.abc import Callable

from results import read, table

ENGINES = {
    "chroma": "Chroma", "faiss": "faiss", "lancedb": "LanceDB", "milvus": "Milvus Lite", "pgvector": "pgvector",
    "qdrant": "Qdrant",
}  # fmt: skip


def imports() -> str:
    rows = [
        [f"{ENGINES[name]} ({one['package']} {one['version']})", f"{one['documents']:,}",
         f"{one['same_top_ten']:.1%}", f"{one['taught']}", f"{one['first_imported']:.0%}", f"{one['first_beside']:.0%}"]
        for name, one in read("imports.json").items()
    ]  # fmt: skip
    head = ["engine", "documents", "same top ten", "questions taught", "first hit right: imported", "beside the engine"]
    return table(head, rows)


KINDS = {"newest": "newest", "lowest": "lowest", "sdist": "newest, built from the sdist"}
SHOWN = ("numpy", "scipy", "typer")


def package() -> str:
    rows = [
        [one["python"], KINDS[one["packages"]], ", ".join(f"{name} {one['versions'][name]}" for name in SHOWN),
         "sound", "as it says", f"{one['tests_passed']:,}" if "tests_passed" in one else "not run"]
        for one in read("package.json")["trials"].values()
    ]  # fmt: skip
    head = ["Python", "packages", "among them", "`evokey doctor`", "README's ten lines", "core of the tests, passed"]
    return table(head, rows)


def newcomer() -> str:
    rows = [
        [f"[{name}]({name}.md)", f"`{' '.join(one['install'])}`", f"{one['megabytes']:,}", one["installer"],
         f"{one['install_processor_seconds']:.0f} ({one['install_seconds']:.0f})",
         f"{one['run_processor_seconds']:.0f} ({one['run_seconds']:.0f})"]
        for name, one in read("newcomer.json")["pages"].items()
    ]  # fmt: skip
    return table(["page", "installed", "megabytes", "by", "seconds to install", "seconds to run its code"], rows)


TABLES: dict[str, Callable[[], str]] = {"imports": imports, "package": package, "newcomer": newcomer}
