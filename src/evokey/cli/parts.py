"""Commands around the parts of a memory: encoders, keys, llms, expanders list them; expand tries them; export-onnx."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

import evokey
from evokey import registry
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, component, existing
from evokey.errors import ExpansionFailed
from evokey.types import Expansion


def encoders(as_json: AsJson = False) -> None:
    """List the encoders: what there is, what is installed, and the line that installs the rest."""
    listed("encoder", as_json)


def keys(as_json: AsJson = False) -> None:
    """List the ways to build a document's key."""
    listed("keys", as_json)


def llms(as_json: AsJson = False) -> None:
    """List the language models that can expand queries."""
    listed("llm", as_json)


def expanders(as_json: AsJson = False) -> None:
    """List the ways to expand a query."""
    listed("expander", as_json)


def expand(
    query: Annotated[str, typer.Argument(help="The query to put into more words.")],
    method: Annotated[
        list[str] | None,
        typer.Option("--with", help="An expander, or JSON with its options; again for several. Else the memory's own."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show what each would retrieve, beside the query.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="Hits to compare.")] = 5,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Show the units of an expansion; with --compare, what each method would find."""
    with screen.reported(as_json), existing(at) as memory:
        tried: list[Tried] = []
        methods: list[str | None] = [*method] if method else [None]
        for one in methods:
            with screen.working("expanding" if one is None else f"expanding with {one}", as_json):
                tried.append(_tried(memory, query, one, k if compare else 0))
        plain = [hit.id for hit in memory.search(query, k)] if compare else []
        if as_json:
            screen.emit(
                {"query": query, **({"plain": plain} if compare else {}), "expansions": [asdict(t) for t in tried]}
            )
        else:
            _show(plain, tried)
        if all(one.error for one in tried):
            raise typer.Exit(screen.FAILED)


@dataclass(frozen=True, slots=True)
class Tried:
    method: str
    expansion: Expansion | None
    error: str | None
    hits: list[str]


def _tried(memory: evokey.Memory, query: str, method: str | None, k: int) -> Tried:
    try:
        expansion = memory.expand(query, None if method is None else component(method))
    except ExpansionFailed as error:
        return Tried(method or "", None, str(error), [])
    hits = [hit.id for hit in memory.search(query, k, expansion=expansion)] if k else []
    return Tried(expansion.expander, expansion, None, hits)


def _show(plain: list[str], tried: list[Tried]) -> None:
    for one in tried:
        if one.expansion is None:
            screen.errors.print(f"[yellow]{escape(one.method)}[/]: {escape(one.error or '')}", soft_wrap=True)
            continue
        made = one.expansion
        spent = made.spent
        bill = f"{spent.calls} calls, {spent.prompt_tokens + spent.answer_tokens} tokens, {spent.seconds:.1f} s"
        how = f"taken over from {made.like!r}" if made.like else bill if spent.calls else "no model asked"
        screen.say(f"[bold]{made.expander}[/] [dim]searches by {made.search}; {escape(how)}[/]")
        for unit in made.units:
            screen.say(f"  {'[green]+[/]' if unit.positive else '[red]−[/]'} {escape(unit.text)}")
        if not made.units:
            screen.say("  [dim]no units: the query stands alone[/]")
    if plain:
        table = screen.plain_table("", "query alone", *(one.method for one in tried))
        for rank, id in enumerate(plain):
            table.add_row(str(rank + 1), escape(id), *(_marked(one.hits, rank, plain) for one in tried))
        screen.console.print(table)


def _marked(hits: list[str], rank: int, plain: list[str]) -> str:
    """A hit; green where the query alone does not find it."""
    if rank >= len(hits):
        return ""
    return escape(hits[rank]) if hits[rank] in plain else f"[green]{escape(hits[rank])}[/]"


def listed(kind: str, as_json: bool) -> None:
    found = registry.parts(kind)
    if as_json:
        screen.emit([asdict(part) for part in found])
        return
    table = screen.plain_table("", kind, "what it is", "to install")
    for part in found:
        mark = "[green]●[/]" if part.installed else "[dim]○[/]"
        table.add_row(mark, f"[bold]{part.name}[/]", escape(part.about), escape(part.install or ""))
    screen.console.print(table)


def export_onnx(
    model: Annotated[str, typer.Argument(help="A preset such as all-MiniLM-L6-v2, a name on the hub, or a folder.")],
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put it; else where encoder onnx looks for it.")
    ] = None,
    precision: Annotated[str, typer.Option(help="fp32, or int8: smaller and faster, almost as exact.")] = "int8",
    as_json: AsJson = False,
) -> None:
    """Make an ONNX file of a model, to encode without torch: then use encoder onnx with this model or folder."""
    with screen.reported(as_json):
        export = registry.load("tool", "export-onnx")
        with screen.working(f"exporting {model}", as_json):
            made = export(model, folder, precision)
        if as_json:
            screen.emit({"model": model, "at": str(made), "precision": precision})
            return
        screen.say(f"{escape(model)} in {precision} at [bold]{escape(str(made))}[/]")


COMMANDS = (encoders, keys, llms, expanders, expand, export_onnx)
